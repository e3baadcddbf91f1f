pragma circom 2.1.6;

include "circomlib/circuits/poseidon.circom";

// Poseidon over a string of n bytes: big-endian words of 31 bytes counted from the right, so that the first one is
// the short one. The caller pads the string with zeros on the right.
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

// Poseidon over a number of n bits, the lowest first: words of 248 bits counted from the lowest, the highest first.
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
