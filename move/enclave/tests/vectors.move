// Generated from test/vectors by test/move/vectors.ts: `npx vitest run test/move -u` regenerates it.
#[test_only]
module enclave::vectors;

use std::string::String;

// The parts of an answer that a production enclave signed.
public fun public_key(): vector<u8> {
    x"e8e62201dbe293b703c759f653107acbc2c911fa1d2e66f2c747bec95971a2af"
}

public fun intent(): u8 {
    0
}

public fun timestamp_ms(): u64 {
    1744683300000
}

public fun location(): String {
    x"53616e204672616e636973636f".to_string()
}

public fun temperature(): u64 {
    13
}

public fun signature(): vector<u8> {
    x"77b6d8be225440d00f3d6eb52e91076a8927cebfb520e58c19daf31ecf06b3798ec3d3ce9630a9eceee46d24f057794a60dd781657cb06d952269cfc5ae19500"
}

// The parts of an award that counts once, signed by two enclaves.
public fun once_intent(): u8 {
    3
}

public fun once_timestamp_ms(): u64 {
    1744683300000
}

public fun nonce(): vector<u8> {
    x"00112233445566778899aabbccddeeff"
}

public fun recipient(): address {
    @0xa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1
}

public fun points(): u64 {
    250
}

public fun once_bytes(): vector<u8> {
    x"03a0743a37960100001000112233445566778899aabbccddeeffa1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1fa00000000000000"
}

public fun once_key(): vector<u8> {
    x"ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c"
}

public fun once_signature(): vector<u8> {
    x"c68bc7d04a023866d985f0e46ef965fbd01e592111a5e17a45d307ccb0686afdead41362d5654a76159e6ee229775dd15e6ca105ac48e8022227d41d7a5d5207"
}

public fun other_once_key(): vector<u8> {
    x"1398f62c6d1a457c51ba6a4b5f3dbd2f69fca93216218dc8997e416bd17d93ca"
}

public fun other_once_signature(): vector<u8> {
    x"4f19e02c3f188b799a9d622bc205d3f67a74cb07f8fe6dbe0e8012c5f63553e3b9731ce6b3017a2b7576a17625dc29c116014d4794262c5b89a82eb93e6beb03"
}
