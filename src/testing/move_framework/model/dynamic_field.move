/// Dynamic fields, and the log of what a transaction does, which is one of them: the VM has no other memory that
/// outlives a call.
module sui::dynamic_field;

use std::ascii::String;
use std::type_name;
use sui::address;
use sui::hash::blake2b256;
use sui::type_tag::{Self, KnownTag};

const EFieldAlreadyExists: u64 = 0;
const EFieldDoesNotExist: u64 = 1;
const EFieldTypeMismatch: u64 = 2;

/// The first byte that is hashed for the id of a field (`HashingIntentScope::ChildObjectId`).
const CHILD_OBJECT_ID: u8 = 0xf0;
const LOG_PARENT: address = @0x10;
const LOG: address = @0x11;
const LOG_IS_FULL: u64 = 1000;
/// Of notes: more than Sui allows of events. Of bytes: each seven take another run.
const MAX_NOTES: u64 = 1100;
const MAX_BYTES: u64 = 48_000;
const NOTE_BYTES: u64 = 5;
const MAX_TYPES: u64 = 255;
const NO_TYPE: u8 = 255;

/// Kinds of notes.
const FIELD_ADDED: u8 = 6;
const FIELD_REMOVED: u8 = 7;
const FIELD_BORROWED: u8 = 8;
const FIELD_LEFT: u8 = 9;

public struct Field<Name: copy + drop + store, Value: store> has key {
    id: UID,
    name: Name,
    value: Value,
}

public struct Note has copy, drop, store {
    kind: u8,
    /// Of its name, or NO_TYPE where it is known.
    type_index: u8,
    /// An address, or nothing.
    about: vector<u8>,
    value: vector<u8>,
}

public struct Notes has drop {
    types: vector<String>,
    notes: vector<Note>,
}

public struct Log has key {
    id: UID,
    types: vector<String>,
    notes: vector<Note>,
    size: u64,
    /// Fields whose value may have changed.
    borrowed: vector<address>,
    tags: vector<KnownTag>,
}

/// What is hashed for the id of a field, up to the tag of the key's type.
public struct Hashed<K> has drop {
    scope: u8,
    parent: address,
    key_length: u64,
    key: K,
}

public fun add<Name: copy + drop + store, Value: store>(object: &mut UID, name: Name, value: Value) {
    let parent = object.to_address();
    let hash = hash_type_and_key(parent, name);
    assert!(!has_child_object(parent, hash), EFieldAlreadyExists);
    let field = Field { id: object::new_uid_from_hash(hash), name, value };
    note<Field<Name, Value>>(FIELD_ADDED, parent, std::bcs::to_bytes(&field));
    add_child_object(parent, field);
}

public fun borrow<Name: copy + drop + store, Value: store>(object: &UID, name: Name): &Value {
    let hash = hash_type_and_key(object.to_address(), name);
    check<Name, Value>(object, hash);
    &borrow_child_object<Field<Name, Value>>(object, hash).value
}

public fun borrow_mut<Name: copy + drop + store, Value: store>(object: &mut UID, name: Name): &mut Value {
    let parent = object.to_address();
    let hash = hash_type_and_key(parent, name);
    check<Name, Value>(object, hash);
    note_borrowed<Field<Name, Value>>(parent, hash);
    &mut borrow_child_object_mut<Field<Name, Value>>(object, hash).value
}

public fun exists_<Name: copy + drop + store>(object: &UID, name: Name): bool {
    let parent = object.to_address();
    has_child_object(parent, hash_type_and_key(parent, name))
}

public fun remove<Name: copy + drop + store, Value: store>(object: &mut UID, name: Name): Value {
    let parent = object.to_address();
    let hash = hash_type_and_key(parent, name);
    check<Name, Value>(object, hash);
    note_untyped(FIELD_REMOVED, parent, std::bcs::to_bytes(&hash));
    let Field { id, name: _, value } = remove_child_object<Field<Name, Value>>(parent, hash);
    id.delete();
    value
}

public fun remove_if_exists<Name: copy + drop + store, Value: store>(
    object: &mut UID,
    name: Name,
): Option<Value> {
    if (exists_<Name>(object, name)) std::option::some(remove(object, name)) else std::option::none()
}

public fun exists_with_type<Name: copy + drop + store, Value: store>(object: &UID, name: Name): bool {
    let parent = object.to_address();
    has_child_object_with_ty<Field<Name, Value>>(parent, hash_type_and_key(parent, name))
}

fun check<Name: copy + drop + store, Value: store>(object: &UID, hash: address) {
    let parent = object.to_address();
    assert!(has_child_object(parent, hash), EFieldDoesNotExist);
    assert!(has_child_object_with_ty<Field<Name, Value>>(parent, hash), EFieldTypeMismatch);
}

