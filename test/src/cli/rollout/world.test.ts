/** A rollout's view through two nodes, one of which may lag or lie. */
import { readFileSync } from 'node:fs';
import { GrpcTypes } from '@mysten/sui/grpc';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { parsePlan } from '../../../../src/cli/rollout/plan.ts';
import { createWorld } from '../../../../src/cli/rollout/world.ts';
import { Deployments } from '../../../../src/cli/sui/deployments.ts';
import { modelChainId } from '../../../../src/cli/sui/network.ts';
import { LyingNode, noEnclaves, outdated } from '../keeper/lying_node.ts';
import { ofConfig } from '../sui/chain_fixture.ts';
import { RolloutFixture } from './rollout_fixture.ts';

let fixture: RolloutFixture;
let lying: LyingNode;
beforeEach(async () => {
  fixture = await RolloutFixture.start();
  lying = await LyingNode.start(fixture.keeper.chain.node);
});
afterEach(() => lying.close());

/** Both orders of the nodes. The rollout sends its transactions to the first node. */
const ORDERS = [
  ['the first node', (url: string) => [lying.url, url]],
  ['the second node', (url: string) => [url, lying.url]],
] as const;

async function createTestWorld(node: readonly string[], agreeMs = 0) {
  const path = fixture.plan({ node });
  const plan = parsePlan(readFileSync(path, 'utf8'), path);
  const { env } = fixture;
  const deployments = new Deployments(plan.network, env, plan.app);
  const io = { log: () => {} };
  return await createWorld({ plan, deployments, signing: {}, env, io, agreeMs });
}

test.each(ORDERS)('a rollout continues if %s agrees with the other node', async (_which, order) => {
  const node = order(fixture.keeper.chain.node.url);
  const world = await createTestWorld(node);
  const config = await world.config();
  expect(world.findSide(config)).toBe('old');
  const enclave = await world.look(fixture.urls.old[0] ?? '', 'old');
  if (!enclave.answers) throw new Error(enclave.reason);
  expect(await world.readState(enclave.candidate, config)).toBe('accepted');
  expect(world.adminCommand('end_overlap')).toBe(
    `npx --offline sui-enclave end_overlap ${ofConfig(config.id).join(' ')} --network localnet --rpc-url ${node[0]}`,
  );
});

test.each(ORDERS)('a rollout notices that %s hides a registration', async (_which, order) => {
  const world = await createTestWorld(order(fixture.keeper.chain.node.url));
  const config = await world.config();
  const enclave = await world.look(fixture.urls.old[0] ?? '', 'old');
  if (!enclave.answers) throw new Error(enclave.reason);
  lying.lies.set('BatchGetObjects', noEnclaves);
  await expect(world.readState(enclave.candidate, config)).rejects.toMatchObject({
    code: 'ROLLOUT_NODES_DISAGREE',
    exit: 1,
  });
});

/** Makes `times` reads of the node show the config as it was before a transaction of the admin. */
async function showOldConfig(times: number): Promise<void> {
  const { chain, configId } = fixture.keeper;
  const recorded: Uint8Array[] = [];
  lying.lies.set('BatchGetObjects', (answer) => {
    recorded.push(answer.slice());
    return answer;
  });
  await (await createTestWorld([lying.url])).config();
  await chain.done('update_pcrs', ...ofConfig(configId), '--pcrs', chain.file('new.pcrs'));
  let answers = 0;
  lying.lies.set('BatchGetObjects', (answer) => {
    answers += 1;
    return answers > times ? answer : outdated(configId, recorded[0])(answer);
  });
}

test.each(ORDERS)('a rollout notices that %s shows an old config', async (_which, order) => {
  await showOldConfig(Number.POSITIVE_INFINITY);
  const world = await createTestWorld(order(fixture.keeper.chain.node.url));
  await expect(world.config()).rejects.toMatchObject({ code: 'ROLLOUT_NODES_DISAGREE' });
});

test('a rollout waits for a node that lags', async () => {
  await showOldConfig(1);
  const world = await createTestWorld([lying.url, fixture.keeper.chain.node.url], 20_000);
  expect(world.findSide(await world.config())).toBe('new');
});

test.each(ORDERS)('a rollout ends its step if %s is silent', async (_which, order) => {
  const world = await createTestWorld(order(fixture.keeper.chain.node.url));
  lying.silence = 'reset';
  await expect(world.config()).rejects.toMatchObject({ code: 'SUI_NODE_UNREACHABLE' });
});

test('a node of another chain is refused', async () => {
  lying.lies.set('GetServiceInfo', (answer) => {
    const info = GrpcTypes.GetServiceInfoResponse.fromBinary(answer);
    return GrpcTypes.GetServiceInfoResponse.toBinary({ ...info, chainId: modelChainId(new Uint8Array(4)) });
  });
  await expect(createTestWorld([fixture.keeper.chain.node.url, lying.url])).rejects.toMatchObject({
    code: 'DEPLOYMENT',
  });
});
