module sui::vec_map;

const EKeyAlreadyExists: u64 = 0;
const EKeyDoesNotExist: u64 = 1;

public struct Entry<K: copy, V> has copy, drop, store {
    key: K,
    value: V,
}

public struct VecMap<K: copy, V> has copy, drop, store {
    contents: vector<Entry<K, V>>,
}

public fun empty<K: copy, V>(): VecMap<K, V> {
    VecMap { contents: vector[] }
}

public fun insert<K: copy, V>(self: &mut VecMap<K, V>, key: K, value: V) {
    assert!(!self.contains(&key), EKeyAlreadyExists);
    self.contents.push_back(Entry { key, value })
}

public fun remove<K: copy, V>(self: &mut VecMap<K, V>, key: &K): (K, V) {
    let index = self.get_idx(key);
    let Entry { key, value } = self.contents.remove(index);
    (key, value)
}

#[syntax(index)]
public fun get<K: copy, V>(self: &VecMap<K, V>, key: &K): &V {
    let index = self.get_idx(key);
    &self.contents[index].value
}

#[syntax(index)]
public fun get_mut<K: copy, V>(self: &mut VecMap<K, V>, key: &K): &mut V {
    let index = self.get_idx(key);
    &mut self.contents[index].value
}

public fun contains<K: copy, V>(self: &VecMap<K, V>, key: &K): bool {
    self.index_of(key) < self.contents.length()
}

public fun length<K: copy, V>(self: &VecMap<K, V>): u64 {
    self.contents.length()
}

public fun is_empty<K: copy, V>(self: &VecMap<K, V>): bool {
    self.contents.is_empty()
}

public fun get_idx<K: copy, V>(self: &VecMap<K, V>, key: &K): u64 {
    let index = self.index_of(key);
    assert!(index < self.contents.length(), EKeyDoesNotExist);
    index
}

/// Returns the index of the key, or the length of the map if it lacks the key.
fun index_of<K: copy, V>(self: &VecMap<K, V>, key: &K): u64 {
    let mut index = 0;
    while (index < self.contents.length() && &self.contents[index].key != key) index = index + 1;
    index
}
