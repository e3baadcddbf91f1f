module sui::package;

use std::ascii::String;
use std::type_name;
use sui::types;

public use fun burn_publisher as Publisher.burn;

const ENotOneTimeWitness: u64 = 0;
const ETooPermissive: u64 = 1;
const EAlreadyAuthorized: u64 = 2;
const ENotAuthorized: u64 = 3;
const EWrongUpgradeCap: u64 = 4;

#[test_only]
const EPackageIDDoesNotMatch: u64 = 100;
#[test_only]
const EDigestDoesNotMatch: u64 = 101;

const COMPATIBLE: u8 = 0;

public struct Publisher has key, store {
    id: UID,
    package: String,
    module_name: String,
}

public struct UpgradeCap has key, store {
    id: UID,
    package: ID,
    version: u64,
    policy: u8,
}

public struct UpgradeTicket {
    cap: ID,
    package: ID,
    policy: u8,
    digest: vector<u8>,
}

public struct UpgradeReceipt {
    cap: ID,
    package: ID,
}

public fun claim<OTW: drop>(otw: OTW, ctx: &mut TxContext): Publisher {
    assert!(types::is_one_time_witness(&otw), ENotOneTimeWitness);
    new<OTW>(ctx)
}

public fun burn_publisher(self: Publisher) {
    let Publisher { id, package: _, module_name: _ } = self;
    id.delete();
}

public fun from_module<T>(self: &Publisher): bool {
    let name = type_name::with_original_ids<T>();
    name.address_string() == self.package && name.module_string() == self.module_name
}

public fun upgrade_package(cap: &UpgradeCap): ID {
    cap.package
}

public fun version(cap: &UpgradeCap): u64 {
    cap.version
}

public fun upgrade_policy(cap: &UpgradeCap): u8 {
    cap.policy
}

public fun make_immutable(cap: UpgradeCap) {
    let UpgradeCap { id, package: _, version: _, policy: _ } = cap;
    id.delete();
}

public fun authorize_upgrade(cap: &mut UpgradeCap, policy: u8, digest: vector<u8>): UpgradeTicket {
    let no_package = object::id_from_address(@0x0);
    assert!(cap.package != no_package, EAlreadyAuthorized);
    assert!(policy >= cap.policy, ETooPermissive);
    let package = cap.package;
    cap.package = no_package;
    UpgradeTicket { cap: object::id(cap), package, policy, digest }
}

public fun commit_upgrade(cap: &mut UpgradeCap, receipt: UpgradeReceipt) {
    let UpgradeReceipt { cap: cap_id, package } = receipt;
    assert!(object::id(cap) == cap_id, EWrongUpgradeCap);
    assert!(cap.package.to_address() == @0x0, ENotAuthorized);
    cap.package = package;
    cap.version = cap.version + 1;
}

#[test_only]
public fun test_publish(package: ID, ctx: &mut TxContext): UpgradeCap {
    UpgradeCap { id: object::new(ctx), package, version: 1, policy: COMPATIBLE }
}

/// Does the same as a transaction's command that publishes an upgrade.
#[test_only]
public fun model_upgrade(ticket: UpgradeTicket, old: address, compiled: vector<u8>, new: address): UpgradeReceipt {
    let UpgradeTicket { cap, package, policy: _, digest } = ticket;
    assert!(package.to_address() == old, EPackageIDDoesNotMatch);
    assert!(digest == compiled, EDigestDoesNotMatch);
    UpgradeReceipt { cap, package: object::id_from_address(new) }
}

#[test_only]
public fun test_claim<OTW: drop>(_: OTW, ctx: &mut TxContext): Publisher {
    new<OTW>(ctx)
}

fun new<OTW>(ctx: &mut TxContext): Publisher {
    let name = type_name::with_original_ids<OTW>();
    Publisher { id: object::new(ctx), package: name.address_string(), module_name: name.module_string() }
}
