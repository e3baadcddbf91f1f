module sui::derived_object;

use sui::dynamic_field as df;

#[error(code = 0)]
const EObjectAlreadyExists: vector<u8> = b"Derived object is already claimed.";

public struct Claimed(ID) has copy, drop, store;

public struct DerivedObjectKey<K: copy + drop + store>(K) has copy, drop, store;

public enum ClaimedStatus has store {
    Reserved,
}

public fun claim<K: copy + drop + store>(parent: &mut UID, key: K): UID {
    let derived = derive_address(parent.to_inner(), key);
    let claimed = Claimed(object::id_from_address(derived));
    assert!(!df::exists_(parent, claimed), EObjectAlreadyExists);
    df::add(parent, claimed, ClaimedStatus::Reserved);
    object::new_uid_from_hash(derived)
}

public fun exists<K: copy + drop + store>(parent: &UID, key: K): bool {
    let derived = derive_address(parent.to_inner(), key);
    df::exists_(parent, Claimed(object::id_from_address(derived)))
}

public fun derive_address<K: copy + drop + store>(parent: ID, key: K): address {
    df::hash_type_and_key(parent.to_address(), DerivedObjectKey(key))
}
