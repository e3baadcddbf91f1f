module sui::coin;

use std::ascii;
use std::string::{Self, String};
use sui::balance::{Self, Balance, Supply};
use sui::types;
use sui::url::Url;

const EBadWitness: u64 = 0;

public struct Coin<phantom T> has key, store {
    id: UID,
    balance: Balance<T>,
}

public struct TreasuryCap<phantom T> has key, store {
    id: UID,
    total_supply: Supply<T>,
}

public struct CoinMetadata<phantom T> has key, store {
    id: UID,
    decimals: u8,
    name: String,
    symbol: ascii::String,
    description: String,
    icon_url: Option<Url>,
}

public fun create_currency<T: drop>(
    witness: T,
    decimals: u8,
    symbol: vector<u8>,
    name: vector<u8>,
    description: vector<u8>,
    icon_url: Option<Url>,
    ctx: &mut TxContext,
): (TreasuryCap<T>, CoinMetadata<T>) {
    assert!(types::is_one_time_witness(&witness), EBadWitness);
    let cap = TreasuryCap { id: object::new(ctx), total_supply: balance::create_supply(witness) };
    let metadata = CoinMetadata {
        id: object::new(ctx),
        decimals,
        name: string::utf8(name),
        symbol: ascii::string(symbol),
        description: string::utf8(description),
        icon_url,
    };
    (cap, metadata)
}

public fun total_supply<T>(cap: &TreasuryCap<T>): u64 {
    cap.total_supply.supply_value()
}

public fun mint<T>(cap: &mut TreasuryCap<T>, value: u64, ctx: &mut TxContext): Coin<T> {
    Coin { id: object::new(ctx), balance: cap.total_supply.increase_supply(value) }
}

public fun mint_balance<T>(cap: &mut TreasuryCap<T>, value: u64): Balance<T> {
    cap.total_supply.increase_supply(value)
}

#[allow(lint(self_transfer))]
public fun mint_and_transfer<T>(cap: &mut TreasuryCap<T>, amount: u64, recipient: address, ctx: &mut TxContext) {
    sui::transfer::public_transfer(mint(cap, amount, ctx), recipient)
}

public fun burn<T>(cap: &mut TreasuryCap<T>, c: Coin<T>): u64 {
    cap.total_supply.decrease_supply(c.into_balance())
}

public fun value<T>(self: &Coin<T>): u64 {
    self.balance.value()
}

public fun balance<T>(coin: &Coin<T>): &Balance<T> {
    &coin.balance
}

public fun balance_mut<T>(coin: &mut Coin<T>): &mut Balance<T> {
    &mut coin.balance
}

public fun from_balance<T>(balance: Balance<T>, ctx: &mut TxContext): Coin<T> {
    Coin { id: object::new(ctx), balance }
}

public fun into_balance<T>(coin: Coin<T>): Balance<T> {
    let Coin { id, balance } = coin;
    id.delete();
    balance
}

public fun take<T>(balance: &mut Balance<T>, value: u64, ctx: &mut TxContext): Coin<T> {
    Coin { id: object::new(ctx), balance: balance.split(value) }
}

public fun put<T>(balance: &mut Balance<T>, coin: Coin<T>) {
    balance.join(into_balance(coin));
}

public fun join<T>(self: &mut Coin<T>, c: Coin<T>) {
    self.balance.join(c.into_balance());
}

public fun split<T>(self: &mut Coin<T>, split_amount: u64, ctx: &mut TxContext): Coin<T> {
    take(&mut self.balance, split_amount, ctx)
}

public fun zero<T>(ctx: &mut TxContext): Coin<T> {
    Coin { id: object::new(ctx), balance: balance::zero() }
}

public fun destroy_zero<T>(c: Coin<T>) {
    c.into_balance().destroy_zero()
}

#[test_only]
public fun mint_for_testing<T>(value: u64, ctx: &mut TxContext): Coin<T> {
    Coin { id: object::new(ctx), balance: balance::create_for_testing(value) }
}

#[test_only]
public fun burn_for_testing<T>(coin: Coin<T>): u64 {
    coin.into_balance().destroy_for_testing()
}
