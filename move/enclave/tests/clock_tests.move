/// What the clock decides about an enclave, for tests in which the time makes no difference.
#[test_only]
module enclave::clock_tests;

use enclave::enclave::{Enclave, EnclaveConfig};
use sui::clock::{Self, Clock};

/// Without an overlap the answer is the same at any time.
public fun is_stale<T>(enclave: &Enclave<T>, config: &EnclaveConfig<T>): bool {
    let clock = at(0);
    let is_stale = enclave.is_stale(config, &clock);
    clock.destroy_for_testing();
    is_stale
}

/// `enclave::destroy_old_enclave`, at any time.
public fun destroy_old<T>(enclave: Enclave<T>, config: &EnclaveConfig<T>) {
    let clock = at(0);
    enclave.destroy_old_enclave(config, &clock);
    clock.destroy_for_testing();
}

/// A clock at this time, in milliseconds since the Unix epoch.
public fun at(timestamp_ms: u64): Clock {
    let mut clock = clock::create_for_testing(&mut tx_context::dummy());
    clock.set_for_testing(timestamp_ms);
    clock
}
