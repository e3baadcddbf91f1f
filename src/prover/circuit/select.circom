pragma circom 2.1.6;

include "circomlib/circuits/bitify.circom";

// Selectors whose position is a signal. The constraints right below each hint (`<--`) determine its value.

// below[i] is 1 for i < length, and 0 for every other i. Refuses a length over n. `length` is the number of ones.
// The steps 1 - below[0], below[0] - below[1], ..., below[n-1] are bits that add up to 1, so exactly one is 1.
template Below(n) {
    signal input length;
    signal output below[n];

    var previous = 1;
    var ones = 0;
    for (var i = 0; i < n; i++) {
        below[i] <-- i < length ? 1 : 0;
        (previous - below[i]) * (previous - below[i] - 1) === 0;
        previous = below[i];
        ones += below[i];
    }
    previous * (previous - 1) === 0;
    ones === length;
}

// hot[i] is 1 for i = index and 0 elsewhere. Refuses an index of n or more.
template OneHot(n) {
    signal input index;
    signal output hot[n];

    var sum = 0;
    var weighted = 0;
    for (var i = 0; i < n; i++) {
        hot[i] <-- i == index ? 1 : 0;
        hot[i] * (hot[i] - 1) === 0;
        sum += hot[i];
        weighted += i * hot[i];
    }
    sum === 1;
    weighted === index;
}

// The sum of a[i] * b[i].
template Dot(n) {
    signal input a[n];
    signal input b[n];
    signal output out;

    signal product[n];
    var sum = 0;
    for (var i = 0; i < n; i++) {
        product[i] <== a[i] * b[i];
        sum += product[i];
    }
    out <== sum;
}

// out[i] = in[i + shift], or 0 beyond the end. `bits` has the bits of the shift, the lowest first.
// Each of them must be 0 or 1.
// The largest step comes first, so that the array shrinks early.
template ShiftLeft(n, m, nBits) {
    signal input in[n];
    signal input bits[nBits];
    signal output out[m];

    signal stage[nBits + 1][n];
    for (var i = 0; i < n; i++) stage[0][i] <== in[i];
    for (var s = 0; s < nBits; s++) {
        var step = 1 << (nBits - 1 - s);
        for (var i = 0; i < n; i++) {
            if (i >= m + step - 1) {
                // The smaller steps that follow can't reach this element.
                stage[s + 1][i] <== 0;
            } else if (i + step < n) {
                stage[s + 1][i] <== stage[s][i] + bits[nBits - 1 - s] * (stage[s][i + step] - stage[s][i]);
            } else {
                stage[s + 1][i] <== stage[s][i] - bits[nBits - 1 - s] * stage[s][i];
            }
        }
    }
    for (var i = 0; i < m; i++) out[i] <== stage[nBits][i];
}
