module sui::vec_map;

public struct Entry<K: copy, V> has copy, drop, store {
    key: K,
    value: V,
}

#[allow(unused_field)]
public struct VecMap<K: copy, V> has copy, drop, store {
    contents: vector<Entry<K, V>>,
}
