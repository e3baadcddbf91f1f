module sui::object;

public use fun id_to_address as ID.to_address;
public use fun uid_to_inner as UID.to_inner;
public use fun uid_to_address as UID.to_address;

public struct ID has copy, drop, store {
    bytes: address,
}

public struct UID has store {
    id: ID,
}

public fun id_to_address(id: &ID): address {
    id.bytes
}

public fun id_from_address(bytes: address): ID {
    ID { bytes }
}

public fun uid_to_inner(uid: &UID): ID {
    uid.id
}

public fun uid_to_address(uid: &UID): address {
    uid.id.bytes
}

public fun new(ctx: &mut TxContext): UID {
    UID { id: ID { bytes: ctx.fresh_object_address() } }
}

public fun delete(id: UID) {
    let UID { id: ID { bytes } } = id;
    delete_impl(bytes)
}

public fun id<T: key>(obj: &T): ID {
    borrow_uid(obj).id
}

public fun id_address<T: key>(obj: &T): address {
    borrow_uid(obj).id.bytes
}

public(package) fun new_uid_from_hash(bytes: address): UID {
    record_new_uid(bytes);
    UID { id: ID { bytes } }
}

native fun borrow_uid<T: key>(obj: &T): &UID;

native fun delete_impl(id: address);

native fun record_new_uid(id: address);
