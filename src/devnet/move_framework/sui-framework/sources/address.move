module sui::address;

const EAddressParseError: u64 = 0;

public native fun from_bytes(bytes: vector<u8>): address;

public native fun to_u256(a: address): u256;

public native fun from_u256(n: u256): address;

public fun to_bytes(a: address): vector<u8> {
    std::bcs::to_bytes(&a)
}

/// Parses an address of 64 hexadecimal digits.
public fun from_ascii_bytes(digits: &vector<u8>): address {
    assert!(digits.length() == 64, EAddressParseError);
    let mut bytes = vector[];
    let mut i = 0;
    while (i < 64) {
        bytes.push_back(value_of(digits[i]) * 16 + value_of(digits[i + 1]));
        i = i + 2;
    };
    from_bytes(bytes)
}

fun value_of(digit: u8): u8 {
    if (digit >= 48 && digit < 58) return digit - 48;
    if (digit >= 65 && digit < 71) return digit - 55;
    assert!(digit >= 97 && digit < 103, EAddressParseError);
    digit - 87
}
