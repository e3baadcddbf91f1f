module sui::event;

use sui::dynamic_field;

const EMITTED: u8 = 5;

public fun emit<T: copy + drop>(event: T) {
    dynamic_field::note<T>(EMITTED, @0x0, std::bcs::to_bytes(&event));
}

#[test_only]
public native fun events_by_type<T: copy + drop>(): vector<T>;
