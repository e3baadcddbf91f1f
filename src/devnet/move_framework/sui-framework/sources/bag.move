module sui::bag;

use sui::dynamic_field as df;

const EBagNotEmpty: u64 = 0;

public struct Bag has key, store {
    id: UID,
    size: u64,
}

public fun new(ctx: &mut TxContext): Bag {
    Bag { id: object::new(ctx), size: 0 }
}

public fun add<K: copy + drop + store, V: store>(bag: &mut Bag, k: K, v: V) {
    df::add(&mut bag.id, k, v);
    bag.size = bag.size + 1;
}

#[syntax(index)]
public fun borrow<K: copy + drop + store, V: store>(bag: &Bag, k: K): &V {
    df::borrow(&bag.id, k)
}

#[syntax(index)]
public fun borrow_mut<K: copy + drop + store, V: store>(bag: &mut Bag, k: K): &mut V {
    df::borrow_mut(&mut bag.id, k)
}

public fun remove<K: copy + drop + store, V: store>(bag: &mut Bag, k: K): V {
    let v = df::remove(&mut bag.id, k);
    bag.size = bag.size - 1;
    v
}

public fun contains<K: copy + drop + store>(bag: &Bag, k: K): bool {
    df::exists_<K>(&bag.id, k)
}

public fun contains_with_type<K: copy + drop + store, V: store>(bag: &Bag, k: K): bool {
    df::exists_with_type<K, V>(&bag.id, k)
}

public fun length(bag: &Bag): u64 {
    bag.size
}

public fun is_empty(bag: &Bag): bool {
    bag.size == 0
}

public fun destroy_empty(bag: Bag) {
    let Bag { id, size } = bag;
    assert!(size == 0, EBagNotEmpty);
    id.delete()
}