/// As validators compute it: the native function hashes a length that is 4 bytes wide in WebAssembly.
public(package) fun hash_type_and_key<K: copy + drop + store>(parent: address, k: K): address {
    let log = remove_child_object<Log>(LOG_PARENT, LOG);
    let tag = type_tag::to_bytes(&type_name::with_original_ids<K>(), &log.tags);
    add_child_object(LOG_PARENT, log);
    let key_length = std::bcs::to_bytes(&k).length();
    let mut hashed = std::bcs::to_bytes(&Hashed { scope: CHILD_OBJECT_ID, parent, key_length, key: k });
    let mut i = 0;
    let length = tag.length();
    while (i < length) {
        hashed.push_back(tag[i]);
        i = i + 1;
    };
    address::from_bytes(blake2b256(&hashed))
}

public(package) native fun add_child_object<Child: key>(parent: address, child: Child);

public(package) native fun borrow_child_object<Child: key>(object: &UID, id: address): &Child;

public(package) native fun borrow_child_object_mut<Child: key>(object: &mut UID, id: address): &mut Child;

public(package) native fun has_child_object(parent: address, id: address): bool;

public(package) native fun remove_child_object<Child: key>(parent: address, id: address): Child;

public(package) native fun has_child_object_with_ty<Child: key>(parent: address, id: address): bool;

/// Begins the log, before the transaction. Types whose tags are known take less time.
public fun begin_log(tags: vector<KnownTag>) {
    let id = object::new_uid_from_hash(LOG);
    let (types, notes, borrowed) = (vector[], vector[], vector[]);
    add_child_object(LOG_PARENT, Log { id, types, notes, size: 0, borrowed, tags });
}

/// Notes something of a type, about an object, an address, or @0x0 for nothing.
public fun note<T>(kind: u8, about: address, value: vector<u8>) {
    let type_name = *type_name::with_original_ids<T>().as_string();
    let mut log = remove_child_object<Log>(LOG_PARENT, LOG);
    let (is_known, mut index) = log.types.index_of(&type_name);
    if (!is_known) {
        index = log.types.length();
        assert!(index < MAX_TYPES, LOG_IS_FULL);
        log.size = log.size + type_name.as_bytes().length();
        log.types.push_back(type_name);
    };
    add_child_object(LOG_PARENT, log);
    write(kind, index as u8, about, value);
}

public fun note_untyped(kind: u8, about: address, value: vector<u8>) {
    write(kind, NO_TYPE, about, value);
}

fun note_borrowed<T>(parent: address, id: address) {
    let log = remove_child_object<Log>(LOG_PARENT, LOG);
    let is_noted = log.borrowed.contains(&id);
    add_child_object(LOG_PARENT, log);
    if (is_noted) return;
    note<T>(FIELD_BORROWED, parent, std::bcs::to_bytes(&id));
    let mut log = remove_child_object<Log>(LOG_PARENT, LOG);
    log.borrowed.push_back(id);
    add_child_object(LOG_PARENT, log);
}

fun write(kind: u8, type_index: u8, subject: address, value: vector<u8>) {
    let about = if (subject == @0x0) vector[] else std::bcs::to_bytes(&subject);
    let mut log = remove_child_object<Log>(LOG_PARENT, LOG);
    log.size = log.size + about.length() + value.length() + NOTE_BYTES;
    assert!(log.notes.length() < MAX_NOTES && log.size <= MAX_BYTES, LOG_IS_FULL);
    log.notes.push_back(Note { kind, type_index, about, value });
    add_child_object(LOG_PARENT, log);
}

/// The whole log in BCS, which ends it.
public fun end_log(): vector<u8> {
    let Log { id, types, notes, size: _, borrowed: _, tags: _ } = remove_child_object<Log>(LOG_PARENT, LOG);
    id.delete();
    std::bcs::to_bytes(&Notes { types, notes })
}

/// Puts a field, or an object in one, where the ledger has it.
public fun restore<Child: key>(parent: address, child: Child) {
    add_child_object(parent, child)
}

#[test_only]
public fun model_make_Field<Name: copy + drop + store, Value: store>(
    id: address,
    name: Name,
    value: Value,
): Field<Name, Value> {
    Field { id: object::new_uid_from_hash(id), name, value }
}

/// Notes a field as the transaction leaves it, if it does, and borrowed it.
public fun note_left<Child: key>(parent: address, id: address) {
    let log = remove_child_object<Log>(LOG_PARENT, LOG);
    let is_borrowed = log.borrowed.contains(&id);
    add_child_object(LOG_PARENT, log);
    if (!is_borrowed || !has_child_object_with_ty<Child>(parent, id)) return;
    let child = remove_child_object<Child>(parent, id);
    note<Child>(FIELD_LEFT, parent, std::bcs::to_bytes(&child));
    add_child_object(parent, child);
}

/// Seven bytes of the log, the least significant first, as an abort can carry them; chunk 0 is the number of bytes.
public fun chunk(bytes: &vector<u8>, index: u64): u64 {
    if (index == 0) return bytes.length();
    let mut chunk = 0;
    let mut at = index * 7;
    let end = at - 7;
    while (at > end) {
        at = at - 1;
        chunk = chunk * 256 + (if (at < bytes.length()) bytes[at] as u64 else 0);
    };
    chunk
}
