/** Runs `sui-enclave keep` on the model of a Sui node, with emulated enclaves. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { parseKeeperFile } from '../../../src/cli/keeper/file.ts';
import { createWorld, type World } from '../../../src/cli/keeper/world.ts';
import { KeeperFixture, type Operator } from '../../src/cli/keeper/keeper_fixture.ts';
import { ofConfig } from '../../src/cli/sui/chain_fixture.ts';
import { startServer, type TestServer } from '../../src/server/support.ts';

let fixture: KeeperFixture;
beforeEach(async () => {
  fixture = await KeeperFixture.start();
});
afterEach(() => fixture.close());

const start = async (): Promise<TestServer> => await startServer({ nsm: fixture.chain.nsm });
const register = async ({ url }: TestServer) =>
  await fixture.chain.register(fixture.configId, fixture.capId, url);
const idle = { exit: 0, done: [], alerts: [] };

/** Creates the world of a keeper's file, for tests that call it without a round. */
async function createWorldFor(urls: readonly string[], { key, registrar }: Operator) {
  const content = { ...fixture.content(urls, { key, registrar }), root: fixture.chain.file('root.pem') };
  const file = parseKeeperFile(JSON.stringify(content), 'keeper.yaml');
  return await createWorld(file, 'keeper.yaml', {}, { SUI_PRIVATE_KEY: key.getSecretKey() }, () => {});
}

async function readFrom(world: World | undefined) {
  const [node] = world?.nodes ?? [];
  if (node === undefined) throw new Error('there is no node');
  return await node.read(new AbortController().signal);
}

