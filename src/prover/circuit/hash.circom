pragma circom 2.1.6;

include "circomlib/circuits/poseidon.circom";

// Poseidon over a string of n bytes, in big-endian words of 31 bytes. The words are counted from the right, so the
// first word may be shorter. The caller pads the string with zeros on the right.
template HashAscii(n) {
    signal input text[n];
    signal output out;

    var words = (n + 30) \ 31;
    component poseidon = Poseidon(words);
    for (var w = 0; w < words; w++) {
        var end = n - 31 * (words - 1 - w);
        var start = end < 31 ? 0 : end - 31;
        var word = 0;
        for (var i = start; i < end; i++) word = 256 * word + text[i];
        poseidon.inputs[w] <== word;
    }
    out <== poseidon.out;
}

// Poseidon over a number, whose n bits begin with the lowest. The number is split into words of 248 bits, from the
// lowest bit up. The highest word is hashed first.
template HashBits(n) {
    signal input bits[n];
    signal output out;

    var words = (n + 247) \ 248;
    component poseidon = Poseidon(words);
    for (var w = 0; w < words; w++) {
        var word = 0;
        for (var i = 0; i < 248 && 248 * w + i < n; i++) word += (1 << i) * bits[248 * w + i];
        poseidon.inputs[words - 1 - w] <== word;
    }
    out <== poseidon.out;
}
