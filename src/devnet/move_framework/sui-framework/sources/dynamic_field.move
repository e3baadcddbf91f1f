module sui::dynamic_field;

const EFieldAlreadyExists: u64 = 0;

public struct Field<Name: copy + drop + store, Value: store> has key {
    id: UID,
    name: Name,
    value: Value,
}

public fun add<Name: copy + drop + store, Value: store>(object: &mut UID, name: Name, value: Value) {
    let parent = object.to_address();
    let hash = hash_type_and_key(parent, name);
    assert!(!has_child_object(parent, hash), EFieldAlreadyExists);
    add_child_object(parent, Field { id: object::new_uid_from_hash(hash), name, value });
}

public fun borrow<Name: copy + drop + store, Value: store>(object: &UID, name: Name): &Value {
    let hash = hash_type_and_key(object.to_address(), name);
    &borrow_child_object<Field<Name, Value>>(object, hash).value
}

public fun borrow_mut<Name: copy + drop + store, Value: store>(object: &mut UID, name: Name): &mut Value {
    let hash = hash_type_and_key(object.to_address(), name);
    &mut borrow_child_object_mut<Field<Name, Value>>(object, hash).value
}

public fun exists_<Name: copy + drop + store>(object: &UID, name: Name): bool {
    let parent = object.to_address();
    has_child_object(parent, hash_type_and_key(parent, name))
}

public fun remove<Name: copy + drop + store, Value: store>(object: &mut UID, name: Name): Value {
    let parent = object.to_address();
    let hash = hash_type_and_key(parent, name);
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

public(package) fun field_uid<Name: copy + drop + store, Value: store>(object: &UID, name: Name): &UID {
    let hash = hash_type_and_key(object.to_address(), name);
    &borrow_child_object<Field<Name, Value>>(object, hash).id
}

public(package) fun field_uid_mut<Name: copy + drop + store, Value: store>(object: &mut UID, name: Name): &mut UID {
    let hash = hash_type_and_key(object.to_address(), name);
    &mut borrow_child_object_mut<Field<Name, Value>>(object, hash).id
}

public(package) native fun hash_type_and_key<K: copy + drop + store>(parent: address, k: K): address;

public(package) native fun add_child_object<Child: key>(parent: address, child: Child);

public(package) native fun borrow_child_object<Child: key>(object: &UID, id: address): &Child;

public(package) native fun borrow_child_object_mut<Child: key>(object: &mut UID, id: address): &mut Child;

public(package) native fun has_child_object(parent: address, id: address): bool;

public(package) native fun remove_child_object<Child: key>(parent: address, id: address): Child;

public(package) native fun has_child_object_with_ty<Child: key>(parent: address, id: address): bool;
