/// The parts of a verified attestation document that registration uses.
module enclave::attested;

use enclave::pcrs::{Self, Pcrs};
use sui::nitro_attestation::NitroAttestationDocument;

/// The registers, the public key (empty where the document has none) and the time of an attestation.
public struct Attested(Pcrs, vector<u8>, u64) has drop;

/// Returns the parts of an attestation. `at_ms` is in milliseconds since the Unix epoch.
public(package) fun new(pcrs: Pcrs, pk: vector<u8>, at_ms: u64): Attested {
    Attested(pcrs, pk, at_ms)
}

/// Returns the parts of a verified document. See `enclave::pcrs::of_document` for what aborts.
public(package) fun of_document(document: &NitroAttestationDocument): Attested {
    let pk = (*document.public_key()).destroy_with_default(vector[]);
    new(pcrs::of_document(document), pk, *document.timestamp())
}

/// Returns the time of the attestation, in milliseconds since the Unix epoch.
public(package) fun at_ms(attested: &Attested): u64 {
    attested.2
}

/// Returns registers, public key and time.
public(package) fun unpack(attested: Attested): (Pcrs, vector<u8>, u64) {
    let Attested(pcrs, pk, at_ms) = attested;
    (pcrs, pk, at_ms)
}