describe('a round', () => {
  test('registers each enclave that is not registered, and does nothing in the next round', async () => {
    const [registeredServer, restarted] = [await start(), await start()];
    const id = await register(registeredServer);
    const urls = [registeredServer.url, restarted.url];
    expect(await fixture.once(urls)).toEqual({
      exit: 0,
      status: 'done',
      done: [{ kind: 'register', subject: restarted.url, result: 'done' }],
      alerts: [],
      accepted: 1,
      silent: 0,
    });
    expect(await fixture.ids()).toEqual(expect.arrayContaining([id]));
    expect(await fixture.ids()).toHaveLength(2);
    const { sent } = fixture;
    expect(await fixture.once(urls)).toMatchObject({ ...idle, accepted: 2 });
    expect(fixture.sent).toBe(sent);
  });

  test('registers without a registrar under an open config, but not under another config', async () => {
    const server = await start();
    const { chain, capId } = fixture;
    const config = await chain.config(capId, { isOpen: true });
    const content = { config, registrar: undefined };
    expect(await fixture.once([server.url], { content })).toMatchObject({
      exit: 0,
      done: [{ kind: 'register', subject: server.url, result: 'done' }],
      alerts: [],
    });
    expect(await fixture.once([server.url], { content })).toMatchObject({ ...idle, accepted: 1 });
    expect(await fixture.once([server.url], { content: { registrar: undefined } })).toMatchObject({
      exit: 1,
      done: [],
      alerts: [{ code: 'REGISTRAR_REVOKED', message: expect.stringContaining('is not open') }],
    });
  });

  test('destroys a stale enclave after it has registered the same key at the new version', async () => {
    const [old, successor] = [await start(), await start()];
    const oldId = await register(old);
    const successorId = await fixture.rotateTo(successor.url);
    const { exit, done } = await fixture.once([old.url, successor.url]);
    expect([exit, done]).toEqual([
      0,
      [
        { kind: 'register', subject: old.url, result: 'done' },
        { kind: 'destroy', subject: oldId, result: 'done' },
      ],
    ]);
    const ids = await fixture.ids();
    expect(ids).toContain(successorId);
    expect([ids.length, ids.includes(oldId)]).toEqual([2, false]);
  });

  test('destroys the enclaves of a retired config, and registers none', async () => {
    const [registeredServer, otherServer] = [await start(), await start()];
    const id = await register(registeredServer);
    const { configId, chain } = fixture;
    await chain.done('retire_config', ...ofConfig(configId), '--yes');
    const { exit, done, alerts } = await fixture.once([registeredServer.url, otherServer.url]);
    expect([exit, done]).toEqual([1, [{ kind: 'destroy', subject: id, result: 'done' }]]);
    expect(alerts).toMatchObject([{ code: 'CONFIG_RETIRED', subject: configId }]);
    expect(await fixture.ids()).toEqual([]);
  });

  test('does not destroy an enclave that is only silent', async () => {
    const server = await start();
    const id = await register(server);
    await server.close();
    const { sent } = fixture;
    const { exit, done, alerts, silent } = await fixture.once([server.url]);
    expect([exit, done, silent]).toEqual([1, [], 1]);
    expect(alerts).toMatchObject([
      { code: 'ENCLAVE_UNREACHABLE', subject: server.url },
      { code: 'ENCLAVE_SILENT', subject: id },
    ]);
    expect([await fixture.ids(), fixture.sent]).toEqual([[id], sent]);
  });

  test('does nothing if the registers on chain differ from the file', async () => {
    const [registeredServer, otherServer] = [await start(), await start()];
    const id = await register(registeredServer);
    await fixture.chain.rotate(fixture.configId, fixture.capId);
    const { sent } = fixture;
    const { exit, done, alerts } = await fixture.once([registeredServer.url, otherServer.url]);
    expect([exit, done]).toEqual([1, []]);
    expect(alerts).toMatchObject([{ code: 'REGISTERS_DIFFER', subject: fixture.configId }]);
    expect([await fixture.ids(), fixture.sent]).toEqual([[id], sent]);
  });

  test('registers nothing with a revoked registrar, but destroys stale enclaves', async () => {
    const [old, successor] = [await start(), await start()];
    const oldId = await register(old);
    await fixture.rotateTo(successor.url);
    const { chain, configId, operator } = fixture;
    await chain.done('revoke_registrar', ...ofConfig(configId), operator.registrar);
    const { exit, done, alerts } = await fixture.once([old.url, successor.url]);
    expect([exit, done]).toEqual([1, [{ kind: 'destroy', subject: oldId, result: 'done' }]]);
    expect(alerts).toMatchObject([{ code: 'REGISTRAR_REVOKED' }]);
  });

  test('reports a running enclave whose key was destroyed, since only a restart replaces the key', async () => {
    const server = await start();
    await fixture.chain.destroy(await register(server), fixture.configId, fixture.capId);
    const { sent } = fixture;
    const { exit, alerts } = await fixture.once([server.url]);
    expect([exit, alerts]).toMatchObject([1, [{ code: 'KEY_DESTROYED', subject: server.url }]]);
    expect(fixture.sent).toBe(sent);
  });

  test('trusts no document that answers another nonce', async () => {
    const { url } = await start();
    const replayed = await (await fetch(`${url}/get_attestation`)).text();
    const host = createServer((_request, response) => response.end(replayed));
    await new Promise<void>((resolve) => {
      host.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => void host.close());
    const hostUrl = `http://127.0.0.1:${(host.address() as AddressInfo).port}`;
    const { sent } = fixture;
    const { exit, done, alerts } = await fixture.once([hostUrl]);
    expect([exit, done]).toEqual([1, []]);
    expect(alerts).toMatchObject([
      { code: 'ENCLAVE_UNTRUSTED', subject: hostUrl, message: expect.stringMatching(/^POLICY_NONCE: /) },
    ]);
    expect(fixture.sent).toBe(sent);
  });

  test('as a dry run sends nothing, and prints what it would do', async () => {
    const { url } = await start();
    const { sent } = fixture;
    expect(await fixture.once([url], { args: ['--dry-run'] })).toMatchObject({
      exit: 0,
      status: 'dry-run',
      done: [{ kind: 'register', subject: url, result: 'simulated' }],
    });
    expect(fixture.sent).toBe(sent);
    const path = fixture.write(fixture.content([url]));
    const { stdout } = await fixture.run(path, ['--dry-run']);
    expect(stdout).toMatch(
      new RegExp(`^Trusts the certificates of .*root.pem .*\nwould have registered ${url}\n$`),
    );
  });
});

describe('two keepers', () => {
  test('register an enclave once if both start at the same time, and both report it as done', async () => {
    const { url } = await start();
    const otherOperator = await fixture.addOperator();
    const rounds = await Promise.all([fixture.once([url]), fixture.once([url], { operator: otherOperator })]);
    for (const { exit, alerts, done } of rounds) {
      expect([exit, alerts, done.map(({ kind }) => kind)]).toEqual([0, [], ['register']]);
    }
    expect(await fixture.ids()).toHaveLength(1);
  });

  test('register an enclave once if the chain refuses the second registration', async () => {
    const { url } = await start();
    const otherOperator = await fixture.addOperator();
    const worlds = [
      await createWorldFor([url], fixture.operator),
      await createWorldFor([url], otherOperator),
    ];
    const { config } = await readFrom(worlds[0]);
    // Neither keeper sees that the other's transaction was executed.
    fixture.chain.node.lagMs = 500;
    const results = await Promise.all(
      worlds.map(async (world) => {
        const answer = await world.attest(url);
        return await world.register(answer, config);
      }),
    );
    expect(results.sort()).toEqual(['done', 'theirs']);
    fixture.chain.node.lagMs = 0;
    expect(await fixture.ids()).toHaveLength(1);
  });

  test('destroy an enclave once if both of them try', async () => {
    const [old, successor] = [await start(), await start()];
    await register(old);
    await fixture.rotateTo(successor.url);
    const otherOperator = await fixture.addOperator();
    const [firstWorld, secondWorld] = [
      await createWorldFor([old.url], fixture.operator),
      await createWorldFor([old.url], otherOperator),
    ];
    const { config, enclaves } = await readFrom(firstWorld);
    const stale = enclaves.find(({ configVersion }) => configVersion === 0n);
    if (stale === undefined) throw new Error('there is no stale enclave');
    expect(await firstWorld.destroy(stale, config)).toBe('done');
    expect(await secondWorld.destroy(stale, config)).toBe('theirs');
  });
});

describe('a keeper', () => {
  test('repeats an action after the node was unreachable', async () => {
    const { url } = await start();
    const { faults } = fixture.chain.node;
    faults.set('BatchGetObjects', 'reset');
    expect(await fixture.once([url])).toMatchObject({
      exit: 1,
      done: [],
      alerts: [{ code: 'CONFIG_UNREADABLE', message: expect.stringMatching(/^SUI_NODE_UNREACHABLE: /) }],
    });
    faults.clear();
    expect(await fixture.once([url])).toMatchObject({ exit: 0, done: [{ result: 'done' }] });
  });

  test('ends the round after an error by a locked coin, and sends nothing more', async () => {
    const [firstServer, secondServer] = [await start(), await start()];
    const { ledger, calls } = fixture.chain.node;
    const [coin] = ledger.coins(fixture.operator.key.toSuiAddress());
    const id = coin?.object.id ?? '';
    ledger.locked.add(id);
    const executions = () => calls.filter((name) => name === 'ExecuteTransaction').length;
    const before = executions();
    expect(await fixture.once([firstServer.url, secondServer.url])).toMatchObject({
      exit: 1,
      done: [],
      alerts: [
        {
          code: 'ACTION_FAILED',
          subject: firstServer.url,
          message: expect.stringMatching(/^SUI_EQUIVOCATION: /),
        },
      ],
    });
    expect(executions()).toBe(before + 1);
    ledger.locked.delete(id);
    expect((await fixture.once([firstServer.url, secondServer.url])).done).toHaveLength(2);
  });

  test('does not repeat a transaction whose answer was lost, since it reads the chain first', async () => {
    const { url } = await start();
    fixture.chain.node.faults.set('ExecuteTransaction', 'executes, and does not answer');
    expect(await fixture.once([url])).toMatchObject({ exit: 0, done: [{ result: 'done' }] });
    fixture.chain.node.faults.clear();
    const { sent } = fixture;
    expect(await fixture.once([url])).toMatchObject(idle);
    expect(fixture.sent).toBe(sent);
  });

  test('registers an enclave even if another enclave does not answer', async () => {
    const { url } = await start();
    // No server listens at the first URL.
    const { exit, done, alerts } = await fixture.once(['http://127.0.0.1:1', url]);
    expect([exit, done]).toEqual([1, [{ kind: 'register', subject: url, result: 'done' }]]);
    expect(alerts).toMatchObject([{ code: 'ENCLAVE_UNREACHABLE', subject: 'http://127.0.0.1:1' }]);
  });
});

test('a keeper spends at most the gas of gas_a_day in a day', async () => {
  const [firstServer, secondServer] = [await start(), await start()];
  const content = { gas_a_day: 100_000_000, gas_budget: 100_000_000 };
  const { exit, done, alerts } = await fixture.once([firstServer.url, secondServer.url], { content });
  expect([exit, done]).toEqual([1, [{ kind: 'register', subject: firstServer.url, result: 'done' }]]);
  expect(alerts).toMatchObject([{ code: 'GAS_A_DAY', subject: fixture.configId }]);
  expect(await fixture.ids()).toHaveLength(1);
});

test('a keeper pays for destroying stale enclaves from half of gas_a_day', async () => {
  const [old, successor] = [await start(), await start()];
  const oldId = await register(old);
  await fixture.rotateTo(successor.url);
  const runOnce = (gas_a_day: number) =>
    fixture.once([successor.url], { content: { gas_a_day, gas_budget: 100_000_000 } });
  const { exit, done, alerts } = await runOnce(199_999_999);
  // A warning sets no exit code.
  expect([exit, done]).toEqual([0, []]);
  expect(alerts).toMatchObject([{ code: 'DESTRUCTION_WAITS', subject: fixture.configId }]);
  expect((await runOnce(200_000_000)).done).toEqual([{ kind: 'destroy', subject: oldId, result: 'done' }]);
});

describe('a keeper does not start', () => {
  test('with a development root or development registers on a real network', async () => {
    const network = { node: undefined, network: 'testnet' };
    for (const root of ['root.pem', undefined]) {
      const path = fixture.write({ ...fixture.content(['https://one.example']), ...network, root });
      const { status, stderr } = await fixture.run(path, ['--once']);
      expect([status, stderr]).toEqual([2, expect.stringMatching(/^DEVELOPMENT_TRUST: /)]);
    }
  });

  test('without a signer or without its file', async () => {
    const path = fixture.write(fixture.content(['https://one.example']));
    const { key } = fixture.operator;
    const { callScript } = await import('../../src/cli/run.ts');
    expect(await callScript('keeper/keep.ts', [path, '--once'])).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^NO_SENDER: /),
    });
    expect(await fixture.run('/nonexistent/keeper.yaml', ['--once'], { key, registrar: '' })).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^UNREADABLE_FILE: /),
    });
  });
});
