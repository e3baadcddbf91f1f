// Generated from test/vectors by test/move/vectors.ts: `npx vitest run test/move -u` regenerates it.
#[test_only]
module enclave::vectors;

use std::string::String;

/// The answer that a production enclave signed.
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
