#[test_only]
module sui::test_scenario;

use sui::vec_map::VecMap;

const ECantReturnObject: u64 = 2;
const EEmptyInventory: u64 = 3;

public struct Scenario {
    txn_number: u64,
    ctx: TxContext,
}

#[allow(unused_field)]
public struct TransactionEffects has drop {
    created: vector<ID>,
    written: vector<ID>,
    deleted: vector<ID>,
    transferred_to_account: VecMap<ID, address>,
    transferred_to_object: VecMap<ID, ID>,
    shared: vector<ID>,
    frozen: vector<ID>,
    num_user_events: u64,
}

public fun begin(sender: address): Scenario {
    Scenario { txn_number: 0, ctx: tx_context::new_from_hint(sender, 0, 0, 0, 0) }
}

public fun next_tx(scenario: &mut Scenario, sender: address): TransactionEffects {
    scenario.txn_number = scenario.txn_number + 1;
    scenario.ctx = tx_context::new_from_hint(sender, scenario.txn_number, 0, 0, 0);
    end_transaction()
}

public fun end(scenario: Scenario): TransactionEffects {
    let Scenario { txn_number: _, ctx: _ } = scenario;
    end_transaction()
}

public fun ctx(scenario: &mut Scenario): &mut TxContext {
    &mut scenario.ctx
}

public fun sender(scenario: &Scenario): address {
    scenario.ctx.sender()
}

public fun deleted(effects: &TransactionEffects): vector<ID> {
    effects.deleted
}

public fun take_from_sender<T: key>(scenario: &Scenario): T {
    let id = most_recent_id_for_address<T>(scenario.sender());
    assert!(id.is_some(), EEmptyInventory);
    take_from_address_by_id(scenario, scenario.sender(), id.destroy_some())
}

public fun return_to_sender<T: key>(scenario: &Scenario, t: T) {
    assert!(was_taken_from_address(scenario.sender(), object::id(&t)), ECantReturnObject);
    transfer::transfer_impl(t, scenario.sender())
}

public fun has_most_recent_shared<T: key>(): bool {
    most_recent_id_shared<T>().is_some()
}

public fun take_shared<T: key>(scenario: &Scenario): T {
    let id = most_recent_id_shared<T>();
    assert!(id.is_some(), EEmptyInventory);
    take_shared_by_id(scenario, id.destroy_some())
}

public fun return_shared<T: key>(t: T) {
    assert!(was_taken_shared(object::id(&t)), ECantReturnObject);
    transfer::share_object_impl(t)
}

public native fun take_from_address_by_id<T: key>(scenario: &Scenario, account: address, id: ID): T;

public native fun most_recent_id_for_address<T: key>(account: address): Option<ID>;

public native fun was_taken_from_address(account: address, id: ID): bool;

public native fun take_shared_by_id<T: key>(scenario: &Scenario, id: ID): T;

public native fun most_recent_id_shared<T: key>(): Option<ID>;

public native fun was_taken_shared(id: ID): bool;

native fun end_transaction(): TransactionEffects;
