/// Derives random values from the ids of a transaction. They are predictable, and differ from those of validators.
module sui::random;

use sui::hash::blake2b256;

const EInvalidRange: u64 = 0;

/// The object with the id 0x8.
public struct Random has key {
    id: UID,
}

public struct RandomGenerator has drop {
    seed: vector<u8>,
    counter: u64,
}

public fun new_generator(r: &Random, ctx: &mut TxContext): RandomGenerator {
    let mut seed = std::bcs::to_bytes(&object::id(r));
    seed.append(std::bcs::to_bytes(&ctx.fresh_object_address()));
    RandomGenerator { seed, counter: 0 }
}

public fun generate_bytes(g: &mut RandomGenerator, num_of_bytes: u16): vector<u8> {
    let mut bytes = vector[];
    while (bytes.length() < num_of_bytes as u64) {
        let mut block = next(g);
        while (!block.is_empty() && bytes.length() < num_of_bytes as u64) bytes.push_back(block.pop_back());
    };
    bytes
}

public fun generate_u256(g: &mut RandomGenerator): u256 {
    let mut block = next(g);
    let mut value = 0;
    while (!block.is_empty()) value = value * 256 + (block.pop_back() as u256);
    value
}

public fun generate_u128(g: &mut RandomGenerator): u128 {
    (generate_u256(g) >> 128) as u128
}

public fun generate_u64(g: &mut RandomGenerator): u64 {
    (generate_u256(g) >> 192) as u64
}

public fun generate_u32(g: &mut RandomGenerator): u32 {
    (generate_u256(g) >> 224) as u32
}

public fun generate_u16(g: &mut RandomGenerator): u16 {
    (generate_u256(g) >> 240) as u16
}

public fun generate_u8(g: &mut RandomGenerator): u8 {
    (generate_u256(g) >> 248) as u8
}

public fun generate_bool(g: &mut RandomGenerator): bool {
    generate_u8(g) % 2 == 0
}

public fun generate_u64_in_range(g: &mut RandomGenerator, min: u64, max: u64): u64 {
    assert!(min <= max, EInvalidRange);
    let range = (max as u256) - (min as u256) + 1;
    ((min as u256) + generate_u256(g) % range) as u64
}

public fun generate_u32_in_range(g: &mut RandomGenerator, min: u32, max: u32): u32 {
    generate_u64_in_range(g, min as u64, max as u64) as u32
}

public fun generate_u8_in_range(g: &mut RandomGenerator, min: u8, max: u8): u8 {
    generate_u64_in_range(g, min as u64, max as u64) as u8
}

public fun shuffle<T>(g: &mut RandomGenerator, v: &mut vector<T>) {
    let mut left = v.length();
    while (left > 1) {
        let position = generate_u64_in_range(g, 0, left - 1);
        left = left - 1;
        v.swap(left, position);
    }
}

fun next(g: &mut RandomGenerator): vector<u8> {
    g.counter = g.counter + 1;
    let mut block = g.seed;
    block.append(std::bcs::to_bytes(&g.counter));
    blake2b256(&block)
}

#[test_only]
public fun new_generator_for_testing(): RandomGenerator {
    RandomGenerator { seed: b"testing", counter: 0 }
}
