/** Tests commands that read ids from deployments/<network>.json, and the file itself. */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { relative } from 'node:path';
import { toBase58 } from '@mysten/sui/utils';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Chain } from '../../../../src/cli/sui/chain.ts';
import { readLatestConfig } from '../../../../src/cli/sui/contract.ts';
import { type Application, Deployments } from '../../../../src/cli/sui/deployments.ts';
import { FIXTURE_APPS, startServer, startWeather } from '../../server/support.ts';
import { ChainFixture, ofApplication, ofConfig } from './chain_fixture.ts';
import { script } from './run_script.ts';

let fixture: ChainFixture;
let framework: string;
beforeAll(async () => {
  fixture = await ChainFixture.start();
  framework = fixture.framework();
});
afterAll(() => fixture.close());

const ID = expect.stringMatching(/^0x[0-9a-f]{64}$/);
const file = () => fixture.file('deployments/localnet.json');
const readDeployment = (): { readonly applications: Readonly<Record<string, Application>> } =>
  JSON.parse(readFileSync(file(), 'utf8'));
const weather = () => readDeployment().applications['weather'] as Application;
const countSent = () => fixture.node.ledger.executed.length;

/** Runs a command on the local network. */
async function run(name: string, ...args: string[]) {
  const env = {
    SUI_PRIVATE_KEY: fixture.admin.getSecretKey(),
    SUI_FRAMEWORK_DIR: framework,
    DEPLOYMENTS: fixture.file('deployments'),
  };
  return await script(name, [...args, '--network', 'localnet', '--rpc-url', fixture.node.url, '--json'], env);
}

