module std::ascii;

const EInvalidASCIICharacter: u64 = 0x10000;

public struct String has copy, drop, store {
    bytes: vector<u8>,
}

public fun string(bytes: vector<u8>): String {
    bytes.do_ref!(|byte| assert!(*byte < 128, EInvalidASCIICharacter));
    String { bytes }
}

public fun as_bytes(string: &String): &vector<u8> {
    &string.bytes
}
