module sui::package;

use std::ascii::String;
use std::type_name;
use sui::types;

public use fun burn_publisher as Publisher.burn;

const ENotOneTimeWitness: u64 = 0;

public struct Publisher has key, store {
    id: UID,
    package: String,
    module_name: String,
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

#[test_only]
public fun test_claim<OTW: drop>(_: OTW, ctx: &mut TxContext): Publisher {
    new<OTW>(ctx)
}

fun new<OTW>(ctx: &mut TxContext): Publisher {
    let name = type_name::with_original_ids<OTW>();
    Publisher { id: object::new(ctx), package: name.address_string(), module_name: name.module_string() }
}
