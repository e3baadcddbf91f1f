/// The registers that identify an enclave's image.
module enclave::pcrs;

use sui::nitro_attestation::NitroAttestationDocument;

// Clients tell errors apart by these codes, which never change, or by the names.

#[error(code = 1)]
const EPcrMissing: vector<u8> = b"Registers PCR0, PCR1 and PCR2 must all be there";
#[error(code = 2)]
const EPcrLength: vector<u8> = b"A register is 48 bytes (SHA-384)";
#[error(code = 3)]
const EDebugPcrs: vector<u8> =
    b"PCR0 is all zero: an enclave in debug mode, whose console and memory the host can read";

/// Size of a register: SHA-384.
const PCR_BYTES: u64 = 48;
/// Value of each of PCR0 to PCR2 in debug mode.
const DEBUG_PCR: vector<u8> =
    x"000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000";

/// PCR0, PCR1 and PCR2, each of 48 bytes. PCR0 is not all zero: an enclave in debug mode can't have a `Pcrs`.
public struct Pcrs(vector<u8>, vector<u8>, vector<u8>) has copy, drop, store;

/// Aborts if a register is empty or not 48 bytes long, or if PCR0 is all zero.
public(package) fun new(pcr0: vector<u8>, pcr1: vector<u8>, pcr2: vector<u8>): Pcrs {
    assert!(!pcr0.is_empty() && !pcr1.is_empty() && !pcr2.is_empty(), EPcrMissing);
    assert!(
        pcr0.length() == PCR_BYTES && pcr1.length() == PCR_BYTES && pcr2.length() == PCR_BYTES,
        EPcrLength,
    );
    assert!(pcr0 != DEBUG_PCR, EDebugPcrs);
    Pcrs(pcr0, pcr1, pcr2)
}

/// Returns the registers of a verified document, or aborts as `new` does. A missing register counts as empty.
public(package) fun of_document(document: &NitroAttestationDocument): Pcrs {
    new(document.register(0), document.register(1), document.register(2))
}

/// Returns the digest of the kernel, the command line and all ramdisks.
public fun pcr0(pcrs: &Pcrs): &vector<u8> {
    &pcrs.0
}

/// Returns the digest of the kernel, the command line and the first ramdisk.
public fun pcr1(pcrs: &Pcrs): &vector<u8> {
    &pcrs.1
}

/// Returns the digest of the other ramdisks.
public fun pcr2(pcrs: &Pcrs): &vector<u8> {
    &pcrs.2
}

use fun register as NitroAttestationDocument.register;

/// Finds a register by its index, since its position in the list depends on the other registers.
fun register(document: &NitroAttestationDocument, index: u8): vector<u8> {
    let mut value = vector[];
    document.pcrs().do_ref!(|entry| if (entry.index() == index) value = *entry.value());
    value
}
