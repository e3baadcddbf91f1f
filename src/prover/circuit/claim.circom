pragma circom 2.1.6;

include "circomlib/circuits/bitify.circom";
include "circomlib/circuits/comparators.circom";
include "base64.circom";
include "payload.circom";
include "select.circom";

// Maximum number of sextets that encode n bytes, at any position in the payload.
function sextetsOf(n) {
    return (8 * n + 4 + 5) \ 6;
}

// Checks that the first `length` bytes of `text` are bytes of the payload, from base64 character `index` on, and
// that zeros follow them. A byte never begins at a character whose index is 3 modulo 4. `lengthB64` must be the
// exact number of characters that encode these bytes.
template PayloadText(nWords, max) {
    signal input words[nWords];
    signal input start;
    signal input end;
    signal input index;
    signal input lengthB64;
    signal input text[max];
    signal input length;
    signal output inside[max];

    var maxB64 = sextetsOf(max);
    component slice = PayloadSlice(nWords, maxB64);
    slice.words <== words;
    slice.start <== start;
    slice.end <== end;
    slice.index <== index;
    slice.length <== lengthB64;
    component decode = Base64Bits(maxB64);
    decode.chars <== slice.chars;
    decode.inside <== slice.inside;

    component within = Below(max);
    within.length <== length;
    inside <== within.below;

    signal skip2 <== slice.indexMod4[0];
    signal skip4 <== slice.indexMod4[1];
    skip2 * skip4 === 0;
    signal byte2[max];
    signal byte[max];
    for (var i = 0; i < max; i++) {
        var at[3] = [0, 0, 0];
        for (var skip = 0; skip < 3; skip++) {
            for (var k = 0; k < 8; k++) at[skip] = 2 * at[skip] + decode.bits[8 * i + k + 2 * skip];
        }
        byte2[i] <== at[0] + skip2 * (at[1] - at[0]);
        byte[i] <== byte2[i] + skip4 * (at[2] - at[0]);
        text[i] === inside[i] * byte[i];
    }

    // 6 * (lengthB64 - 1) <= bits to skip + 8 * length - 1 < 6 * lengthB64
    component remainder = Num2Bits(3);
    remainder.in <== 2 * skip2 + 4 * skip4 + 8 * length - 1 - 6 * (lengthB64 - 1);
    remainder.out[2] * remainder.out[1] === 0;
}

// A JSON string without escapes: quotes around it, and neither a quote nor a backslash inside. `chars` is zero
// from `length` on. `content` is the text between the quotes, followed by zeros. With isBare, which must be a bit,
// quotes are not required, and content is meaningless.
template JsonString(max) {
    signal input chars[max];
    signal input inside[max];
    signal input isBare;
    signal output content[max];

    // The string has at least its two quotes.
    inside[1] === 1;
    (1 - isBare) * (chars[0] - 34) === 0;
    component close = Dot(max);
    signal isSpecial[max];
    signal inverse[max];
    for (var i = 0; i < max; i++) {
        var next = i + 1 < max ? inside[i + 1] : 0;
        close.a[i] <== inside[i] - next;
        close.b[i] <== chars[i];
        // next is 1 for the characters before the last one.
        if (i >= 1) {
            isSpecial[i] <== (chars[i] - 34) * (chars[i] - 92);
            inverse[i] <-- next == 1 && isSpecial[i] != 0 ? 1 / isSpecial[i] : 0;
            isSpecial[i] * inverse[i] === next;
            content[i - 1] <== next * chars[i];
        }
    }
    content[max - 1] <== 0;
    (1 - isBare) * (close.out - 34) === 0;
}

// text is `name ws : ws value ws [,}]`, with name and value of any form; zeros follow it. White space is defined
// as in JSON (RFC 8259, section 2). `inside` must be 1 for the text's characters, and then 0.
template Member(max, maxName, maxValue) {
    signal input text[max];
    signal input inside[max];
    signal input nameLength;
    signal input colonIndex;
    signal input valueIndex;
    signal input valueLength;
    // Zeros follow the values in each of these outputs.
    signal output name[maxName];
    signal output insideName[maxName];
    signal output value[maxValue];
    signal output insideValue[maxValue];

    component nameBelow = Below(maxName);
    nameBelow.length <== nameLength;
    insideName <== nameBelow.below;
    component colon = OneHot(max);
    colon.index <== colonIndex;
    component colonChar = Dot(max);
    colonChar.a <== colon.hot;
    colonChar.b <== text;
    colonChar.out === 58;

    // valueLength is at most maxValue, and valueIndex at most max - 1: no sum wraps around the field.
    component valueBelow = Below(maxValue);
    valueBelow.length <== valueLength;
    insideValue <== valueBelow.below;
    component beforeValue = Below(max);
    beforeValue.length <== valueIndex;
    component beforeValueEnd = Below(max);
    beforeValueEnd.length <== valueIndex + valueLength;
    component colonBeforeValue = Num2Bits(8);
    colonBeforeValue.in <== valueIndex - colonIndex - 1;

    // Each character belongs to exactly one of name, colon, value, terminator and white space: if two of the first
    // four overlapped, or one of them were beyond the text, isSpace would be -1 or less there.
    component last = Dot(max);
    signal isSpace[max];
    signal notBlank[max];
    signal notBreak[max];
    signal notSpace[max];
    for (var i = 0; i < max; i++) {
        var isLast = inside[i] - (i + 1 < max ? inside[i + 1] : 0);
        last.a[i] <== isLast;
        last.b[i] <== text[i];
        var inName = i < maxName ? insideName[i] : 0;
        isSpace[i] <== inside[i] - inName - colon.hot[i] - (beforeValueEnd.below[i] - beforeValue.below[i]) - isLast;
        isSpace[i] * (isSpace[i] - 1) === 0;
        notBlank[i] <== (text[i] - 32) * (text[i] - 9);
        notBreak[i] <== (text[i] - 10) * (text[i] - 13);
        notSpace[i] <== notBlank[i] * notBreak[i];
        isSpace[i] * notSpace[i] === 0;
    }
    // ',' or '}'
    (last.out - 44) * (last.out - 125) === 0;

    for (var i = 0; i < maxName; i++) name[i] <== insideName[i] * text[i];
    component valueBits = Num2Bits(8);
    valueBits.in <== valueIndex;
    component shift = ShiftLeft(max, maxValue, 8);
    shift.in <== text;
    shift.bits <== valueBits.out;
    for (var i = 0; i < maxValue; i++) value[i] <== insideValue[i] * shift.out[i];
}
