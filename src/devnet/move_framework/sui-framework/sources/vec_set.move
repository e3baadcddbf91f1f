module sui::vec_set;

const EKeyAlreadyExists: u64 = 0;
const EKeyDoesNotExist: u64 = 1;

public struct VecSet<K: copy + drop> has copy, drop, store {
    contents: vector<K>,
}

public fun empty<K: copy + drop>(): VecSet<K> {
    VecSet { contents: vector[] }
}

public fun from_keys<K: copy + drop>(mut keys: vector<K>): VecSet<K> {
    keys.reverse();
    let mut set = empty();
    while (!keys.is_empty()) set.insert(keys.pop_back());
    set
}

public fun insert<K: copy + drop>(self: &mut VecSet<K>, key: K) {
    assert!(!self.contains(&key), EKeyAlreadyExists);
    self.contents.push_back(key)
}

public fun remove<K: copy + drop>(self: &mut VecSet<K>, key: &K) {
    let (is_contained, index) = self.contents.index_of(key);
    assert!(is_contained, EKeyDoesNotExist);
    self.contents.remove(index);
}

public fun contains<K: copy + drop>(self: &VecSet<K>, key: &K): bool {
    self.contents.contains(key)
}
