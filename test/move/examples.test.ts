/**
 * Checks that the contract of src/library/sui/README.md compiles without a warning, and behaves as the page
 * says.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { chooseFramework, testPackage } from '../../src/toolchain/move/packages.ts';

const README = readFileSync(new URL('../../src/library/sui/README.md', import.meta.url), 'utf8');
const [, source = ''] = /```move\n(module app::rewards;\n.*?)```/s.exec(README) ?? [];

const TESTS = `#[test_only]
module app::rewards_tests;
use app::rewards::{Self, Points, REWARDS, Rewards};
use app::vectors;
use enclave::enclave::{Self, Enclave, EnclaveCap, EnclaveConfig};
use enclave::once;
use std::unit_test::assert_eq;
use sui::clock::{Self, Clock};
use sui::test_scenario::{Self, Scenario};

public struct World {
    scenario: Scenario,
    cap: EnclaveCap<REWARDS>,
    config: EnclaveConfig<REWARDS>,
    enclave: Enclave<REWARDS>,
    clock: Clock,
    rewards: Rewards,
}

fun world(): World {
    let mut scenario = test_scenario::begin(@0xA);
    let cap = enclave::new_cap_for_testing<REWARDS>(scenario.ctx());
    let mut config = cap.new_config_for_testing(scenario.ctx());
    let enclave = config.new_enclave_for_testing(&cap, vectors::once_key());
    let mut clock = clock::create_for_testing(scenario.ctx());
    clock.set_for_testing(vectors::once_timestamp_ms());
    rewards::open(&cap, &config, scenario.ctx());
    scenario.next_tx(@0xB);
    let rewards = scenario.take_shared<Rewards>();
    World { scenario, cap, config, enclave, clock, rewards }
}

fun submit(world: &mut World, recipient: address) {
    let World { scenario, enclave, config, clock, rewards, .. } = world;
    rewards.award(
        vectors::nonce(),
        recipient,
        vectors::points(),
        vectors::once_timestamp_ms(),
        &vectors::once_signature(),
        enclave,
        config,
        clock,
        scenario.ctx(),
    )
}

#[test]
fun the_signed_recipient_gets_the_points_from_any_sender() {
    let mut world = world();
    world.submit(vectors::recipient());
    let World { mut scenario, cap, config, enclave, clock, rewards } = world;
    scenario.next_tx(vectors::recipient());
    let points = scenario.take_from_sender<Points>();
    assert_eq!(object::id(&points) == object::id(&rewards), false);
    scenario.return_to_sender(points);
    test_scenario::return_shared(rewards);
    cap.destroy_cap_for_testing();
    config.destroy_config_for_testing();
    enclave.destroy_enclave_for_testing();
    clock.destroy_for_testing();
    scenario.end();
}

#[test, expected_failure(abort_code = once::EAlreadyClaimed)]
fun an_order_is_awarded_once() {
    let mut world = world();
    world.submit(vectors::recipient());
    world.submit(vectors::recipient());
    abort
}

#[test, expected_failure(abort_code = enclave::EInvalidSignature)]
fun nobody_else_gets_the_points() {
    world().submit(@0xBAD);
    abort
}

#[test, expected_failure(abort_code = rewards::EOtherConfig)]
fun another_config_of_the_same_capability_is_refused() {
    let World { mut scenario, cap, config: _config, enclave: _enclave, clock, rewards } = world();
    let mut config = cap.new_config_for_testing(scenario.ctx());
    let enclave = config.new_enclave_for_testing(&cap, vectors::once_key());
    let mut world = World { scenario, cap, config, enclave, clock, rewards };
    world.submit(vectors::recipient());
    abort
}

#[test, expected_failure(abort_code = rewards::EOtherConfig)]
fun nobody_else_opens_rewards_for_a_config() {
    let World { scenario, config, .. } = &mut world();
    let other_cap = enclave::new_cap_for_testing<REWARDS>(scenario.ctx());
    rewards::open(&other_cap, config, scenario.ctx());
    abort
}
`;

test('the contract of the page pins its config and awards each order once', async () => {
  const run = await testPackage('weather', chooseFramework(process.env), {
    extra: { 'sources/rewards.move': source, 'tests/rewards_tests.move': TESTS },
  });
  expect(run.output).not.toMatch(/^(warning|error)/m);
  expect(run.output.match(/\[ PASS {4}\] app::rewards_tests::\w+/g), run.output).toHaveLength(5);
  expect(run.passed).toBe(true);
});
