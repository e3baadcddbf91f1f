pragma circom 2.1.6;

include "circomlib/circuits/bitify.circom";
include "circomlib/circuits/sha256/constants.circom";
include "circomlib/circuits/sha256/sha256compression.circom";
include "select.circom";

// Checks that `bytes` is a message of `length` bytes, padded for SHA-256 (FIPS 180-4, section 5.1.1) to
// `blocks` blocks, and that zeros follow it.
template CheckPadding(maxBlocks) {
    var n = 64 * maxBlocks;
    signal input bytes[n];
    signal input length;
    signal input blocks;
    signal output isLastBlock[maxBlocks];

    // The message, the byte 0x80 and the 8 bytes of the length fit into `blocks` blocks, but not into fewer.
    component slack = Num2Bits(6);
    slack.in <== 64 * blocks - 9 - length;

    // OneHot refuses 0 blocks, and more than maxBlocks.
    component last = OneHot(maxBlocks);
    last.index <== blocks - 1;
    isLastBlock <== last.hot;

    // The length in bits fits into two bytes.
    assert(8 * n < 65536);
    component lengthBits = Num2Bits(13);
    lengthBits.in <== length;
    var low = 0;
    var high = 0;
    for (var i = 0; i < 5; i++) low += (8 << i) * lengthBits.out[i];
    for (var i = 5; i < 13; i++) high += (1 << (i - 5)) * lengthBits.out[i];

    component message = Below(n);
    message.length <== length;
    signal lengthByte[maxBlocks][2];
    var before = 1;
    for (var i = 0; i < n; i++) {
        var expected = 128 * (before - message.below[i]);
        if (i % 64 == 62) {
            lengthByte[i \ 64][0] <== last.hot[i \ 64] * high;
            expected += lengthByte[i \ 64][0];
        }
        if (i % 64 == 63) {
            lengthByte[i \ 64][1] <== last.hot[i \ 64] * low;
            expected += lengthByte[i \ 64][1];
        }
        (1 - message.below[i]) * (bytes[i] - expected) === 0;
        before = message.below[i];
    }
}

// SHA-256 of the blocks up to the last one. The digest's bits are big-endian, as in FIPS 180-4.
template Sha256Blocks(maxBlocks) {
    signal input bits[512 * maxBlocks];
    signal input isLastBlock[maxBlocks];
    signal output digest[256];

    component initial[8];
    for (var i = 0; i < 8; i++) initial[i] = H(i);

    // Both halves of the digest are selected as integers, and then split into bits again.
    component compression[maxBlocks];
    component select[2];
    component half[2];
    for (var h = 0; h < 2; h++) select[h] = Dot(maxBlocks);
    for (var b = 0; b < maxBlocks; b++) {
        compression[b] = Sha256compression();
        for (var i = 0; i < 512; i++) compression[b].inp[i] <== bits[512 * b + i];
        // circomlib expects the state's words with their lowest bit first and returns them with their highest first.
        for (var i = 0; i < 8; i++) {
            for (var k = 0; k < 32; k++) {
                if (b == 0) compression[b].hin[32 * i + k] <== initial[i].out[k];
                else compression[b].hin[32 * i + k] <== compression[b - 1].out[32 * i + 31 - k];
            }
        }
        for (var h = 0; h < 2; h++) {
            var number = 0;
            for (var i = 0; i < 128; i++) number = 2 * number + compression[b].out[128 * h + i];
            select[h].a[b] <== isLastBlock[b];
            select[h].b[b] <== number;
        }
    }
    for (var h = 0; h < 2; h++) {
        half[h] = Num2Bits(128);
        half[h].in <== select[h].out;
        for (var i = 0; i < 128; i++) digest[128 * h + i] <== half[h].out[127 - i];
    }
}
