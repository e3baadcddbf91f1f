module std::type_name;

use std::ascii::{Self, String};

const ADDRESS_DIGITS: u64 = 64;
const COLON: u8 = 58;

public struct TypeName has copy, drop, store {
    name: String,
}

public native fun with_original_ids<T>(): TypeName;

public fun as_string(self: &TypeName): &String {
    &self.name
}

public fun address_string(self: &TypeName): String {
    let bytes = self.name.as_bytes();
    let mut address = vector[];
    let mut i = 0;
    while (i < ADDRESS_DIGITS) {
        address.push_back(bytes[i]);
        i = i + 1;
    };
    ascii::string(address)
}

public fun module_string(self: &TypeName): String {
    let bytes = self.name.as_bytes();
    let mut name = vector[];
    let mut i = ADDRESS_DIGITS + 2;
    while (bytes[i] != COLON) {
        name.push_back(bytes[i]);
        i = i + 1;
    };
    ascii::string(name)
}
