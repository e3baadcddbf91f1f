module sui::nitro_attestation;

use sui::clock::Clock;

public struct PCREntry has drop {
    index: u8,
    value: vector<u8>,
}

#[allow(unused_field)]
public struct NitroAttestationDocument has drop {
    module_id: vector<u8>,
    timestamp: u64,
    digest: vector<u8>,
    pcrs: vector<PCREntry>,
    public_key: Option<vector<u8>>,
    user_data: Option<vector<u8>>,
    nonce: Option<vector<u8>>,
}

entry fun load_nitro_attestation(attestation: vector<u8>, clock: &Clock): NitroAttestationDocument {
    load_nitro_attestation_internal(&attestation, clock.timestamp_ms())
}

public fun timestamp(attestation: &NitroAttestationDocument): &u64 {
    &attestation.timestamp
}

public fun pcrs(attestation: &NitroAttestationDocument): &vector<PCREntry> {
    &attestation.pcrs
}

public fun public_key(attestation: &NitroAttestationDocument): &Option<vector<u8>> {
    &attestation.public_key
}

public fun index(entry: &PCREntry): u8 {
    entry.index
}

public fun value(entry: &PCREntry): &vector<u8> {
    &entry.value
}

native fun load_nitro_attestation_internal(
    attestation: &vector<u8>,
    current_timestamp: u64,
): NitroAttestationDocument;
