/**
 * Tests what every command that talks to Sui prints without a network, and in a dry run before it sends
 * anything.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../../../scripts/check/bench/ports.ts';
import { parsePcrs } from '../../../../src/library/sui/index.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { startServer, startWeather } from '../../server/support.ts';
import { ChainFixture, ofApplication, ofConfig, PACKAGE } from './chain_fixture.ts';
import { script } from './run_script.ts';

const ENCLAVE = `0x${'e'.repeat(64)}`;
const APP = `0x${'a'.repeat(64)}`;
const OBJECT = `0x${'b'.repeat(64)}`;
const KEY = new Ed25519Keypair();
const ADDRESS = KEY.toSuiAddress();
const SIGNER = { SUI_PRIVATE_KEY: KEY.getSecretKey() };
const NO_NODE_URL = `http://127.0.0.1:${await findFreePort()}`;
const UNREACHABLE = ['--rpc-url', NO_NODE_URL, '--network', 'localnet'];
const NO_NODE = [...UNREACHABLE, '--address', ADDRESS];

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'dry-run-'));
  const nsm = new EmulatedNsm();
  writeFileSync(join(dir, 'dev.pcrs'), nsm.pcrsFile());
});
afterAll(() => rmSync(dir, { recursive: true }));

const READING = ['ab'.repeat(64), '1744683300000', 'San Francisco', '13'];
const COMMANDS: Record<string, () => string[]> = {
  create_config: () => [
    ...ofApplication(ENCLAVE, APP, 'weather', 'WEATHER'),
    'weather',
    '--pcrs',
    join(dir, 'dev.pcrs'),
  ],
  update_pcrs: () => [...ofConfig(OBJECT), '--pcrs', join(dir, 'dev.pcrs')],
  update_weather: () => [APP, 'weather', 'WEATHER', OBJECT, ...READING],
  destroy_enclave: () => ['--enclave-package', ENCLAVE, OBJECT],
  retire_config: () => [...ofConfig(OBJECT), '--yes'],
  update_config: () => [...ofConfig(OBJECT), '--name', 'new', '--max-key-age', '24'],
  add_registrar: () => [...ofConfig(OBJECT), ADDRESS],
  call: () => [`${APP}::prices::open`, '--cap', OBJECT],
  migrate_config: () => ofConfig(OBJECT),
  end_overlap: () => ofConfig(OBJECT),
  revoke_registrar: () => [...ofConfig(OBJECT), APP],
  status: () => ['--config', OBJECT],
};

describe.concurrent.each(Object.entries(COMMANDS))('%s', (name, args) => {
  // `status` signs nothing, and has no sender.
  const nodeOptions = name === 'status' ? UNREACHABLE : NO_NODE;

  test('--dry-run without a reachable node prints that nothing is checked on the chain', async () => {
    const { exit, out } = await script(name, [...args(), ...nodeOptions, '--dry-run']);
    expect(out).toContain('Not checked on the chain');
    expect(out).toContain('the Sui node did not answer');
    expect(exit).toBe(2);
  });

  test('--dry-run --json needs no node', async () => {
    const { exit, json } = await script(name, [...args(), '--dry-run', '--json']);
    expect(json()).toMatchObject({
      status: 'dry-run',
      plan: [],
      notChecked: expect.any(String),
    });
    expect(exit).toBe(0);
  });

  test('without --dry-run fails with SUI_NODE_UNREACHABLE if the node is unreachable', async () => {
    const { exit, json } = await script(name, [...args(), ...nodeOptions, '--json'], SIGNER);
    expect(json()).toMatchObject({
      status: 'failed',
      code: 'SUI_NODE_UNREACHABLE',
      error: expect.stringContaining(`The node: localnet (${NO_NODE_URL}), which failed with ECONNREFUSED`),
    });
    expect(exit).toBe(2);
  });
});

describe('register_enclave', () => {
  test('--dry-run without a reachable node attests the enclave, and predicts the verdict of the chain', async () => {
    const fixture = await ChainFixture.start();
    const { url } = await startServer({ nsm: fixture.nsm });
    const args = [ENCLAVE, APP, OBJECT, url, 'weather', 'WEATHER', '--root', fixture.file('root.pem')];
    const { exit, out, err } = await script('register_enclave', [...args, ...NO_NODE, '--dry-run']);
    fixture.close();
    expect(err).toContain('The chain is expected to accept the attestation document until ');
    expect(out).toContain('Not checked on the chain');
    expect(exit).toBe(2);
  });

  test('--dry-run reports that the document would be refused', async () => {
    const { url } = await startServer({ nsm: new EmulatedNsm() });
    const { exit, out } = await script('register_enclave', [
      ENCLAVE,
      APP,
      OBJECT,
      url,
      'weather',
      'WEATHER',
      '--dry-run',
    ]);
    expect(out).toContain('It would fail');
    expect(out).toContain('WOULD_ABORT');
    expect(exit).toBe(1);
  });
});

describe('publish', () => {
  test('reports that no node answers before it reports a missing framework', async () => {
    const noAnswer = expect.stringMatching(/No node answers there: .* play or dev-sui starts one$/);
    const args = ['weather', ...NO_NODE, '--json'];
    const refused = await script('publish', args, SIGNER);
    expect(refused.json()).toMatchObject({ code: 'SUI_NODE_UNREACHABLE', error: noAnswer });
    const dryRun = await script('publish', [...args, '--dry-run'], SIGNER);
    expect(dryRun.json()).toMatchObject({ status: 'dry-run', notChecked: noAnswer });
  });

  test.each<[string[]]>([[['--dry-run']], [[]]])(
    'with the flags %j refuses bytecode that was compiled against the stub',
    async (flags) => {
      const fixture = await ChainFixture.start();
      const args = ['weather', '--network', 'testnet', '--rpc-url', fixture.node.url, '--address', ADDRESS];
      const { exit, json } = await script('publish', [...args, ...flags, '--json'], SIGNER);
      fixture.close();
      expect([json(), exit]).toMatchObject([{ code: 'STUB_FRAMEWORK' }, 1]);
    },
  );

  test('--dry-run with a framework prints what it would publish', async () => {
    const fixture = await ChainFixture.start();
    const env = { SUI_FRAMEWORK_DIR: fixture.framework() };
    const { exit, out, err } = await script('publish', ['weather', ...NO_NODE, '--dry-run'], env);
    fixture.close();
    expect(err).toMatch(/Compiled move\/enclave and move\/weather: 6 modules, \d+ bytes/);
    expect(out).toMatch(
      /It would send:\n {2}- Publish\(6 modules\) with 0x\w+, 0x\w+\n {2}- TransferObjects\(result 0\) to 0x/,
    );
    expect(out).toContain('Not checked on the chain');
    expect(exit).toBe(2);
  });

  test('names an unknown package', async () => {
    const { exit, err } = await script('publish', ['dice', ...NO_NODE]);
    expect(err).toContain('there is no package "dice" in move/, which has enclave, feed, weather');
    expect(exit).toBe(2);
  });
});

test.each([
  ['no argument', [], 'missing: --config'],
  ['an unknown option', ['--force'], "Unknown option '--force'"],
  ['an argument that is not a URL', ['http://127.0.0.1:1', 'weather'], '<enclave_url> must be the URL'],
  ['an id as an argument', [OBJECT], `unexpected argument: ${OBJECT}. Give ids by --config`],
])('%s is a usage error, in text and in JSON', async (_, args, message) => {
  const [text, json] = await Promise.all([script('status', args), script('status', [...args, '--json'])]);
  const err = expect.stringMatching(/\. See sui-enclave status --help\n$/);
  expect(text).toMatchObject({ exit: 2, out: '', err });
  expect(text.err).toContain(`USAGE: ${message}`);
  expect(json.exit).toBe(2);
  expect(json.json()).toMatchObject({ status: 'failed', code: 'USAGE' });
});

test('without ids or a network, the error lists everything that is missing', async () => {
  expect((await script('rotate', [])).err).toContain('missing: <enclave_url>');
  expect((await script('rotate', ['http://127.0.0.1:1'])).err).toContain(
    'missing: --enclave-package, --config. Give all of them, or --network with a deployments/',
  );
});

describe('with a node', () => {
  let fixture: ChainFixture;
  beforeAll(async () => {
    fixture = await ChainFixture.start();
  });
  afterAll(() => fixture.close());

  test('--dry-run simulates, --unsigned prints only the bytes, and neither needs a key or sends anything', async () => {
    const capId = fixture.publish();
    const sent = fixture.node.ledger.executed.length;
    const args = [
      ...ofApplication(ENCLAVE, ENCLAVE, 'weather', 'WEATHER'),
      'weather',
      '--pcrs',
      join(dir, 'dev.pcrs'),
    ];
    const nodeOptions = ['--rpc-url', fixture.node.url, '--address', fixture.address];
    const dry = await script('create_config', [...args, ...nodeOptions, '--dry-run']);
    expect(dry.exit).toBe(0);
    expect(dry.out).toContain('The node simulated it without a failure');
    const call = `MoveCall ${ENCLAVE}::enclave::create_enclave_config<${ENCLAVE}::weather::WEATHER>`;
    const [pcr0 = '', pcr1 = ''] = readFileSync(join(dir, 'dev.pcrs'), 'utf8').match(/[0-9a-f]{96}/g) ?? [];
    expect(dry.out).toContain(`It would send:\n  - ${call}(${capId}, "weather", 0x${pcr0}, 0x${pcr1}, `);
    expect(dry.out).toContain('Nothing was signed or sent.');
    const unsigned = await script('create_config', [...args, ...nodeOptions, '--unsigned']);
    expect(unsigned).toMatchObject({ exit: 0, out: expect.stringMatching(/^[A-Za-z0-9+/]+=*\n$/) });
    expect(fixture.node.ledger.executed).toHaveLength(sent);
  });

  test('--dry-run with a node, but without a sender, simulates nothing', async () => {
    const args = [
      ...ofApplication(ENCLAVE, ENCLAVE, 'weather', 'WEATHER'),
      'weather',
      '--pcrs',
      join(dir, 'dev.pcrs'),
    ];
    const node = ['--rpc-url', fixture.node.url];
    fixture.publish();
    const { exit, json } = await script('create_config', [...args, ...node, '--dry-run', '--json']);
    expect(json()).toMatchObject({
      status: 'dry-run',
      notChecked: expect.stringContaining('SUI_PRIVATE_KEY'),
    });
    expect(exit).toBe(2);
  });

  test('create_config finds the capability by the type of the first version, even after an upgrade', async () => {
    const ownFixture = await ChainFixture.start();
    onTestFinished(() => ownFixture.close());
    const capId = ownFixture.publish();
    ownFixture.node.ledger.packages.set(APP, ownFixture.weather);
    const args = [
      ...ofApplication(APP, APP, 'weather', 'WEATHER'),
      'weather',
      '--pcrs',
      join(dir, 'dev.pcrs'),
    ];
    expect(await ownFixture.done('create_config', ...args)).toMatchObject({
      status: 'done',
      capability: capId,
      application: `${ENCLAVE}::weather::WEATHER`,
    });
  });

  test('create_config requires --cap if the sender owns several capabilities, and fails if the sender owns none', async () => {
    const capId = fixture.publish();
    const args = [
      ...ofApplication(ENCLAVE, ENCLAVE, 'weather', 'WEATHER'),
      'weather',
      '--pcrs',
      join(dir, 'dev.pcrs'),
    ];
    expect((await fixture.run('create_config', ...args)).json()).toMatchObject({
      code: 'CAPABILITY',
      error: expect.stringContaining(capId),
    });
    expect(await fixture.done('create_config', ...args, '--cap', capId)).toMatchObject({ capability: capId });
    const withoutCapability = await script('create_config', [
      ...args,
      '--rpc-url',
      fixture.node.url,
      '--address',
      ADDRESS,
      '--dry-run',
      '--json',
    ]);
    expect(withoutCapability.json()).toMatchObject({
      code: 'CAPABILITY',
      error: expect.stringContaining('owns no capability'),
    });
  });

  test('update_weather --from-url trusts only the registered key', async () => {
    const capId = fixture.publish();
    const configId = await fixture.config(capId);
    const { server } = await startWeather({ nsm: fixture.nsm });
    const enclaveId = await fixture.register(configId, capId, server.url);
    const otherWeather = await startWeather({ nsm: fixture.nsm });
    const requestUpdate = (url: string) =>
      fixture.run(
        'update_weather',
        ENCLAVE,
        'weather',
        'WEATHER',
        enclaveId,
        '--from-url',
        url,
        '--location',
        'Oslo',
        '--root',
        fixture.file('root.pem'),
      );
    expect((await requestUpdate(otherWeather.server.url)).json()).toMatchObject({
      status: 'failed',
      code: 'POLICY_PUBLIC_KEY',
    });
    expect((await requestUpdate(server.url)).json()).toMatchObject({ status: 'done', location: 'Oslo' });

    // A man in the middle asks for another place. The reading is genuine, but it is not the requested one.
    const between = createServer(async (request, response) => {
      const init = request.method === 'POST' && {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ payload: { location: 'Bergen' } }),
      };
      response.end(await (await fetch(`${server.url}${request.url}`, init || {})).text());
    });
    await new Promise<void>((resolve) => {
      between.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => void between.close());
    const sent = fixture.node.ledger.executed.length;
    const otherPlace = await requestUpdate(`http://127.0.0.1:${(between.address() as AddressInfo).port}`);
    expect(otherPlace.json()).toMatchObject({
      status: 'failed',
      code: 'OTHER_PLACE',
      error: expect.stringContaining('asked for "Oslo", got a signed reading of "Bergen"'),
    });
    expect(otherPlace.exit).toBe(1);
    expect(fixture.node.ledger.executed).toHaveLength(sent);
  });
});

describe('the allowed image', () => {
  const image = new EmulatedNsm().pcrsFile();
  const [pcr0, pcr1, pcr2] = image.split('\n').map((line) => line.split(' ')[0]);
  const buildRecord = {
    application: 'weather',
    commit: 'c0ffee',
    unchanged_tree: true,
    channel: 'experimental',
    registers: { pcr0, pcr1, pcr2 },
  };

  /** Returns the notes of both commands about a PCR file with these measurements beside it. */
  async function readNotes(
    name: string,
    measurementsName: string,
    measurements: unknown,
  ): Promise<unknown[]> {
    const folder = mkdtempSync(join(dir, 'image-'));
    writeFileSync(join(folder, name), image);
    const text = typeof measurements === 'string' ? measurements : JSON.stringify(measurements);
    writeFileSync(join(folder, measurementsName), text);
    const pcrs = ['--pcrs', join(folder, name), '--dry-run', '--json'];
    const outputs = await Promise.all([
      script('create_config', [...ofApplication(ENCLAVE, APP, 'weather', 'WEATHER'), 'weather', ...pcrs]),
      script('update_pcrs', [...ofConfig(OBJECT, ENCLAVE), ...pcrs]),
    ]);
    return outputs.flatMap((output) => output.json()['notes'] ?? []);
  }

  const twice = (pattern: RegExp) => [expect.stringMatching(pattern), expect.stringMatching(pattern)];

  test('is described by the application and the commit in the record of its build', async () => {
    const plain = /nitro\.pcrs: weather, built from c0ffee \(experimental\)\.$/;
    expect(await readNotes('nitro.pcrs', 'measurements.json', buildRecord)).toEqual(twice(plain));
    const changed = { ...buildRecord, unchanged_tree: false };
    expect(await readNotes('salt.pcrs', 'salt.measurements.json', changed)).toEqual(
      twice(/weather, built from c0ffee, with changes that were not committed/),
    );
  });

  test.each<[string, unknown, RegExp]>([
    [
      'is of another build',
      { ...buildRecord, registers: { pcr0, pcr1, pcr2: '7'.repeat(96) } },
      /^WARNING: .*measurements\.json and .*nitro\.pcrs have different registers/,
    ],
    ['is malformed', '{"application":', /^WARNING: .*measurements\.json is not a file that a build wrote/],
    [
      'could control the terminal',
      { ...buildRecord, commit: '\x1b[2Jc0ffee' },
      /^WARNING: .* is not a file that a build wrote/,
    ],
  ])(
    'causes a warning if the measurements file beside its registers %s',
    async (_, measurements, warning) => {
      expect(await readNotes('nitro.pcrs', 'measurements.json', measurements)).toEqual(twice(warning));
    },
  );

  test('has its source on chain if --source-url names the repository of a recorded build', async () => {
    const fixture = await ChainFixture.start();
    onTestFinished(() => fixture.close());
    fixture.publish();
    const url = 'https://git.example/weather';
    const origin = { commit: '0c'.repeat(20), folder: 'src/apps/weather', framework_version: '0.1.0' };
    const registers = parsePcrs(fixture.nsm.pcrsFile());
    const text = JSON.stringify({ ...buildRecord, ...origin, registers });
    const write = (measurements: string) =>
      writeFileSync(fixture.file('dev.measurements.json'), measurements);
    const create = (...args: string[]) =>
      fixture.run(
        'create_config',
        ...ofApplication(PACKAGE, PACKAGE, 'weather', 'WEATHER'),
        'x',
        '--again',
        '--pcrs',
        fixture.file('dev.pcrs'),
        ...args,
      );
    write(text);
    const created = (await create('--source-url', url)).json();
    const source = {
      url,
      commit: origin.commit,
      folder: origin.folder,
      frameworkVersion: '0.1.0',
      measurementsSha256: createHash('sha256').update(text).digest('hex'),
    };
    expect(created).toMatchObject({ status: 'done', source });
    expect(await fixture.done('status', '--config', String(created['config']))).toMatchObject({
      config: { source },
    });
    const updated = await fixture.done(
      'update_pcrs',
      ...ofConfig(String(created['config'])),
      '--pcrs',
      fixture.file('other.pcrs'),
    );
    expect(updated).not.toHaveProperty('source');
    expect(await fixture.done('status', '--config', String(created['config']))).toMatchObject({
      config: { source: null },
    });
    const sent = fixture.node.ledger.executed.length;
    for (const [measurements, reason] of [
      [{ ...buildRecord, ...origin, registers, unchanged_tree: false }, /changes that were not committed/],
      [{ ...buildRecord, ...origin, registers, commit: null }, /names no commit/],
      [{ ...buildRecord, ...origin, registers, folder: undefined }, /of an older build/],
      [{ ...buildRecord, ...origin, registers, node_version: '24.0.1' }, /built with Node 24\.0\.1/],
      [
        { ...buildRecord, ...origin, registers: { ...registers, pcr2: '7'.repeat(96) } },
        /has other registers/,
      ],
      ['{', /can't be read/],
    ] as const) {
      write(typeof measurements === 'string' ? measurements : JSON.stringify(measurements));
      const { exit, json } = await create('--source-url', url);
      expect(json()).toMatchObject({ code: 'SOURCE_UNKNOWN', error: expect.stringMatching(reason) });
      expect(exit).toBe(2);
    }
    rmSync(fixture.file('dev.measurements.json'));
    expect((await create('--source-url', url)).json()).toMatchObject({
      code: 'SOURCE_UNKNOWN',
      error: expect.stringContaining('there is no dev.measurements.json beside it'),
    });
    expect((await create('--source-url', 'ü')).json()).toMatchObject({ code: 'USAGE' });
    expect(fixture.node.ledger.executed).toHaveLength(sent);
    expect((await create()).json()).toMatchObject({ status: 'done' });
  });

  test('is not described by a measurements file that belongs to another PCR file', async () => {
    expect(await readNotes('dev.pcrs', 'measurements.json', buildRecord)).toEqual([]);
  });
});

