pragma circom 2.1.6;

include "select.circom";

function sextetOf(char) {
    if (char >= 97) return char - 71;
    if (char == 95) return 63;
    if (char >= 65) return char - 65;
    if (char >= 48) return char + 4;
    return 62;
}

// The character that encodes a sextet in base64url (RFC 4648, section 5). Each of `bits` must be 0 or 1.
template Base64Char() {
    signal input bits[6];
    signal output char;

    signal b5b4 <== bits[5] * bits[4];
    signal b4b3 <== bits[4] * bits[3];
    signal b3b2 <== bits[3] * bits[2];
    signal b2b1 <== bits[2] * bits[1];
    // 26 is 011010, 52 is 110100, 62 is 111110.
    signal from26to31 <== b4b3 * (bits[2] + bits[1] - b2b1);
    signal atLeast26 <== bits[5] + from26to31 - bits[5] * from26to31;
    signal atLeast52 <== b5b4 * (bits[3] + bits[2] - b3b2);
    signal atLeast60 <== b5b4 * b3b2;
    signal atLeast62 <== atLeast60 * bits[1];
    signal is63 <== atLeast62 * bits[0];

    var sextet = 0;
    for (var k = 0; k < 6; k++) sextet += (1 << k) * bits[k];
    char <== 65 + sextet + 6 * atLeast26 - 75 * atLeast52 - 13 * atLeast62 + 49 * is63;
}

// Decodes base64url without padding into bits, the highest of each sextet first. Refuses other characters.
// Characters for which `inside` is 0 must be 0, and are decoded like 'A', the sextet 0.
template Base64Bits(n) {
    signal input chars[n];
    signal input inside[n];
    signal output bits[6 * n];

    component encode[n];
    for (var i = 0; i < n; i++) {
        encode[i] = Base64Char();
        var sextet = inside[i] == 1 ? sextetOf(chars[i]) : 0;
        for (var k = 0; k < 6; k++) {
            bits[6 * i + 5 - k] <-- (sextet >> k) & 1;
            bits[6 * i + 5 - k] * (bits[6 * i + 5 - k] - 1) === 0;
            encode[i].bits[k] <== bits[6 * i + 5 - k];
        }
        encode[i].char === chars[i] + 65 * (1 - inside[i]);
    }
}
