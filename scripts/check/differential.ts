/**
 * `npm run test:differential -- --node <url> --faucet <url>`: sends random transactions to two Sui nodes and
 * compares their results: outcome, events, and the later state of each object. By default, the second node is
 * the model of `make dev-sui`, so the command checks the model's rules against a network. Without `--node`,
 * the first node is the model too.
 */
import * as v from 'valibot';
import { command, runAsProcess } from '../../src/cli/command.ts';
import { integer, text } from '../../src/cli/values.ts';
import { CodedError } from '../../src/library/errors.ts';
import { quantity } from '../../src/library/wording.ts';
import { randomNumbers } from './fuzz_attestation.ts';
import { createProbe, findEffect, makeObjects, type Probe } from './rules/case.ts';
import { type NodeUrls, openNode } from './rules/node.ts';
import { compileProbe, SOURCES } from './rules/probe.ts';
import { buildPlan, type Kind, type Plan, randomPlan } from './rules/random_transaction.ts';
import { type Sent, World } from './rules/world.ts';

/** Every code of a DifferentialError, and what it means. */
export const DIFFERENTIAL_CODES = {
  OUTCOMES_DIFFER: 'A transaction had different outcomes on the two nodes.',
} as const;

class DifferentialError extends CodedError<keyof typeof DIFFERENTIAL_CODES> {}

const NEEDS = ['thing', 'thing', 'shared', 'shared', 'frozen', 'pinned'] as const;
const KINDS = { thing: 'Thing', shared: 'Thing', frozen: 'Frozen', pinned: 'Pinned' } as const;
/**
 * Minimum number of things, below which new objects are made, and maximum number of objects that transactions
 * choose from.
 */
const [MIN_THINGS, MAX_POOL] = [3, 16];
const REMOVED = 'gone';

/** A node, with the ids of the pool's objects on it. Both nodes have the objects in the same order. */
interface Side {
  readonly probe: Probe;
  readonly ids: string[];
}

/** An object's id, and a text that describes the object without the id. */
interface ObjectDescription {
  readonly id: string;
  readonly text: string;
}

/** @throws DifferentialError */
export async function compareNodes(
  nodes: readonly [NodeUrls, NodeUrls],
  count: number,
  seed: number,
): Promise<Readonly<Record<string, number>>> {
  const random = randomNumbers(seed);
  const modules = await compileProbe(SOURCES.probe);
  const [left, right] = [await open(nodes[0], modules), await open(nodes[1], modules)];
  const kinds: Kind[] = [];
  const outcomes = new Map<string, number>();
  for (let index = 0; index < count; index += 1) {
    if (kinds.filter((kind) => kind === 'Thing').length < MIN_THINGS) {
      for (const { probe, ids } of [left, right]) ids.push(...(await makeObjects(probe, NEEDS)));
      kinds.push(...NEEDS.map((need) => KINDS[need]));
    }
    const plan = randomPlan(random, kinds);
    const [first, second] = [await execute(left, plan), await execute(right, plan)];
    if (first.text !== second.text) {
      throw new DifferentialError(
        'OUTCOMES_DIFFER',
        `seed ${seed}, transaction ${index}: ${JSON.stringify(plan)}\n${nodes[0].url}:\n${first.text}\n${nodes[1].url}:\n${second.text}`,
      );
    }
    const [name = ''] = first.outcome.split(' at ');
    outcomes.set(name, (outcomes.get(name) ?? 0) + 1);
    // Some objects may have been frozen by the transaction.
    kinds.splice(
      0,
      kinds.length,
      ...kinds.map((kind, position) => findKind(first.poolObjects[position]?.text ?? '') ?? kind),
    );
    for (const position of first.removedPositions) {
      kinds.splice(position, 1);
      for (const { ids } of [left, right]) ids.splice(position, 1);
    }
    for (const [position, { id, text: description }] of first.newObjects.entries()) {
      const kind = findKind(description);
      const twin = second.newObjects[position];
      if (kind === undefined || twin === undefined || kinds.length >= MAX_POOL) continue;
      kinds.push(kind);
      left.ids.push(id);
      right.ids.push(twin.id);
    }
  }
  return Object.fromEntries([...outcomes].sort(([, a], [, b]) => b - a));
}

async function open(urls: NodeUrls, modules: readonly Uint8Array[]): Promise<Side> {
  const world = new World(urls);
  await world.fund(1);
  return { probe: createProbe(world, await world.publish(modules)), ids: [] };
}