describe.concurrent('update_weather', () => {
  const base = [APP, 'weather', 'WEATHER', OBJECT];
  test.each([
    ['a short signature', [...base, 'abcd', '1', 'Oslo', '1'], '128 hexadecimal'],
    [
      'a timestamp in words',
      [...base, READING[0] ?? '', 'now', 'Oslo', '1'],
      'integer number of milliseconds',
    ],
    ['a timestamp of 2^64', [...base, READING[0] ?? '', String(2n ** 64n), 'Oslo', '1'], 'below 2^64'],
    ['a temperature of 20 digits', [...base, READING[0] ?? '', '1', 'Oslo', '9'.repeat(20)], 'below 2^64'],
    ['half a degree', [...base, READING[0] ?? '', '1', 'Oslo', '1.5'], 'an integer from 0'],
    [
      '5 degrees of frost',
      [...base, READING[0] ?? '', '1', 'Oslo', '-5'],
      'no enclave signs a reading below 0 °C',
    ],
    [
      'a fraction of a degree of frost',
      [...base, READING[0] ?? '', '1', 'Oslo', '-.4'],
      '<temperature> is -.4: no enclave signs',
    ],
    ['a time before 1970', [...base, READING[0] ?? '', '-1', 'Oslo', '1'], 'integer number of milliseconds'],
    ['an unknown option', [...base, ...READING, '-x'], "Unknown option '-x'"],
    ['an incomplete reading', [...base, READING[0] ?? ''], '--from-url and --location'],
    ['no reading', base, '--from-url and --location'],
    ['a URL without a place', [...base, '--from-url', 'http://127.0.0.1:1'], 'give --location'],
    [
      'both a reading and a URL',
      [...base, ...READING, '--from-url', 'http://127.0.0.1:1', '--location', 'Oslo'],
      'no reading',
    ],
  ])('refuses %s', async (_, args, message) => {
    const [run, dry] = await Promise.all([
      script('update_weather', [...args, ...NO_NODE]),
      script('update_weather', [...args, '--dry-run']),
    ]);
    expect(run.err).toContain(message);
    expect([run.exit, dry.exit]).toEqual([2, 2]);
  });

  test('accepts a place that begins like a negative number', async () => {
    const weatherArguments = ['--from-url', 'http://127.0.0.1:1', '--location', '-5th Avenue', '--dry-run'];
    expect(await script('update_weather', [...base, ...weatherArguments])).toMatchObject({
      exit: 0,
      err: '',
    });
  });
});
