#[test_only]
module price::price_tests;

use enclave::enclave;
use price::price::PRICE;

#[test]
fun a_config_is_made_with_the_capability() {
    let ctx = &mut tx_context::dummy();
    let cap = enclave::new_cap_for_testing<PRICE>(ctx);
    let config = cap.new_config_for_testing(ctx);
    config.destroy_config_for_testing();
    cap.destroy_cap_for_testing();
}
