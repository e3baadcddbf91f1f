/// Dynamic fields whose values stay objects of the chain.
module sui::dynamic_object_field;

use sui::dynamic_field as df;

/// The name of the field that holds the object's id.
public struct Wrapper<Name> has copy, drop, store {
    name: Name,
}

public fun add<Name: copy + drop + store, Value: key + store>(object: &mut UID, name: Name, value: Value) {
    let key = Wrapper { name };
    df::add(object, key, object::id(&value));
    df::add_child_object(field_of(object, key), value);
}

public fun borrow<Name: copy + drop + store, Value: key + store>(object: &UID, name: Name): &Value {
    let key = Wrapper { name };
    let id = *df::borrow<Wrapper<Name>, ID>(object, key);
    df::borrow_child_object<Value>(df::field_uid<Wrapper<Name>, ID>(object, key), id.to_address())
}

public fun borrow_mut<Name: copy + drop + store, Value: key + store>(object: &mut UID, name: Name): &mut Value {
    let key = Wrapper { name };
    let id = *df::borrow<Wrapper<Name>, ID>(object, key);
    df::borrow_child_object_mut<Value>(df::field_uid_mut<Wrapper<Name>, ID>(object, key), id.to_address())
}

public fun remove<Name: copy + drop + store, Value: key + store>(object: &mut UID, name: Name): Value {
    let key = Wrapper { name };
    let parent = field_of(object, key);
    let id = *df::borrow<Wrapper<Name>, ID>(object, key);
    let value = df::remove_child_object<Value>(parent, id.to_address());
    df::remove<Wrapper<Name>, ID>(object, key);
    value
}

public fun exists_<Name: copy + drop + store>(object: &UID, name: Name): bool {
    df::exists_with_type<Wrapper<Name>, ID>(object, Wrapper { name })
}

public fun id<Name: copy + drop + store>(object: &UID, name: Name): Option<ID> {
    let key = Wrapper { name };
    if (!df::exists_with_type<Wrapper<Name>, ID>(object, key)) return std::option::none();
    std::option::some(*df::borrow<Wrapper<Name>, ID>(object, key))
}

/// Returns the address of the field, which is the parent of the object.
fun field_of<Name: copy + drop + store>(object: &UID, key: Wrapper<Name>): address {
    df::field_uid<Wrapper<Name>, ID>(object, key).to_address()
}
