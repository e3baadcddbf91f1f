module sui::table;

use sui::dynamic_field as df;

const ETableNotEmpty: u64 = 0;

public struct Table<phantom K: copy + drop + store, phantom V: store> has key, store {
    id: UID,
    size: u64,
}

public fun new<K: copy + drop + store, V: store>(ctx: &mut TxContext): Table<K, V> {
    Table { id: object::new(ctx), size: 0 }
}

public fun add<K: copy + drop + store, V: store>(self: &mut Table<K, V>, key: K, value: V) {
    df::add(&mut self.id, key, value);
    self.size = self.size + 1;
}

#[syntax(index)]
public fun borrow<K: copy + drop + store, V: store>(self: &Table<K, V>, key: K): &V {
    df::borrow(&self.id, key)
}

#[syntax(index)]
public fun borrow_mut<K: copy + drop + store, V: store>(self: &mut Table<K, V>, key: K): &mut V {
    df::borrow_mut(&mut self.id, key)
}

public fun remove<K: copy + drop + store, V: store>(self: &mut Table<K, V>, key: K): V {
    self.size = self.size - 1;
    df::remove(&mut self.id, key)
}

public fun contains<K: copy + drop + store, V: store>(self: &Table<K, V>, key: K): bool {
    df::exists_with_type<K, V>(&self.id, key)
}

public fun length<K: copy + drop + store, V: store>(self: &Table<K, V>): u64 {
    self.size
}

public fun is_empty<K: copy + drop + store, V: store>(self: &Table<K, V>): bool {
    self.size == 0
}

public fun destroy_empty<K: copy + drop + store, V: store>(self: Table<K, V>) {
    let Table { id, size } = self;
    assert!(size == 0, ETableNotEmpty);
    id.delete();
}
