pragma circom 2.1.6;

include "circomlib/circuits/bitify.circom";
include "circomlib/circuits/comparators.circom";
include "circomlib/circuits/poseidon.circom";
include "base64.circom";
include "claim.circom";
include "hash.circom";
include "message.circom";
include "payload.circom";
include "rsa.circom";
include "select.circom";

// The number whose bytes are `text`, the most significant first.
template Pack(n) {
    signal input text[n];
    signal output out;

    assert(n <= 31);
    var number = 0;
    for (var i = 0; i < n; i++) number = 256 * number + text[i];
    out <== number;
}

// The statement of Sui's zkLogin. README.md lists its rules, each with the constraint that enforces it. Sizes are in
// characters. The sizes of names and values include their quotes. The sizes of extended claims include the ',' or '}'
// after them. The inputs have the names of the production circuit.
template ZkLogin(
    maxBlocks, maxHeader, maxKcName, maxKcValue, maxExtKc, maxExtNonce, maxExtEv, maxAudValue, maxExtAud, maxIssB64
) {
    var maxBytes = 64 * maxBlocks;
    // `"email_verified"`, and a nonce of 27 characters with its quotes.
    var maxEvName = 16;
    var nonceValue = 29;

    signal input padded_unsigned_jwt[maxBytes];
    signal input payload_start_index;
    signal input num_sha2_blocks;
    signal input payload_len;
    signal input signature[32];
    signal input modulus[32];

    signal input ext_kc[maxExtKc];
    signal input ext_kc_length;
    signal input kc_index_b64;
    signal input kc_length_b64;
    signal input kc_name_length;
    signal input kc_colon_index;
    signal input kc_value_index;
    signal input kc_value_length;

    signal input ext_nonce[maxExtNonce];
    signal input ext_nonce_length;
    signal input nonce_index_b64;
    signal input nonce_length_b64;
    signal input nonce_colon_index;
    signal input nonce_value_index;

    signal input eph_public_key[2];
    signal input max_epoch;
    signal input jwt_randomness;

    signal input ext_ev[maxExtEv];
    signal input ext_ev_length;
    signal input ev_index_b64;
    signal input ev_length_b64;
    signal input ev_name_length;
    signal input ev_colon_index;
    signal input ev_value_index;
    signal input ev_value_length;

    signal input ext_aud[maxExtAud];
    signal input ext_aud_length;
    signal input aud_index_b64;
    signal input aud_length_b64;
    signal input aud_colon_index;
    signal input aud_value_index;
    signal input aud_value_length;

    signal input iss_index_b64;
    signal input iss_length_b64;
    signal input salt;

    signal input all_inputs_hash;

    // --- The signed message ---
    component byteBits[maxBytes];
    component padding = CheckPadding(maxBlocks);
    component sha = Sha256Blocks(maxBlocks);
    signal payloadEnd <== payload_start_index + payload_len;
    padding.bytes <== padded_unsigned_jwt;
    padding.length <== payloadEnd;
    padding.blocks <== num_sha2_blocks;
    sha.isLastBlock <== padding.isLastBlock;
    for (var i = 0; i < maxBytes; i++) {
        byteBits[i] = Num2Bits(8);
        byteBits[i].in <== padded_unsigned_jwt[i];
        for (var k = 0; k < 8; k++) sha.bits[8 * i + k] <== byteBits[i].out[7 - k];
    }
    component payloadLength = Num2Bits(11);
    payloadLength.in <== payload_len;

    component rsa = VerifyRsa2048();
    rsa.digest <== sha.digest;
    rsa.signature <== signature;
    rsa.modulus <== modulus;
    component modulusHash = HashBits(2048);
    modulusHash.bits <== rsa.modulusBits;

    // --- The header: the part before the '.' ---
    component header = Below(maxHeader);
    header.length <== payload_start_index - 1;
    component headerHash = HashAscii(maxHeader);
    component dot = Dot(maxHeader + 1);
    for (var i = 0; i <= maxHeader; i++) {
        dot.a[i] <== (i == 0 ? 1 : header.below[i - 1]) - (i < maxHeader ? header.below[i] : 0);
        dot.b[i] <== padded_unsigned_jwt[i];
        if (i < maxHeader) headerHash.text[i] <== header.below[i] * padded_unsigned_jwt[i];
    }
    dot.out === 46;

    // --- Slices of the payload ---
    var nWords = 4 * maxBlocks;
    var words[nWords];
    for (var w = 0; w < nWords; w++) {
        words[w] = 0;
        for (var i = 0; i < 16; i++) words[w] += (1 << (8 * i)) * padded_unsigned_jwt[16 * w + i];
    }

    component iss = PayloadSlice(nWords, maxIssB64);
    iss.words <== words;
    iss.start <== payload_start_index;
    iss.end <== payloadEnd;
    iss.index <== iss_index_b64;
    iss.length <== iss_length_b64;
    component issHash = HashAscii(maxIssB64);
    issHash.text <== iss.chars;

    component kcText = PayloadText(nWords, maxExtKc);
    kcText.words <== words;
    kcText.start <== payload_start_index;
    kcText.end <== payloadEnd;
    kcText.index <== kc_index_b64;
    kcText.lengthB64 <== kc_length_b64;
    kcText.text <== ext_kc;
    kcText.length <== ext_kc_length;

    component nonceText = PayloadText(nWords, maxExtNonce);
    nonceText.words <== words;
    nonceText.start <== payload_start_index;
    nonceText.end <== payloadEnd;
    nonceText.index <== nonce_index_b64;
    nonceText.lengthB64 <== nonce_length_b64;
    nonceText.text <== ext_nonce;
    nonceText.length <== ext_nonce_length;

    component evText = PayloadText(nWords, maxExtEv);
    evText.words <== words;
    evText.start <== payload_start_index;
    evText.end <== payloadEnd;
    evText.index <== ev_index_b64;
    evText.lengthB64 <== ev_length_b64;
    evText.text <== ext_ev;
    evText.length <== ext_ev_length;

    component audText = PayloadText(nWords, maxExtAud);
    audText.words <== words;
    audText.start <== payload_start_index;
    audText.end <== payloadEnd;
    audText.index <== aud_index_b64;
    audText.lengthB64 <== aud_length_b64;
    audText.text <== ext_aud;
    audText.length <== ext_aud_length;

    // --- The key claim ---
    component kc = Member(maxExtKc, maxKcName, maxKcValue);
    kc.text <== ext_kc;
    kc.inside <== kcText.inside;
    kc.nameLength <== kc_name_length;
    kc.colonIndex <== kc_colon_index;
    kc.valueIndex <== kc_value_index;
    kc.valueLength <== kc_value_length;
    component kcName = JsonString(maxKcName);
    kcName.chars <== kc.name;
    kcName.inside <== kc.insideName;
    kcName.isBare <== 0;
    component kcNameHash = HashAscii(32);
    for (var i = 0; i < 32; i++) kcNameHash.text[i] <== i < maxKcName ? kcName.content[i] : 0;
    component kcValue = JsonString(maxKcValue);
    kcValue.chars <== kc.value;
    kcValue.inside <== kc.insideValue;
    kcValue.isBare <== 0;
    component kcValueHash = HashAscii(maxKcValue);
    kcValueHash.text <== kcValue.content;

    // --- The audience ---
    component aud = Member(maxExtAud, 5, maxAudValue);
    aud.text <== ext_aud;
    aud.inside <== audText.inside;
    aud.nameLength <== 5;
    aud.colonIndex <== aud_colon_index;
    aud.valueIndex <== aud_value_index;
    aud.valueLength <== aud_value_length;
    var audName[5] = [34, 97, 117, 100, 34]; // "aud"
    for (var i = 0; i < 5; i++) ext_aud[i] === audName[i];
    component audValue = JsonString(maxAudValue);
    audValue.chars <== aud.value;
    audValue.inside <== aud.insideValue;
    audValue.isBare <== 0;
    component audHash = HashAscii(maxAudValue);
    audHash.text <== audValue.content;

    // --- The nonce ---
    component nonce = Member(maxExtNonce, 7, nonceValue);
    nonce.text <== ext_nonce;
    nonce.inside <== nonceText.inside;
    nonce.nameLength <== 7;
    nonce.colonIndex <== nonce_colon_index;
    nonce.valueIndex <== nonce_value_index;
    nonce.valueLength <== nonceValue;
    var nonceName[7] = [34, 110, 111, 110, 99, 101, 34]; // "nonce"
    for (var i = 0; i < 7; i++) ext_nonce[i] === nonceName[i];
    nonce.value[0] === 34;
    nonce.value[nonceValue - 1] === 34;
    component nonceBits = Base64Bits(27);
    for (var i = 0; i < 27; i++) {
        nonceBits.chars[i] <== nonce.value[1 + i];
        nonceBits.inside[i] <== 1;
    }
    component nonceHash = Poseidon(4);
    nonceHash.inputs <== [eph_public_key[0], eph_public_key[1], max_epoch, jwt_randomness];
    component randomnessBits = Num2Bits(128);
    randomnessBits.in <== jwt_randomness;
    // Without the strict check, the hash plus the field's order would be accepted too, and has other low bits.
    component nonceHashBits = Num2Bits_strict();
    nonceHashBits.in <== nonceHash.out;
    for (var i = 0; i < 160; i++) nonceBits.bits[i] === nonceHashBits.out[159 - i];
    nonceBits.bits[160] === 0;
    nonceBits.bits[161] === 0;

    // --- email_verified, if the key claim is the email ---
    component ev = Member(maxExtEv, maxEvName, nonceValue);
    ev.text <== ext_ev;
    ev.inside <== evText.inside;
    ev.nameLength <== ev_name_length;
    ev.colonIndex <== ev_colon_index;
    ev.valueIndex <== ev_value_index;
    ev.valueLength <== ev_value_length;
    component evName = JsonString(maxEvName);
    evName.chars <== ev.name;
    evName.inside <== ev.insideName;
    evName.isBare <== 0;
    component evValue = Pack(nonceValue);
    evValue.text <== ev.value;
    var bareTrue = 0x74727565 << (8 * (nonceValue - 4));
    var quotedTrue = 0x227472756522 << (8 * (nonceValue - 6));
    component isBareTrue = IsEqual();
    isBareTrue.in <== [evValue.out, bareTrue];
    component evString = JsonString(nonceValue);
    evString.chars <== ev.value;
    evString.inside <== ev.insideValue;
    evString.isBare <== isBareTrue.out;

    component kcNamePacked = Pack(31);
    for (var i = 0; i < 31; i++) kcNamePacked.text[i] <== i < maxKcName ? kcName.content[i] : 0;
    component isEmail = IsEqual();
    isEmail.in <== [kcNamePacked.out, 0x656d61696c << (8 * 26)];
    component evNamePacked = Pack(maxEvName);
    evNamePacked.text <== ev.name;
    isEmail.out * (evNamePacked.out - 0x22656d61696c5f766572696669656422) === 0;
    component isQuotedTrue = IsEqual();
    isQuotedTrue.in <== [evValue.out, quotedTrue];
    isEmail.out * (1 - isBareTrue.out - isQuotedTrue.out) === 0;

    // --- The public input ---
    component saltHash = Poseidon(1);
    saltHash.inputs[0] <== salt;
    component addressSeed = Poseidon(4);
    addressSeed.inputs <== [kcNameHash.out, kcValueHash.out, audHash.out, saltHash.out];
    component allInputs = Poseidon(8);
    allInputs.inputs <== [
        eph_public_key[0],
        eph_public_key[1],
        addressSeed.out,
        max_epoch,
        issHash.out,
        iss.indexMod4[0] + 2 * iss.indexMod4[1],
        headerHash.out,
        modulusHash.out
    ];
    allInputs.out === all_inputs_hash;
}
