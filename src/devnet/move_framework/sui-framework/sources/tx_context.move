module sui::tx_context;

#[allow(unused_field)]
public struct TxContext has drop {
    sender: address,
    tx_hash: vector<u8>,
    epoch: u64,
    epoch_timestamp_ms: u64,
    ids_created: u64,
}

public fun sender(_self: &TxContext): address {
    native_sender()
}

public fun fresh_object_address(_ctx: &mut TxContext): address {
    fresh_id()
}

#[test_only]
public fun new_from_hint(
    addr: address,
    hint: u64,
    epoch: u64,
    epoch_timestamp_ms: u64,
    ids_created: u64,
): TxContext {
    let mut tx_hash = std::bcs::to_bytes(&hint);
    while (tx_hash.length() < 32) tx_hash.push_back(0);
    replace(addr, tx_hash, epoch, epoch_timestamp_ms, ids_created, 0, 0, 0, vector[]);
    TxContext { sender: addr, tx_hash, epoch, epoch_timestamp_ms, ids_created }
}

#[test_only]
public fun dummy(): TxContext {
    new_from_hint(@0x0, 0, 0, 0, 0)
}

native fun native_sender(): address;

native fun fresh_id(): address;

#[test_only]
native fun replace(
    sender: address,
    tx_hash: vector<u8>,
    epoch: u64,
    epoch_timestamp_ms: u64,
    ids_created: u64,
    rgp: u64,
    gas_price: u64,
    gas_budget: u64,
    sponsor: vector<address>,
);
