/// `TypeTag` in BCS, from the name of a type.
module sui::type_tag;

use std::type_name::TypeName;
use sui::address;

const ADDRESS_DIGITS: u64 = 64;
const COLON: u8 = 58;
const LESS: u8 = 60;
const GREATER: u8 = 62;
const COMMA: u8 = 44;
const VECTOR: u8 = 6;
const STRUCT: u8 = 7;

/// In the order of their tags; the names of 6 and 7 are never those of a primitive type.
const PRIMITIVES: vector<vector<u8>> = vector[
    b"bool",
    b"u8",
    b"u64",
    b"u128",
    b"address",
    b"signer",
    b"",
    b"",
    b"u16",
    b"u32",
    b"u256",
];

/// The name of a type, and its tag in BCS.
public struct KnownTag has copy, drop, store {
    name: vector<u8>,
    tag: vector<u8>,
}

public fun known(name: vector<u8>, tag: vector<u8>): KnownTag {
    KnownTag { name, tag }
}

public(package) fun to_bytes(type_name: &TypeName, known: &vector<KnownTag>): vector<u8> {
    let name = type_name.as_string().as_bytes();
    let mut i = 0;
    while (i < known.length()) {
        if (&known[i].name == name) return known[i].tag;
        i = i + 1;
    };
    let mut tag = vector[];
    read(name, 0, &mut tag);
    tag
}

/// Writes the tag of the type that begins there, and returns where it ends.
fun read(name: &vector<u8>, at: u64, tag: &mut vector<u8>): u64 {
    let (first, mut end) = word(name, at);
    if (first.length() == ADDRESS_DIGITS) {
        tag.push_back(STRUCT);
        tag.append(std::bcs::to_bytes(&address::from_ascii_bytes(&first)));
        let mut words = 0u8;
        while (words < 2) {
            let (identifier, after) = word(name, end + 2);
            tag.append(std::bcs::to_bytes(&identifier));
            end = after;
            words = words + 1;
        };
        let mut arguments = vector[];
        let mut count = 0u8;
        if (end < name.length() && name[end] == LESS) {
            while (name[end] != GREATER) {
                end = read(name, end + 1, &mut arguments);
                count = count + 1;
            };
            end = end + 1;
        };
        tag.push_back(count);
        tag.append(arguments);
        return end
    };
    if (first == b"vector") {
        tag.push_back(VECTOR);
        return read(name, end + 1, tag) + 1
    };
    let primitives = PRIMITIVES;
    let (_, index) = primitives.index_of(&first);
    tag.push_back(index as u8);
    end
}

fun word(name: &vector<u8>, from: u64): (vector<u8>, u64) {
    let mut word = vector[];
    let mut at = from;
    while (at < name.length()) {
        let byte = name[at];
        if (byte == COLON || byte == LESS || byte == GREATER || byte == COMMA) break;
        word.push_back(byte);
        at = at + 1;
    };
    (word, at)
}
