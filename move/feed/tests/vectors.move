// Generated from test/vectors by test/move/vectors.ts: `npx vitest run test/move -u` regenerates it.
#[test_only]
/// Quotes of SUI/USD with 6 decimals, signed with the intent 3 by the ed25519 keys whose seeds are 32 bytes 07, 08 or 09.
module feed::vectors;

/// The time of the first quote.
public fun start_ms(): u64 {
    1700000000000
}

/// The signed bytes of the first quote.
public fun message(): vector<u8> {
    x"030068e5cf8b010000075355492f5553440640420f0000000000"
}

public fun public_key(signer: u64): vector<u8> {
    if (signer == 0) return x"ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c";
    if (signer == 1) return x"1398f62c6d1a457c51ba6a4b5f3dbd2f69fca93216218dc8997e416bd17d93ca";
    if (signer == 2) return x"fd1724385aa0c75b64fb78cd602fa1d991fdebf76b13c58ed702eac835e9f618";
    abort
}

/// Returns the signature of a value that was signed this many milliseconds after the first quote.
public fun signature(signer: u64, offset_ms: u64, value: u64): vector<u8> {
    if (signer == 0 && offset_ms == 0 && value == 1000000) return
        x"2fa5a5e3f1f7e7919b8927d6b4ceb46f900abe72b84be8b52bd4c3a1b2dc76c9e63250997c1d5eb1acd2c8d6b897450dfb885025a33a1fa39a1dc72e5c06940d";
    if (signer == 0 && offset_ms == 1000 && value == 1500000) return
        x"79d4e59bae41e9cdd6e065820bbdbc016fbdf7f02f72554b85fc6cefaadb00e9a392f1200a1cc71cb52828f06065d534f41670d0678f1fdd7a5a0bae9424000a";
    if (signer == 0 && offset_ms == 4999 && value == 2000000) return
        x"d3483390bda227e373e4bda208244bd9ebdba85560cf04780bd7e22228358ec953b74724357c367619a9176deaf7febe818f79a812b81cf7189cedc8be49e107";
    if (signer == 0 && offset_ms == 5000 && value == 1004999) return
        x"119fd3a3d3a8c6417951c81914a90e62808146f4a49c07711598c6a6cb9113a01dedea47b040177f531b8a814f10bb939c49232d11a8735598f7de3ec4ac3a0f";
    if (signer == 0 && offset_ms == 5000 && value == 1005000) return
        x"cef668f118aa0fac16953a4e1e9594bb1416d354892d9d6bb8374e766a8fd57c4430b35be0dee3d37c0162233df422adb365cb5756fcb9d4c6338988cae12301";
    if (signer == 0 && offset_ms == 5000 && value == 995001) return
        x"ce020b83a5ada762451609855e247e0e90c28c9a0db24448b8ee3a039a34a7eb0254f2835cb701420bac929037abedc515aca8b00eb3e638667b624f7c45cf0c";
    if (signer == 0 && offset_ms == 5000 && value == 995000) return
        x"6cbffc82c078b0b303c53bc138a83742959abc511810319bf865cde1c3e383ee6b64ade0604c224db23a6cda96df589ba63bb3f8cb2f79dc6f988ee343ed5308";
    if (signer == 0 && offset_ms == 29999 && value == 1000000) return
        x"770375d9aeb7de77040fd1e524b38b058a6d34944d54ff1688cad6b5c3d9b2c71374e67c872c899fc278a659ce9b9e64d4f24a2241c5c6b07d205148244dd908";
    if (signer == 0 && offset_ms == 30000 && value == 1000000) return
        x"9b6dc396df8203bdcf98d23e9df51b90d2037eceba4645d2681cbab0b5f41e99a770e184aaafcc908aca7caf61239f6846978abed6dde86c66310a590534f204";
    if (signer == 0 && offset_ms == 0 && value == 999) return
        x"df77b3f34802fb8fb516d1bf177c9151750cd5ed80ca8081b77fe72ec54bf6c40c0846160816610c4bab784636d431d54bbab5d05d462ba3ba32fb0d908c1c06";
    if (signer == 0 && offset_ms == 0 && value == 1000) return
        x"8155398762235f799c69b02838f88e5da607daa5762020018073ec9ebc6cd6f08d6ef47b6ff9337abe66f2044c673ced3a736539ca8e72eba1fc5bd6e884d509";
    if (signer == 0 && offset_ms == 0 && value == 10000000) return
        x"bc3498a23a9715f218b5c5fca4466487b02c790c6e15c5794407ae72168ca94c1d34d06da294cc2fb4ff6d619e8806948bef408a29d1f59eacad4c0a0f58cf0f";
    if (signer == 0 && offset_ms == 0 && value == 10000001) return
        x"8c385e1ce60f3564f908b38d16ebf8b02d210e6a6d8353b6f90871447811671f6b74a5ed379a4ee94525f181374faa98f88d5980e6aa52c21a2c75cb73f07c06";
    if (signer == 0 && offset_ms == 0 && value == 18446744073709551615) return
        x"150c57c2d0d78955b2740ceb8b83c2f45cefd12057458746051167811dac9b924de76edee14cfdbdee8e26d9a6b4cafa1503b152178ec494bc72d8bf93080b07";
    if (signer == 0 && offset_ms == 5000 && value == 1) return
        x"d8e238ea405da42264b9fd58fa240c37ea6a3534b467ee93673c382e14ffba6dcf41a9f0275f5aaa5eecc64f0c2e498751ba7ec8080efa99528afd3681dd5a0a";
    if (signer == 1 && offset_ms == 0 && value == 18446744073709551614) return
        x"453e87f2d1fd96bb9e023329c8917f24aa1ed9d4548acb4f34c80dc0c2d07fb906bb79cc1eb137518a69de870668c8f0bb42f52e2d6f68ac75f8473e586a4d0f";
    if (signer == 1 && offset_ms == 0 && value == 1100000) return
        x"7c999cfcaef86a78a9987f8278d1be10d3ab5c3f480f3ad3535a5988bbbf8e5fe1870f8e383757e4462106ce56f10d538dba15d3d44d7da354fbe9d82e66a602";
    if (signer == 1 && offset_ms == 0 && value == 1000001) return
        x"99bcb52275f8aa4fe2f173eace7f338b9a5fa0ea18e2e5e2efa3dc0e03a28298266538b3dd72ed3aafaebf128a2197f1bc15eb693fb8789037e6ef821428040b";
    if (signer == 1 && offset_ms == 5000 && value == 1200000) return
        x"1eed55dfeeeea8f69a1af68fab7c0674dfc8c09a40a9400de0e492b0dbbba865467e62d4ac3e398cc75ab664f0fef9e9ad6f65e660ad70ed82a1d2d26933ef03";
    if (signer == 2 && offset_ms == 1000 && value == 1300000) return
        x"019c7ccac5e62e9b677e56eddcb69dfbdbe9a4b4427ed8c5bf0b05ae0b240cb1b23ce37aa067b5536ac1b221b4f92f24adcdf104ef2bbec8c0aa52edb2400e0d";
    if (signer == 2 && offset_ms == 5000 && value == 1300000) return
        x"f7f3870bc7c195e9c5b5977524204e07085d5e7b8ad38e882384a35fdf1c1ce5371794281864b912d95a3ed93718ab696c2971626675e06b2b9ff3c08feeb203";
    abort
}
