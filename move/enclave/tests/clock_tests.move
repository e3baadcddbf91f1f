/// Calls of functions that take a clock, for tests in which the time makes no difference.
#[test_only]
module enclave::clock_tests;

use enclave::enclave::{Enclave, EnclaveConfig};
use sui::clock::{Self, Clock};

/// Returns whether an enclave is stale. Without an overlap, the time makes no difference.
public fun is_stale<T>(enclave: &Enclave<T>, config: &EnclaveConfig<T>): bool {
    let clock = at(0);
    let is_stale = enclave.is_stale(config, &clock);
    clock.destroy_for_testing();
    is_stale
}

/// Calls `enclave::destroy_old_enclave` at time 0.
public fun destroy_old<T>(enclave: Enclave<T>, config: &EnclaveConfig<T>) {
    let clock = at(0);
    enclave.destroy_old_enclave(config, &clock);
    clock.destroy_for_testing();
}

/// Returns a clock at this time, in milliseconds since the Unix epoch.
public fun at(timestamp_ms: u64): Clock {
    let mut clock = clock::create_for_testing(&mut tx_context::dummy());
    clock.set_for_testing(timestamp_ms);
    clock
}
