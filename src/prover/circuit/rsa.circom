pragma circom 2.1.6;

include "circomlib/circuits/bitify.circom";
include "@zk-email/circuits/lib/bigint.circom";
include "@zk-email/circuits/lib/rsa.circom";

// RSASSA-PKCS1-v1_5 over SHA-256 (RFC 8017, section 8.2.2) for a key of 2048 bits with e = 65537. Numbers have 32
// limbs of 64 bits, the least significant first. @zk-email/circuits computes with 17 limbs of 121 bits.
template VerifyRsa2048() {
    signal input digest[256];
    signal input signature[32];
    signal input modulus[32];
    signal output modulusBits[2048];

    component signatureBits[32];
    component limbBits[32];
    var signatureBit[2057];
    var modulusBit[2057];
    for (var i = 0; i < 32; i++) {
        signatureBits[i] = Num2Bits(64);
        signatureBits[i].in <== signature[i];
        limbBits[i] = Num2Bits(64);
        limbBits[i].in <== modulus[i];
        for (var k = 0; k < 64; k++) {
            signatureBit[64 * i + k] = signatureBits[i].out[k];
            modulusBit[64 * i + k] = limbBits[i].out[k];
            modulusBits[64 * i + k] <== limbBits[i].out[k];
        }
    }

    component below = BigLessThan(121, 17);
    component power = FpPow65537Mod(121, 17);
    for (var i = 0; i < 17; i++) {
        var s = 0;
        var m = 0;
        for (var k = 0; k < 121; k++) {
            s += (1 << k) * signatureBit[121 * i + k];
            m += (1 << k) * modulusBit[121 * i + k];
        }
        below.a[i] <== s;
        below.b[i] <== m;
        power.base[i] <== s;
        power.modulus[i] <== m;
    }
    below.out === 1;

    // 00 01 ff ... ff 00, DigestInfo of SHA-256 (section 9.2, note 1), digest. FpPow65537Mod returns a number below
    // the modulus.
    var digestInfo = 0x3031300d060960864801650304020105000420;
    for (var i = 0; i < 17; i++) {
        var expected = 0;
        for (var k = 0; k < 121; k++) {
            var bit = 121 * i + k;
            if (bit < 256) expected += (1 << k) * digest[255 - bit];
            else if (bit < 408) expected += (1 << k) * ((digestInfo >> (bit - 256)) & 1);
            else if (bit >= 416 && bit <= 2032) expected += (1 << k);
        }
        power.out[i] === expected;
    }
}
