/// Laws of the arithmetic of feeds, on random values.
#[test_only]
module feed::laws_tests;

use feed::feed;
use std::unit_test::assert_eq;

const MAX_U64: u64 = 18_446_744_073_709_551_615;
const MAX_CONFIGS: u64 = 16;

/// Returns as many values as an update may have: 1 to 16.
fun update_of(mut values: vector<u64>, first: u64): vector<u64> {
    while (values.length() >= MAX_CONFIGS) { values.pop_back(); };
    values.push_back(first);
    values
}

fun lowest(values: &vector<u64>): u64 {
    let mut lowest = MAX_U64;
    values.do_ref!(|value| if (*value < lowest) lowest = *value);
    lowest
}

fun highest(values: &vector<u64>): u64 {
    let mut highest = 0;
    values.do_ref!(|value| if (*value > highest) highest = *value);
    highest
}

#[random_test]
fun at_most_half_of_the_values_are_on_either_side_of_the_median(values: vector<u64>, first: u64) {
    let values = update_of(values, first);
    let median = feed::median_for_testing(values);
    let (mut below, mut above) = (0, 0);
    values.do_ref!(|value| {
        if (*value < median) below = below + 1;
        if (*value > median) above = above + 1;
    });
    assert!(2 * below <= values.length());
    assert!(2 * above <= values.length());
    // The median of an odd number of values is one of them.
    if (values.length() % 2 == 1) assert!(values.contains(&median));
}

#[random_test]
fun a_median_does_not_depend_on_the_order(values: vector<u64>, first: u64) {
    let mut values = update_of(values, first);
    let median = feed::median_for_testing(values);
    values.reverse();
    assert_eq!(feed::median_for_testing(values), median);
    let middle = values.length() / 2;
    values.swap(0, middle);
    assert_eq!(feed::median_for_testing(values), median);
}

#[random_test]
fun a_median_of_2_f_plus_1_values_is_within_the_honest_values(values: vector<u64>, first: u64, lie: u64) {
    let mut values = update_of(values, first);
    let liars = (values.length() - 1) / 2;
    let mut honest = vector[];
    let mut i = liars;
    while (i < values.length()) {
        honest.push_back(values[i]);
        i = i + 1;
    };
    let lies = vector[0, lie, MAX_U64];
    lies.do_ref!(|lie| {
        let mut liar = 0;
        while (liar < liars) {
            *&mut values[liar] = *lie;
            liar = liar + 1;
        };
        let median = feed::median_for_testing(values);
        assert!(median >= lowest(&honest) && median <= highest(&honest));
    });
}

#[random_test]
fun a_mean_of_two_values_is_exact(left: u64, right: u64) {
    let mean = ((left as u128) + (right as u128)) / 2;
    assert_eq!(feed::median_for_testing(vector[left, right]), mean as u64);
}

#[random_test]
fun a_move_is_compared_exactly(before: u64, after: u64, bps: u64) {
    let bps = bps % 10_001;
    let difference = if (after > before) after - before else before - after;
    let has_moved = (difference as u256) * 10_000 >= (before as u256) * (bps as u256);
    assert_eq!(feed::has_moved_for_testing(before, after, bps), has_moved);
    assert!(feed::has_moved_for_testing(before, after, 0));
}

#[random_test]
fun the_least_move_is_the_boundary(before: u64, bps: u64) {
    // Halved, so that the value after a move of up to 100 % still fits in a u64.
    let before = before / 2 + 1;
    let bps = bps % 10_000 + 1;
    let product = (before as u128) * (bps as u128);
    let least_move = ((product + 9_999) / 10_000) as u64;
    assert!(feed::has_moved_for_testing(before, before + least_move, bps));
    assert!(feed::has_moved_for_testing(before, before - least_move, bps));
    assert!(!feed::has_moved_for_testing(before, before + least_move - 1, bps));
    assert!(!feed::has_moved_for_testing(before, before - (least_move - 1), bps));
}
