/// The application on Sui: its publisher gets the capability to register its enclaves.
module price::price;

use enclave::enclave;

/// The one-time witness of this module, and the type that its enclaves are registered for.
public struct PRICE has drop {}

fun init(otw: PRICE, ctx: &mut TxContext) {
    transfer::public_transfer(enclave::new_cap(otw, ctx), ctx.sender())
}