/** Starts a server that sends the text of `answer`, until the test ends. */
async function serve(answer: (request: IncomingMessage) => Promise<Response>): Promise<string> {
  const server = createServer(async (request, response) => {
    response.end(await (await answer(request)).text());
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function done(name: string, ...args: string[]): Promise<Record<string, unknown>> {
  const { exit, out, err, json } = await run(name, ...args);
  expect(exit, out + err).toBe(0);
  return json();
}

describe('without ids on the command line', () => {
  const root = () => ['--root', fixture.file('root.pem')];
  const pcrs = () => ['--pcrs', fixture.file('dev.pcrs')];

  test('publish records the package in the file; a second run prints the existing one', async () => {
    const { package: packageId, upgradeCap, enclaveCaps, notes } = await done('publish', 'weather');
    const [cap] = enclaveCaps as { id: string }[];
    expect(notes).toEqual([
      expect.stringMatching(/^Compiled /),
      expect.stringMatching(/^Recorded in .*localnet\.json\.$/),
    ]);
    expect(readDeployment()).toEqual({
      network: 'localnet',
      chain: '2a2a2a2a',
      applications: {
        weather: {
          package: packageId,
          original: packageId,
          version: 1,
          upgradeCap,
          enclavePackage: packageId,
          module: 'weather',
          witness: 'WEATHER',
          capability: cap?.id,
          registrars: [],
          enclaves: [],
        },
      },
    });
    const before = countSent();
    expect(await done('publish', 'weather')).toMatchObject({ status: 'unchanged', package: packageId });
    expect(countSent()).toBe(before);
  });

  test('create_config records the config; a second run prints the existing one', async () => {
    const { config } = await done('create_config', 'main', ...pcrs());
    expect(weather().config).toEqual({ id: config, name: 'main', version: 0 });
    const before = countSent();
    const again = await done('create_config', 'main', ...pcrs());
    expect(again).toMatchObject({ status: 'unchanged', config, capability: weather().capability });
    const otherConfig = await done('create_config', 'main', '--pcrs', fixture.file('other.pcrs'));
    expect(otherConfig['title']).toContain('another image');
    expect(countSent()).toBe(before);
    const forced = await done('create_config', 'main', '--again', ...pcrs());
    expect(forced['notes']).toContain(`The former config was ${config}.`);
    expect(forced['config']).not.toBe(config);
    expect(weather().config?.id).toBe(forced['config']);
  });

  test('create_config takes the capability from the file, which the node may not list yet', async () => {
    const { package: id, capability } = weather();
    const { calls } = fixture.node;
    calls.length = 0;
    for (const args of [[], ofApplication(id, id, 'weather', 'WEATHER')]) {
      const created = await done('create_config', ...args, 'main', '--again', ...pcrs());
      expect(created).toMatchObject({ status: 'done', capability });
    }
    expect(calls).toContain('ExecuteTransaction');
    expect(calls).not.toContain('ListOwnedObjects');
  });

  test('register_enclave, update_weather, submit, rotate and destroy_enclave take the ids from the file', async () => {
    const [{ server }, successor, stranger] = await Promise.all([
      startWeather({ nsm: fixture.nsm }),
      startWeather({ nsm: fixture.nsm }),
      startWeather({ nsm: fixture.nsm }),
    ]);
    const { url } = server;
    const weatherArguments = ['--from-url', url, '--location', 'Oslo', ...root()];
    expect((await run('update_weather', ...weatherArguments)).json()).toMatchObject({
      code: 'NOT_REGISTERED',
    });
    const { enclave } = await done('register_enclave', url, ...root());
    expect(weather().enclaves).toEqual([{ id: enclave, configVersion: 0, url: `${url}/` }]);
    expect(await done('update_weather', ...weatherArguments)).toMatchObject({
      nft: ID,
      enclave,
      location: 'Oslo',
    });

    const body = ['--body', '{"payload":{"location":"Oslo"}}', ...root()];
    const submitted = await done('submit', 'weather::update_weather', '--url', url, ...body);
    expect(submitted).toMatchObject({
      enclave,
      answer: { location: 'Oslo', temperature: expect.any(String) },
    });
    const type = `${weather().package}::weather::WeatherNFT`;
    expect(submitted['created']).toEqual([{ id: ID, type }]);
    const cold = ['--path', 'temperature', '--body', '{"payload":{"location":"!cold"}}'];
    expect(
      await done('submit', 'weather::update_temperature', '--url', url, ...cold, ...root()),
    ).toMatchObject({
      answer: { location: '!cold', tenths_plus_100000: '99996' },
      created: [{ id: ID, type: `${weather().package}::weather::TemperatureNFT` }],
    });

    const both = await run(
      'status',
      '--config',
      weather().config?.id ?? '',
      url,
      stranger.server.url,
      ...root(),
    );
    expect(both.exit).toBe(1);
    expect(both.json()).toMatchObject({
      enclaves: [{ id: enclave, stale: false, age: '0 min' }],
      answering: [
        { url, registration: 'registered', enclave },
        { url: stranger.server.url, registration: 'not registered' },
      ],
      silent: [],
    });
    // Two enclaves behind one URL answer in turn.
    let turn = 0;
    const proxy = await serve((request) => {
      turn += 1;
      return fetch(`${turn % 2 === 0 ? url : stranger.server.url}${request.url}`);
    });
    const proxyStatus = await run('status', proxy, ...root());
    expect(proxyStatus.json()['answering']).toEqual([
      expect.objectContaining({ url: proxy, registration: 'not registered' }),
      expect.objectContaining({ url: proxy, registration: 'registered', enclave }),
    ]);
    const silentUrls = [url, 'http://127.0.0.1:1'];
    expect((await run('status', ...silentUrls, ...root())).json()['answering']).toContainEqual(
      expect.objectContaining({ url: 'http://127.0.0.1:1', trusted: false, code: 'CLIENT_UNREACHABLE' }),
    );
    const strangerStatus = await run(
      'status',
      '--config',
      weather().config?.id ?? '',
      stranger.server.url,
      ...root(),
    );
    expect(strangerStatus.json()).toMatchObject({
      silent: [enclave],
      answering: [{ registration: 'not registered' }],
    });
    expect(await done('status', ...root())).toMatchObject({ answering: [{ url: `${url}/`, enclave }] });

    const rotated = await done('rotate', successor.server.url, ...pcrs(), '--again', ...root());
    expect(weather()).toMatchObject({ config: { version: 1 }, enclaves: [{}, { id: rotated['enclave'] }] });
    await done('destroy_enclave', String(enclave));
    expect(weather().enclaves.map(({ id }) => id)).toEqual([rotated['enclave']]);
  });

  test('register_enclave and rotate take several URLs, and send one transaction', async () => {
    const start = () => startServer({ nsm: fixture.nsm });
    const [firstServer, secondServer, thirdServer] = await Promise.all([start(), start(), start()]);
    const enclaveCount = weather().enclaves.length;
    const before = countSent();
    const version = weather().config?.version;
    await done('register_enclave', firstServer.url, ...root());
    // One enclave is registered already, and one is named twice.
    const more = await done(
      'register_enclave',
      firstServer.url,
      secondServer.url,
      thirdServer.url,
      secondServer.url,
      ...root(),
    );
    const enclaves = more['enclaves'] as { url: string; enclave: string; publicKey: string }[];
    expect(enclaves.map(({ url }) => url)).toEqual([firstServer.url, secondServer.url, thirdServer.url]);
    expect(more['notes']).toContain(`The enclave at ${firstServer.url} is registered already.`);
    expect(countSent()).toBe(before + 2);
    expect(
      weather()
        .enclaves.slice(enclaveCount)
        .map(({ id }) => id),
    ).toEqual(enclaves.map(({ enclave }) => enclave));
    expect(await done('register_enclave', firstServer.url, secondServer.url, ...root())).toMatchObject({
      status: 'unchanged',
    });

    const all = [firstServer.url, secondServer.url, thirdServer.url];
    const rotated = await done('rotate', ...all, ...pcrs(), '--again', ...root());
    expect(rotated['enclaves']).toHaveLength(3);
    expect(countSent()).toBe(before + 3);
    expect(weather().config?.version).toBe(Number(version) + 1);
    const checked = await done('status', ...all, ...root());
    expect(checked).toMatchObject({ silent: [] });
    expect(checked['answering']).toEqual(
      (rotated['enclaves'] as object[]).map((enclave) =>
        expect.objectContaining({ ...enclave, trusted: true }),
      ),
    );
    const many = Array.from({ length: 17 }, (_, port) => `http://127.0.0.1:${port + 1}`);
    expect((await run('register_enclave', ...many, ...root())).json()).toMatchObject({
      code: 'USAGE',
      error: expect.stringContaining('at most 16 URLs'),
    });
    for (const { enclave } of rotated['enclaves'] as { enclave: string }[])
      await done('destroy_enclave', enclave);
  });

  test('register_enclave registers none of several enclaves if one of them runs another image', async () => {
    const good = await startServer({ nsm: fixture.nsm });
    const bad = await startServer({ nsm: fixture.createNsm('dice') });
    const before = countSent();
    const { exit, json } = await run('register_enclave', good.url, bad.url, ...root());
    expect([exit, json()['code']]).toEqual([1, 'POLICY_PCRS']);
    expect(countSent()).toBe(before);
  });

  test('SUI_ENCLAVE_NETWORK and SUI_ENCLAVE_ROOT replace the options', async () => {
    const { url } = await startServer({ nsm: fixture.nsm });
    const env = {
      SUI_PRIVATE_KEY: fixture.admin.getSecretKey(),
      DEPLOYMENTS: fixture.file('deployments'),
      SUI_ENCLAVE_NETWORK: 'localnet',
      SUI_ENCLAVE_ROOT: fixture.file('root.pem'),
    };
    const node = ['--rpc-url', fixture.node.url, '--json'];
    const { json } = await script('register_enclave', [url, ...node, '--dry-run'], env);
    expect(json()).toMatchObject({ status: 'dry-run', network: expect.stringContaining('localnet') });
    const wrong = await script('register_enclave', [url, ...node], { ...env, SUI_ENCLAVE_NETWORK: 'local' });
    expect(wrong.json()).toMatchObject({
      code: 'USAGE',
      error: expect.stringContaining('SUI_ENCLAVE_NETWORK must be one of mainnet'),
    });
    const { package: id, config } = weather();
    const whole = [id, id, config?.id ?? '', url, 'weather', 'WEATHER', ...node, '--network', 'testnet'];
    const otherFolder = { ...env, DEPLOYMENTS: fixture.file('elsewhere') };
    expect((await script('register_enclave', whole, otherFolder)).json()).toMatchObject({
      code: 'DEVELOPMENT_TRUST',
      error: expect.stringContaining('unset SUI_ENCLAVE_ROOT'),
    });
  });

  test('an enclave of another application is refused, and the error names both applications', async () => {
    const apps = FIXTURE_APPS;
    const { url } = await startServer({ nsm: fixture.createNsm('dice'), apps, env: { APP: 'dice' } });
    const { config } = weather();
    const both = `The enclave reports that it runs dice, and the config ${config?.id} is of weather (${relative('', file())})`;
    const refused = () => run('register_enclave', url, '--app', 'weather', ...root());
    expect((await refused()).json()).toMatchObject({
      code: 'POLICY_PCRS',
      error: expect.stringMatching(/PCR2/),
    });
    expect(String((await refused()).json()['error']).endsWith(both)).toBe(true);
    expect((await run('rotate', url, ...pcrs(), ...root())).json()['error']).toContain(both);
    expect((await run('status', url, ...root())).json()).toMatchObject({
      answering: [{ code: 'POLICY_PCRS', reason: expect.stringContaining(both) }],
    });
    // If the file has a config of the other application, the refusal names it too.
    const before = readFileSync(file(), 'utf8');
    onTestFinished(() => writeFileSync(file(), before));
    const diceEntry = { ...weather(), config: { id: `0x${'c'.repeat(64)}`, name: 'dice', version: 0 } };
    const applications = { ...readDeployment().applications, dice: diceEntry };
    writeFileSync(file(), JSON.stringify({ ...readDeployment(), applications }));
    expect((await refused()).json()['error']).toContain(
      `${both}: use the config ${diceEntry.config.id}, or --app dice`,
    );
  });

  test('register_enclave records an enclave if an earlier run was killed between registering and recording it', async () => {
    const servers = [await startServer({ nsm: fixture.nsm }), await startServer({ nsm: fixture.nsm })];
    const [first = '', second = ''] = servers.map(({ url }) => url);
    const before = readFileSync(file(), 'utf8');
    const { enclave } = await done('register_enclave', first, ...root());
    const entry = weather().enclaves.at(-1);
    expect(entry?.id).toBe(enclave);
    // The state of the file when the command is killed between its transaction and the write to the file.
    const forget = () => writeFileSync(file(), before);
    forget();
    const count = countSent();
    expect(await done('register_enclave', first, ...root(), '--dry-run')).toMatchObject({
      status: 'unchanged',
    });
    expect(readFileSync(file(), 'utf8')).toBe(before);
    const again = await done('register_enclave', first, ...root());
    expect([again, countSent()]).toMatchObject([{ status: 'unchanged', enclave }, count]);
    const recorded = expect.arrayContaining([expect.stringMatching(/^Recorded in /)]);
    expect(again['notes']).toEqual(recorded);
    expect(weather().enclaves.filter(({ id }) => id === enclave)).toEqual([entry]);
    const third = await done('register_enclave', first, ...root());
    expect(third['notes']).not.toEqual(recorded);
    expect(weather().enclaves.filter(({ id }) => id === enclave)).toEqual([entry]);
    forget();
    await done('register_enclave', first, second, ...root());
    expect(weather().enclaves.slice(-2)).toMatchObject([entry, { url: `${second}/` }]);
    expect(countSent()).toBe(count + 1);
  });

  test('submit refuses an answer to another request or from another image, and invalid arguments', async () => {
    const { server } = await startWeather({ nsm: fixture.nsm });
    await done('register_enclave', server.url, ...root());
    const { package: packageId, config } = weather();
    const target = `${packageId}::weather::update_weather`;
    const before = countSent();
    const body = ['--body', '{"payload":{"location":"Oslo"}}'];
    const submit = async (...args: string[]) =>
      (await run('submit', '--url', server.url, ...root(), ...args)).json();
    for (const [code, message, ...args] of [
      ['CLIENT_INTENT', 'by --intent', target, ...body, '--intent', '3'],
      ['CLIENT_MALFORMED_ANSWER', 'does not match', target, ...body, '--fields', 'place,temperature'],
      ['FUNCTION', 'no such public or entry function', `${packageId}::weather::rain`, ...body],
      ['FUNCTION', 'no module dice', `${packageId}::dice::roll`, ...body],
      ['FUNCTION', 'last two values', `${packageId}::weather::location`, ...body],
      ['FUNCTION', 'WeatherNFT does not have the fields', target, ...body, '--struct', 'WeatherNFT'],
      ['USAGE', 'takes 0 objects', target, ...body, '--object', packageId],
      ['USAGE', 'be JSON', target, '--body', '{'],
      ['USAGE', 'above 2^53 as strings', target, '--body', '{"payload":9007199254740993}'],
      ['USAGE', '--body', target],
      ['USAGE', 'PACKAGE::module::function', 'update_weather', ...body],
      ['USAGE', 'the package as 0x and 64', '0x12zz::weather::update_weather', ...body],
      ['SUI_OBJECT_TYPE', 'EnclaveConfig', target, ...body, '--config', weather().capability ?? ''],
      ['DEPLOYMENT', '0 applications', 'dice::roll', ...body],
    ]) {
      const refused = await submit(...args);
      expect(refused, `${args}`).toMatchObject({ code, error: expect.stringContaining(message ?? '') });
    }
    // A man in the middle asks for another place. The answer is genuine, but it does not answer this request.
    const between = await serve((request) => {
      const changed = JSON.stringify({ payload: { location: 'Bergen' } });
      const headers = { 'content-type': 'application/json' };
      const init = request.method === 'POST' ? { method: 'POST', headers, body: changed } : {};
      return fetch(`${server.url}${request.url}`, init);
    });
    const middle = ['--url', between];
    expect(await submit(target, ...body, ...middle)).toMatchObject({ code: 'CLIENT_EXPECT' });
    const pinned = await submit(target, ...body, '--pcrs', fixture.file('other.pcrs'));
    expect(pinned).toMatchObject({ code: 'POLICY_PCRS' });
    expect(countSent()).toBe(before);
    const dry = await submit(target, ...body, '--config', config?.id ?? '', '--dry-run');
    expect(dry).toMatchObject({ status: 'dry-run', calls: [target], answer: { location: 'Oslo' } });
    expect(countSent()).toBe(before);
  });

  test('the commands wait for a node that shows an older version of the config than the file', async () => {
    const { config } = weather();
    const before = fixture.node.ledger.objects.get(config?.id ?? '');
    await done('update_pcrs', '--pcrs', fixture.file('other.pcrs'), '--overlap', '5');
    let reads = 0;
    const { lie } = fixture.node;
    onTestFinished(() => {
      fixture.node.lie = lie;
    });
    /** Has the node show the old config for two reads. */
    const lag = () => {
      reads = 0;
      fixture.node.lie = (object) => {
        if (object.id !== config?.id || before === undefined) return object;
        reads += 1;
        return reads <= 2 ? before : object;
      };
    };
    lag();
    expect(await done('end_overlap')).toMatchObject({ status: 'done' });
    lag();
    const image = ['--pcrs', fixture.file('dev.pcrs')];
    expect(await done('update_pcrs', ...image)).toMatchObject({ status: 'done' });
    lag();
    const chain = new Chain({ network: 'localnet', 'rpc-url': fixture.node.url }, {});
    chain.indexingMs = 0;
    const deployments = new Deployments('localnet', { DEPLOYMENTS: fixture.file('deployments') }, undefined);
    await expect(readLatestConfig(chain, config?.id ?? '', deployments)).rejects.toMatchObject({
      code: 'DEPLOYMENT',
      message: expect.stringContaining('the node lags behind'),
    });
  });

  test('commands that change registrars, configs and packages use the file too', async () => {
    const { registrar } = await done('add_registrar', fixture.address);
    expect(weather().registrars).toEqual([{ id: registrar, holder: fixture.address }]);
    await done('revoke_registrar', String(registrar));
    expect(weather().registrars).toEqual([]);
    const version = Number(weather().config?.version);
    await done('update_config', '--name', 'renamed');
    await done('update_pcrs', '--pcrs', fixture.file('other.pcrs'));
    expect(weather().config).toMatchObject({ name: 'renamed', version: version + 1 });
    const { original, package: packageId } = weather();
    // The package has another application.
    const { applications } = readDeployment();
    const twin = { package: packageId, original: weather().original, registrars: [], enclaves: [] };
    writeFileSync(file(), JSON.stringify({ ...readDeployment(), applications: { ...applications, twin } }));
    const upgraded = await done('upgrade', 'weather');
    expect(upgraded).toMatchObject({ before: packageId, version: '2' });
    expect(readDeployment().applications['twin']).toEqual({
      ...twin,
      package: upgraded['package'],
      version: 2,
    });
    writeFileSync(file(), JSON.stringify({ ...readDeployment(), applications: { weather: weather() } }));
    expect(weather()).toMatchObject({
      package: upgraded['package'],
      original,
      enclavePackage: upgraded['package'],
      version: 2,
    });
    expect(await done('retire_config', '--yes')).toMatchObject({ config: weather().config?.id });
    // After a retired config, another config can be created.
    expect(await done('create_config', 'next', ...pcrs())).toMatchObject({ status: 'done' });
    expect(weather().config).toMatchObject({ name: 'next', version: 0 });
  });

  test('ids on the command line take precedence over the file, and differences are reported', async () => {
    const { config, package: packageId } = weather();
    const renamed = await run('update_config', ...ofConfig(config?.id ?? '', packageId), '--name', 'same');
    expect(renamed.json()['notes']).toEqual([expect.stringContaining('Recorded in')]);
    const wrong = `0x${'d'.repeat(64)}`;
    const refused = await run(
      'update_config',
      ...ofConfig(config?.id ?? '', wrong),
      '--name',
      'x',
      '--dry-run',
    );
    expect(refused.json()).toMatchObject({
      code: 'SUI_OBJECT_NOT_FOUND',
      notes: [expect.stringContaining(`--enclave-package is ${wrong}, but ${packageId} in`)],
    });
  });

  test('the file supplies the ids that the command line lacks, and a warning reports an id that differs', async () => {
    const { config } = weather();
    const id = config?.id ?? '';
    const same = await run('update_config', '--config', id, '--name', 'same', '--dry-run');
    expect(same.json()).toMatchObject({ status: 'dry-run', config: id });
    expect(same.json()).not.toHaveProperty('notes');
    const wrong = `0x${'d'.repeat(64)}`;
    const refused = await run('update_config', '--config', wrong, '--name', 'x', '--dry-run');
    expect(refused.json()).toMatchObject({
      code: 'SUI_OBJECT_NOT_FOUND',
      notes: [expect.stringContaining(`--config is ${wrong}, but ${id} in`)],
    });
  });

  test('the ids of another chain with the same name are refused, until publish --again replaces the file', async () => {
    fixture.node.chainId = toBase58(new Uint8Array(32).fill(7));
    const before = countSent();
    for (const [name = '', ...args] of [
      ['retire_config', '--yes'],
      ['publish', 'weather'],
      ['upgrade', 'weather'],
    ]) {
      const refused = await run(name, ...args);
      expect(refused.json()).toMatchObject({
        code: 'DEPLOYMENT',
        error: expect.stringContaining('2a2a2a2a'),
      });
      expect(refused.exit).toBe(2);
    }
    expect(countSent()).toBe(before);
    const { package: packageId } = await done('publish', 'weather', '--again');
    expect(readDeployment()).toMatchObject({
      chain: '07070707',
      applications: { weather: { package: packageId } },
    });
    expect(weather()).not.toHaveProperty('config');
    fixture.node.ledger.packages.delete(String(packageId));
    expect((await run('publish', 'weather')).json()).toMatchObject({
      code: 'DEPLOYMENT',
      error: expect.stringContaining('--again'),
    });
  });
});

describe('the file', () => {
  const id = (digit: string) => `0x${digit.repeat(64)}`;
  const application = { package: id('a'), original: id('a'), registrars: [], enclaves: [] };
  const valid = { network: 'testnet', chain: '4c78adac', applications: { app: application } };
  let folder: string;
  let deployments: Deployments;
  beforeEach(() => {
    folder = fixture.file(`files-${Math.random()}`);
    mkdirSync(folder);
    deployments = new Deployments('testnet', { DEPLOYMENTS: folder }, undefined);
  });
  const write = (content: unknown) =>
    writeFileSync(`${folder}/testnet.json`, typeof content === 'string' ? content : JSON.stringify(content));

  test.each<[string, unknown, string]>([
    ['that is not JSON', '{', 'is not JSON'],
    ['of another network', { ...valid, network: 'mainnet' }, 'is of the network "mainnet"'],
    ['with a secret', { ...valid, privateKey: 'suiprivkey1' }, 'privateKey is an unknown key'],
    [
      'with a short id',
      { ...valid, applications: { app: { ...application, package: '0x2' } } },
      'applications.app.package must be 0x and 64',
    ],
    ['without its chain', { ...valid, chain: undefined }, 'chain'],
    ['with a path for a name', { ...valid, applications: { '../x': application } }, 'named by letters'],
  ])('%s is refused, and the error says what to change', (_, content, message) => {
    write(content);
    expect(() => deployments.read()).toThrow(message);
    expect(() => deployments.read()).not.toThrow('suiprivkey1');
  });

  test('causes an error that escapes control characters of a property name, and cuts a long name', () => {
    write({ ...valid, applications: { app: { ...application, [`\u001b]0;owned\u0007\u009b2J`]: 1 } } });
    expect(() => deployments.read()).toThrow(
      'applications.app.\\u{1b}]0;owned\\u{7}\\u{9b}2J is an unknown key',
    );
    write({ ...valid, ['k'.repeat(100_000)]: 1 });
    expect(() => deployments.read()).toThrow(/^.{1,400}$/);
  });

  test.each(['constructor', 'prototype', 'toString', 'hasOwnProperty'])(
    'may have an application named %s',
    async (name) => {
      const notes: string[] = [];
      const chain = { notes, id: async () => valid.chain } as unknown as Chain;
      write(valid);
      expect(deployments.read()?.applications.get(name)).toBeUndefined();
      const outcome = { status: 'done', title: '', fields: {} } as const;
      await deployments.record(chain, outcome, (applications) => {
        expect([...applications.keys()]).toEqual(['app']);
        return [[name, { ...application, module: 'found' }]];
      });
      expect(notes).toEqual([`Recorded in ${deployments.path}.`]);
      expect(Object.keys(JSON.parse(readFileSync(`${folder}/testnet.json`, 'utf8')).applications)).toEqual([
        'app',
        name,
      ]);
      const named = new Deployments('testnet', { DEPLOYMENTS: folder }, name);
      expect(named.fill(['module'])).toEqual({ module: 'found' });
    },
  );

  test('must not have an application named __proto__', () => {
    write(JSON.stringify(valid).replace('"app"', '"__proto__"'));
    expect(() => deployments.read()).toThrow('must be named by letters');
  });

  test('with several applications requires --app', () => {
    const app = {
      ...application,
      module: 'app',
      witness: 'APP',
      config: { id: id('c'), name: '', version: 0 },
    };
    write({ ...valid, applications: { one: app, two: { ...app, module: 'two' }, enclave: application } });
    expect(() => deployments.fill(['configId'])).toThrow('one, two, enclave: name one by --app');
    const named = (name: string) => new Deployments('testnet', { DEPLOYMENTS: folder }, name);
    expect(named('two').fill(['module', 'configId'])).toEqual({
      module: 'two',
      configId: id('c'),
    });
    expect(() => named('three').fill([])).toThrow('no application "three"');
    expect(() => named('enclave').fill(['configId'])).toThrow('run create_config');
    // A library has no enclaves, so the command takes the ids of the other application.
    write({ ...valid, applications: { one: app, enclave: application } });
    expect(deployments.fill(['module'])).toEqual({ module: 'app' });
  });

  test('is replaced as a whole, and a failure to write it causes a note', async () => {
    const { node } = fixture;
    const before = node.chainId;
    onTestFinished(() => {
      node.chainId = before;
    });
    node.chainId = toBase58(Uint8Array.of(0x4c, 0x78, 0xad, 0xac));
    const chain = new Chain({ network: 'testnet', 'rpc-url': node.url }, {});
    const outcome = { status: 'done', title: '', fields: {} } as const;
    const victim = fixture.file('victim');
    writeFileSync(victim, 'kept');
    const link = `testnet.json.${process.pid}`;
    symlinkSync(victim, `${folder}/${link}`);
    await deployments.record(chain, outcome, () => [['app', application]]);
    expect([readdirSync(folder), readFileSync(victim, 'utf8')]).toEqual([['testnet.json', link], 'kept']);
    const content = { ...valid, applications: new Map(Object.entries(valid.applications)) };
    expect(deployments.read()).toEqual(content);
    await deployments.record(chain, outcome, () => [['app', { ...application, package: 'no id' }]]);
    expect(deployments.read()).toEqual(content);
    expect(chain.notes.at(-1)).toContain('Keep the ids that are printed here');
    node.chainId = toBase58(Uint8Array.of(7, 7, 7, 7));
    const otherChain = new Chain({ network: 'testnet', 'rpc-url': node.url }, {});
    await deployments.record(otherChain, outcome, () => [['other', application]]);
    expect(deployments.read()).toEqual(content);
    expect(otherChain.notes.at(-1)).toContain(
      'the chain of testnet is 4c78adac, but the chain of the node is 07070707',
    );
    await deployments.record(chain, { ...outcome, status: 'unsigned' }, () => [['app', application]]);
    expect(chain.notes.at(-1)).toContain('once the transaction has been executed');
  });

  test('is not needed if all ids are given, and a damaged file then only causes a warning', async () => {
    write('{');
    const args = [
      ...ofConfig(id('c'), id('a')),
      '--name',
      'x',
      '--dry-run',
      '--json',
      '--address',
      fixture.address,
    ];
    const nodeOptions = ['--network', 'testnet', '--rpc-url', fixture.node.url];
    const { json } = await script('update_config', [...args, ...nodeOptions], { DEPLOYMENTS: folder });
    expect(json()).toMatchObject({
      code: 'SUI_OBJECT_NOT_FOUND',
      notes: [expect.stringContaining('is not JSON')],
    });
    const withoutIds = await script('retire_config', ['--yes', ...nodeOptions], { DEPLOYMENTS: folder });
    expect(withoutIds).toMatchObject({ exit: 2, err: expect.stringContaining('DEPLOYMENT: ') });
    const withoutFile = await script('retire_config', ['--yes', ...nodeOptions], {
      DEPLOYMENTS: `${folder}/none`,
    });
    expect(withoutFile.err).toContain('run publish and create_config first');
    expect(existsSync(`${folder}/none`)).toBe(false);
  });
});
