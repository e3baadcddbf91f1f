#[test_only]
module price::price_tests;

use enclave::enclave;
use price::price::PRICE;

#[test]
fun the_capability_creates_a_config() {
    let ctx = &mut tx_context::dummy();
    let cap = enclave::new_cap_for_testing<PRICE>(ctx);
    let config = cap.new_config_for_testing(ctx);
    config.destroy_config_for_testing();
    cap.destroy_cap_for_testing();
}
