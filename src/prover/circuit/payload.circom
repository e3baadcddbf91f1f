pragma circom 2.1.6;

include "circomlib/circuits/bitify.circom";
include "select.circom";

// The m characters from `index` on. A word has 16 of them, and its lowest byte is the first. Whole words are shifted
// first, and then the bytes of the words that remain. Shifting bytes alone would cost about a hundred times as much.
// indexBits has the 11 bits of the index. Zeros follow the last word.
template Slice(nWords, m) {
    signal input words[nWords];
    signal input indexBits[11];
    signal output chars[m];

    var taken = (m + 15 + 15) \ 16;
    component coarse = ShiftLeft(nWords, taken, 7);
    coarse.in <== words;
    for (var i = 0; i < 7; i++) coarse.bits[i] <== indexBits[4 + i];

    component word[taken];
    component fine = ShiftLeft(16 * taken, m, 4);
    for (var i = 0; i < 4; i++) fine.bits[i] <== indexBits[i];
    for (var w = 0; w < taken; w++) {
        word[w] = Num2Bits(128);
        word[w].in <== coarse.out[w];
        for (var i = 0; i < 16; i++) {
            var char = 0;
            for (var k = 0; k < 8; k++) char += (1 << k) * word[w].out[8 * i + k];
            fine.in[16 * w + i] <== char;
        }
    }
    chars <== fine.out;
}

// The `length` characters of the payload from `index` on, followed by zeros. Refuses a slice that is not entirely in
// the payload. The payload begins at `start` and ends before `end`, which are at most 64 * 25.
template PayloadSlice(nWords, m) {
    signal input words[nWords];
    signal input start;
    signal input end;
    signal input index;
    signal input length;
    signal output chars[m];
    signal output inside[m];
    // The two bits of (index - start) mod 4, the lowest first.
    signal output indexMod4[2];

    // index < 2^11 and length <= m, so that no difference wraps around the field.
    component indexBits = Num2Bits(11);
    indexBits.in <== index;
    component within = Below(m);
    within.length <== length;
    inside <== within.below;
    component afterStart = Num2Bits(11);
    afterStart.in <== index - start;
    component beforeEnd = Num2Bits(11);
    beforeEnd.in <== end - index - length;
    indexMod4[0] <== afterStart.out[0];
    indexMod4[1] <== afterStart.out[1];

    component slice = Slice(nWords, m);
    slice.words <== words;
    slice.indexBits <== indexBits.out;
    for (var i = 0; i < m; i++) chars[i] <== within.below[i] * slice.chars[i];
}