async function execute({ probe, ids }: Side, plan: Plan) {
  const sent = await probe.world.send((tx) => buildPlan(plan, tx, probe, ids));
  const outcome = sent.outcome.startsWith('refused') ? 'refused' : sent.outcome;
  const newObjects = (await describeObjects(probe, listCreatedIds(sent))).sort((a, b) =>
    a.text < b.text ? -1 : 1,
  );
  const poolObjects = await describeObjects(probe, ids);
  const events = sent.events.map(
    ({ eventType, bcs }) => `${nameType(eventType, probe)} ${Buffer.from(bcs).toString('hex')}`,
  );
  const effects = ids.map((id) => findEffect(id, sent));
  const lines = [
    outcome,
    ...events,
    ...poolObjects.map((object, index) => `object ${index}: ${effects[index]} ${object.text}`),
    ...newObjects.map((object) => `new: ${object.text}`),
  ];
  // The last position comes first, so that removing an object does not move the objects that are removed
  // after it.
  const removedPositions = poolObjects
    .flatMap((object, index) => (object.text === REMOVED ? index : []))
    .reverse();
  return { outcome, newObjects, poolObjects, removedPositions, text: lines.join('\n') };
}

function findKind(description: string): Kind | undefined {
  if (description.includes('Immutable')) return 'Frozen';
  return (['Thing', 'Pinned', 'Box'] as const).find((name) => description.includes(`::${name}`));
}

function listCreatedIds({ changed }: Sent): string[] {
  return changed
    .filter(({ idOperation, outputState }) => idOperation === 'Created' && outputState === 'ObjectWrite')
    .map(({ objectId }) => objectId);
}

/** Describes objects without their ids, which differ between two nodes. */
async function describeObjects(probe: Probe, ids: readonly string[]): Promise<ObjectDescription[]> {
  if (ids.length === 0) return [];
  const { objects } = await probe.world.client.getObjects({
    objectIds: [...ids],
    include: { content: true },
  });
  return objects.map((object, index): ObjectDescription => {
    const id = ids[index] ?? '';
    if (object instanceof Error) return { id, text: REMOVED };
    // The content begins after the object's own id. For a box, it begins after the id of the thing in the box
    // too.
    const content = Buffer.from(object.content ?? []).subarray(object.type.endsWith('::Box') ? 64 : 32);
    return { id, text: `${nameType(object.type, probe)} ${object.owner?.$kind} ${content.toString('hex')}` };
  });
}

function nameType(type: string, { packageId }: Probe): string {
  return type.replaceAll(packageId, 'own');
}

type NodeOptions = Parameters<typeof openNode>[0];

async function withNode<T>(options: NodeOptions, run: (urls: NodeUrls) => Promise<T>): Promise<T> {
  const node = await openNode(options);
  try {
    return await run(node.urls);
  } finally {
    await node.close();
  }
}

const URL_SCHEMA = v.pipe(text, v.url());

export const main = command({
  name: 'differential',
  program: 'npm run test:differential --',
  purpose:
    'Sends random transactions to two Sui nodes, and compares outcomes, events and objects. The model of `make dev-sui`\ntakes the place of a node that no option names. Against a network, set SUI_FRAMEWORK_DIR or FRAMEWORK as for publish.',
  arguments: {},
  options: {
    node: { value: '<url>', help: 'the first node', schema: URL_SCHEMA },
    faucet: { value: '<url>', help: 'the faucet of the first node', schema: URL_SCHEMA },
    'other-node': { value: '<url>', help: 'the second node', schema: URL_SCHEMA },
    'other-faucet': { value: '<url>', help: 'the faucet of the second node', schema: URL_SCHEMA },
    transactions: {
      value: '<number>',
      help: 'number of transactions',
      schema: integer(1, 1_000_000),
      default: '300',
    },
    seed: {
      value: '<number>',
      help: 'a run with the same seed sends the same transactions',
      schema: integer(0, 999_999_999),
    },
  },
  notes: 'exit codes: 0 all outcomes were the same; 1 a transaction had two outcomes; 2 invalid command line',
  async run({ options }) {
    const { transactions, seed = Date.now() % 1e9 } = options;
    const first = { url: options.node, faucet: options.faucet };
    const second = { url: options['other-node'], faucet: options['other-faucet'] };
    const outcomes = await withNode(first, (left) =>
      withNode(second, (right) => compareNodes([left, right], transactions, seed)),
    );
    const lines = Object.entries(outcomes).map(([name, count]) => `${String(count).padStart(10)}  ${name}`);
    return {
      json: { status: 'same', seed, transactions, outcomes },
      text: [`seed ${seed}: ${quantity(transactions, 'transaction')} with the same outcomes`, ...lines].join(
        '\n',
      ),
    };
  },
});

if (import.meta.main) await runAsProcess(main);
