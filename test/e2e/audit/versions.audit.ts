/** Every version of every package that contracts can be made to run counts: those that are linked, and those that are older or newer. */
import { Transaction } from '@mysten/sui/transactions';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { sourcesIn } from '../../../src/commands/audit/move_sources.ts';
import { ENCLAVE_PACKAGE } from '../../../src/commands/places.ts';
import type { Sources } from '../../../src/commands/sui/move_packages.ts';
import { updatePcrs } from '../../../src/library/sui/transactions.ts';
import { framework } from '../../src/commands/audit/applications.ts';
import { type Application, type Deployed, ENCLAVE, type Published, type Verdict, World } from './world.ts';

const WEATHER: Application = { files: framework(), folder: 'src/apps/weather', module: 'weather' };
const MODULE = 'move/weather/sources/weather.move';
const MANIFEST = 'move/weather/Move.toml';

let world: World;
/** The modules of the framework's package. */
let genuine: Uint8Array[];
/** Accepts any signature. */
let unsigned: Uint8Array[];
/** Registers any image. */
let unmeasured: Uint8Array[];
beforeAll(async () => {
  world = await World.start();
  genuine = [...(await ENCLAVE.enclave()).values()];
  unsigned = await enclaveWith('sources/enclave.move', (text) =>
    text.replace(
      /assert!\((enclave\.verify_signature\(intent, timestamp_ms, payload, signature\)), EInvalidSignature\)/,
      'let _ = $1',
    ),
  );
  unmeasured = await enclaveWith('sources/enclave.move', (text) =>
    text.replace(/assert!\(([^;]*), EInvalidPCRs\)/, 'let _ = $1'),
  );
});
afterAll(() => world.close());

/** The package of the framework with a change. */
async function enclaveWith(path: string, change: (text: string) => string): Promise<Uint8Array[]> {
  const sources = sourcesIn(ENCLAVE_PACKAGE);
  const text = sources[path] ?? '';
  expect(change(text)).not.toBe(text);
  return await compile('enclave', { ...sources, [path]: change(text) });
}

/** @param published the original ids of packages, by folder @param folders of other packages that it depends on */
async function compile(
  name: string,
  sources: Sources,
  published: Record<string, string> = {},
  folders: Record<string, Sources> = {},
): Promise<Uint8Array[]> {
  const linked = { published: new Map(Object.entries(published)), folders: new Map(Object.entries(folders)) };
  return (await ENCLAVE.compile(name, sources, linked)).map(({ bytes }) => bytes);
}

/** The sources of a package in an application's files. */
function packageIn({ files }: Application, name: string): Sources {
  const prefix = `move/${name}/`;
  const own = Object.entries(files).filter(([path]) => path.startsWith(prefix));
  return Object.fromEntries(own.map(([path, content]) => [path.slice(prefix.length), String(content)]));
}

/** Weather with another text in its contract. */
function weatherWith(change: (text: string) => string): Application {
  const text = String(WEATHER.files[MODULE]);
  expect(change(text)).not.toBe(text);
  return { ...WEATHER, files: { ...WEATHER.files, [MODULE]: change(text) } };
}

/** Weather whose n-th contract has a function of its own: later ones have those of the earlier ones. */
const extended = (count: number) =>
  weatherWith((text) =>
    Array.from({ length: count }, (_, index) => `public fun extra_${index}(): u64 { ${index} }`).reduce(
      (whole, line) => `${whole}${line}\n`,
      text,
    ),
  );

const weatherLinked = (enclave: string, application = WEATHER) =>
  compile('weather', packageIn(application, 'weather'), { enclave });

/** An application's commit, on chain with these packages, and an audit of it. */
async function audit(published: Published, application = WEATHER, options: readonly string[] = []) {
  const repository = world.repository();
  const commit = repository.commitOf(application.files);
  const deployed = await world.deploy(application, repository, commit, { published });
  const url = await world.serve(deployed);
  const verdict = await world.audit(deployed.configId, [
    '--source',
    repository.folder,
    '--url',
    url,
    ...options,
  ]);
  return { verdict, deployed, commit, repository, url };
}

function expectVerdict(
  verdict: Verdict,
  code: 'BYTECODE_DIFFERS' | 'BYTECODE_UNKNOWN' | 'NOT_FULLY_CHECKED',
): void {
  expect(verdict, verdict.out).toMatchObject({ exit: code === 'NOT_FULLY_CHECKED' ? 3 : 1, code });
}

function expectAgreement(verdict: Verdict): void {
  expect(verdict, verdict.out).toMatchObject({ exit: 0, verdict: 'agrees' });
}

/** The ids of the packages in the rows that do not agree. */
function faulty({ checks }: Verdict): string[] {
  return checks.filter(({ result }) => result !== 'same').map(({ what }) => what.replace('the package ', ''));
}

/** Mints a reading that no enclave signed. @param target of the function, in the application or in another package */
async function forge({ configId, application }: Deployed, target: string): Promise<string[]> {
  const enclave = [...world.node.ledger.objects.values()].findLast(({ type }) =>
    type.endsWith(`::enclave::Enclave<${application}>`),
  );
  const tx = new Transaction();
  const nft = tx.moveCall({
    target,
    arguments: [
      ...[tx.pure.string('Atlantis'), tx.pure.u64(99), tx.pure.u64(Date.now())],
      ...[tx.pure.vector('u8', new Array(64).fill(0)), tx.object(enclave?.id ?? '')],
      ...[tx.object(configId), tx.object('0x6')],
    ],
  });
  tx.transferObjects([nft], world.address);
  return (await world.submit(tx)).created.map(({ type }) => type);
}

/** A package of a stranger that calls the application. */
const thirdOf = (application: string, enclave: string) =>
  compile(
    'third',
    {
      'Move.toml':
        '[package]\nname = "third"\nedition = "2024"\n[dependencies]\napp = { local = "../weather" }\nenclave = { local = "../enclave" }\n',
      'sources/third.move': `module third::third;
use app::weather::{Self, WEATHER, WeatherNFT};
use enclave::enclave::{Enclave, EnclaveConfig};
use std::string::String;
use sui::clock::Clock;
public fun mint(
    location: String, temperature: u64, timestamp_ms: u64, sig: vector<u8>,
    enclave: &Enclave<WEATHER>, config: &EnclaveConfig<WEATHER>, clock: &Clock, ctx: &mut TxContext,
): WeatherNFT {
    weather::update_weather(location, temperature, timestamp_ms, &sig, enclave, config, clock, ctx)
}
`,
    },
    { enclave, weather: application },
    { weather: packageIn(WEATHER, 'weather') },
  );

describe('honest packages', () => {
  test('an application upgraded twice agrees with the commits that its config named', async () => {
    const versions = [WEATHER, extended(1), extended(2)];
    const repository = world.repository();
    const commits = versions.map(({ files }) => repository.commitOf(files));
    const modules = await Promise.all(versions.map((one) => compile('weather', packageIn(one, 'weather'))));
    const published = await world.publishModules([...genuine, ...(modules[0] ?? [])], 'weather');
    const deployed = await world.deploy(WEATHER, repository, commits[0] ?? '', { published });
    let latest = published.packageId;
    for (const index of [1, 2]) {
      latest = await world.upgrade(published, latest, [...genuine, ...(modules[index] ?? [])]);
      const source = world.sourceOf(versions[index] ?? WEATHER, repository, commits[index] ?? '');
      const tx = new Transaction();
      updatePcrs(tx, { ...deployed, source });
      await world.submit(tx);
    }
    const url = await world.serve(deployed);
    const named = ['--source', repository.folder, '--url', url];
    const verdict = await world.audit(deployed.configId, named);
    expectAgreement(verdict);
    const release = /the release [^,]+/.exec(verdict.line)?.[0];
    expect(verdict.line.split('. ')[1]).toBe(
      `Older versions of packages can still be called, of ${release}, the commit ${commits[0]}, the commit ${commits[1]}`,
    );
    expect(verdict.older).toHaveLength(4);

    // A node without events: the auditor names the commits.
    world.node.faults.set('ListEvents', { status: 'UNIMPLEMENTED', message: '' });
    onTestFinished(() => void world.node.faults.clear());
    expectVerdict(await world.audit(deployed.configId, named), 'NOT_FULLY_CHECKED');
    const older = commits.slice(0, 2).flatMap((commit) => ['--older-source', commit]);
    expectAgreement(await world.audit(deployed.configId, [...named, ...older]));
    const first = await world.audit(deployed.configId, [...named, ...older.slice(0, 2)]);
    expectVerdict(first, 'NOT_FULLY_CHECKED');
    expect(first.line).toContain('--older-source');
  });

  test('an application and enclave in packages of their own agree, also after an upgrade of enclave', async () => {
    const { packageId: enclave, ...rest } = await world.publishModules(genuine, 'enclave');
    const published = await world.publishModules(await weatherLinked(enclave), 'weather', enclave, [enclave]);
    await world.upgrade({ ...rest, packageId: enclave }, enclave, genuine);
    const { verdict } = await audit(published);
    expectAgreement(verdict);
    expect(verdict.older).toEqual([
      expect.stringMatching(`^version 1 of 2 of enclave, ${enclave}: the release`),
    ]);
    expect(verdict.holders.filter(({ what }) => what === 'UpgradeCap')).toHaveLength(2);
  });
});

describe('versions of enclave', () => {
  test('the first one skips the signature, and the application is linked to it', async () => {
    const enclave = await world.publishModules(unsigned, 'enclave');
    const { packageId } = enclave;
    const published = await world.publishModules(await weatherLinked(packageId), 'weather', packageId, [
      packageId,
    ]);
    await world.upgrade(enclave, packageId, genuine);
    const { verdict, deployed } = await audit(published);
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(faulty(verdict)).toEqual([packageId]);
    // The lie: it mints what no enclave signed.
    const minted = await forge(deployed, `${published.packageId}::weather::update_weather`);
    expect(minted).toContainEqual(expect.stringContaining('::weather::WeatherNFT'));
  });

  test('the first one registers any image, and the type is of a version that was linked to it', async () => {
    const enclave = await world.publishModules(unmeasured, 'enclave');
    const first = enclave.packageId;
    const published = await world.publishModules(await weatherLinked(first), 'weather', first, [first]);
    const next = await world.upgrade(enclave, first, genuine);
    await world.upgrade(published, published.packageId, await weatherLinked(first), [next]);
    const { verdict } = await audit({ ...published, enclavePackage: next });
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(faulty(verdict)).toEqual([first]);
  });

  test('the first one is honest and linked, the second is not, and a third package calls with that', async () => {
    const enclave = await world.publishModules(genuine, 'enclave');
    const first = enclave.packageId;
    const published = await world.publishModules(await weatherLinked(first), 'weather', first, [first]);
    const second = await world.upgrade(enclave, first, unsigned);
    await world.upgrade(enclave, second, genuine);
    const third = await world.publishModules(await thirdOf(published.packageId, first), 'third', first, [
      ...[second, published.packageId],
    ]);
    const { verdict, deployed } = await audit(published);
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(faulty(verdict)).toEqual([second]);
    const direct = forge(deployed, `${published.packageId}::weather::update_weather`);
    await expect(direct).rejects.toMatchObject({ code: 'SUI_MOVE_ABORT' });
    const minted = await forge(deployed, `${third.packageId}::third::mint`);
    expect(minted).toContainEqual(expect.stringContaining('::weather::WeatherNFT'));
  });

  test('a version in one package with the application skips the signature, and the next is honest', async () => {
    const weather = await compile('weather', packageIn(WEATHER, 'weather'));
    const published = await world.publishModules([...unsigned, ...weather], 'weather');
    await world.upgrade(published, published.packageId, [...genuine, ...weather]);
    const { verdict } = await audit(published);
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(faulty(verdict)).toEqual([published.packageId]);
  });

  test('one has a module besides those of the release', async () => {
    const sources = sourcesIn(ENCLAVE_PACKAGE);
    const more = 'module enclave::more;\npublic fun one(): u64 { 1 }\n';
    const modules = await compile('enclave', { ...sources, 'sources/more.move': more });
    const enclave = await world.publishModules(genuine, 'enclave');
    const first = enclave.packageId;
    const published = await world.publishModules(await weatherLinked(first), 'weather', first, [first]);
    const second = await world.upgrade(enclave, first, modules);
    const { verdict } = await audit(published);
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(verdict.line).toContain(`${second} has a module more`);
  });

  test('one links to a package, which no release does', async () => {
    const { packageId: other } = await world.publishModules(await helperOf(HONEST), 'helper');
    const { packageId: enclave } = await world.publishModules(genuine, 'enclave', undefined, [other]);
    const published = await world.publishModules(await weatherLinked(enclave), 'weather', enclave, [
      ...[other, enclave],
    ]);
    const { verdict } = await audit(published);
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(verdict.line).toContain(`links to the package ${other}`);
  });

  test('a release is callable no more where the config is of another package version', async () => {
    const next = await enclaveWith('sources/enclave.move', (text) =>
      text.replace('PACKAGE_VERSION: u64 = 1', 'PACKAGE_VERSION: u64 = 2'),
    );
    const enclave = await world.publishModules(genuine, 'enclave');
    const first = enclave.packageId;
    const published = await world.publishModules(await weatherLinked(first), 'weather', first, [first]);
    const second = await world.upgrade(enclave, first, next);
    const { verdict } = await audit(published);
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(faulty(verdict)).toEqual([second]);
    expect(verdict.older).toEqual([expect.stringContaining(`version 1 of 2 of enclave, ${first}`)]);
  });
});

describe('versions of the application', () => {
  test('an upgrade drops a check, and the next one restores it', async () => {
    const enclave = (await world.publishModules(genuine, 'enclave')).packageId;
    const honest = await weatherLinked(enclave);
    const published = await world.publishModules(honest, 'weather', enclave, [enclave]);
    const dropped = weatherWith((text) => text.replace(/enclave\.assert_signed\([^;]*response, sig\);/, ''));
    const second = await world.upgrade(
      published,
      published.packageId,
      await weatherLinked(enclave, dropped),
      [enclave],
    );
    await world.upgrade(published, second, honest, [enclave]);
    const { verdict, deployed, repository, url } = await audit(published);
    expectVerdict(verdict, 'NOT_FULLY_CHECKED');
    expect(faulty(verdict)).toEqual([second]);
    expect(await forge(deployed, `${second}::weather::update_weather`)).not.toEqual([]);
    // Equal is not harmless: the commit of the second version is named, to be read.
    const commit = repository.commitOf(dropped.files);
    const named = ['--source', repository.folder, '--url', url, '--older-source', commit];
    const equal = await world.audit(deployed.configId, named);
    expectAgreement(equal);
    expect(equal.line).toContain(commit);
  });

  test('an older version is of a commit that the repository does not have', async () => {
    const published = await world.publishModules(
      [...genuine, ...(await compile('weather', packageIn(extended(1), 'weather')))],
      'weather',
    );
    await world.upgrade(published, published.packageId, [
      ...[...genuine, ...(await compile('weather', packageIn(extended(2), 'weather')))],
    ]);
    const { verdict } = await audit(published, extended(2), ['--older-source', '7'.repeat(40)]);
    expectVerdict(verdict, 'NOT_FULLY_CHECKED');
    expect(verdict.line).toContain(`the commit ${'7'.repeat(40)}`);
  });
});

const HONEST = 'module helper::helper;\npublic fun check(value: u64) { assert!(value < 1000) }\n';
const DISHONEST = 'module helper::helper;\npublic fun check(_value: u64) {}\n';
const HELPER_TOML = '[package]\nname = "helper"\nedition = "2024"\n';

const helperOf = (text: string, toml = HELPER_TOML) =>
  compile('helper', { 'Move.toml': toml, 'sources/helper.move': text });

/** Weather that has a reading checked by a package of its own. */
function helped(toml = HELPER_TOML): Application {
  const calling = weatherWith((text) =>
    text.replace(/(let response = WeatherResponse)/, 'helper::helper::check(temperature);\n    $1'),
  );
  const manifest = `${String(WEATHER.files[MANIFEST])}helper = { local = "../helper" }\n`;
  const helper = { 'move/helper/Move.toml': toml, 'move/helper/sources/helper.move': HONEST };
  return { ...calling, files: { ...calling.files, ...helper, [MANIFEST]: manifest } };
}

/** Publishes that with `enclave` in one package. @param helper the original id of the helper; undefined: in the package too */
async function helpedModules(helper: string | undefined, application = helped()): Promise<Uint8Array[]> {
  const published = helper === undefined ? {} : { helper };
  const folders = { helper: packageIn(application, 'helper') };
  return [...genuine, ...(await compile('weather', packageIn(application, 'weather'), published, folders))];
}

describe('dependencies', () => {
  test('a helper that is a package of its own agrees, also in a newer version of the commit', async () => {
    const helper = await world.publishModules(await helperOf(HONEST), 'helper');
    const published = await world.publishModules(
      await helpedModules(helper.packageId),
      'weather',
      undefined,
      [helper.packageId],
    );
    await world.upgrade(helper, helper.packageId, await helperOf(HONEST));
    const { verdict } = await audit(published, helped());
    expectAgreement(verdict);
    expect(verdict.checks).toContainEqual(
      expect.objectContaining({
        what: `the package ${helper.packageId}`,
        against: expect.stringMatching('^move/helper of the commit'),
      }),
    );
    expect(verdict.holders.filter(({ what }) => what === 'UpgradeCap')).toHaveLength(2);
  });

  test('the first helper checks nothing, and the application is linked to it', async () => {
    const helper = await world.publishModules(await helperOf(DISHONEST), 'helper');
    const first = helper.packageId;
    const published = await world.publishModules(await helpedModules(first), 'weather', undefined, [first]);
    await world.upgrade(helper, first, await helperOf(HONEST));
    const { verdict } = await audit(published, helped());
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(faulty(verdict)).toEqual([first]);
  });

  test('the first helper is honest and linked, the second is not, the third is', async () => {
    const helper = await world.publishModules(await helperOf(HONEST), 'helper');
    const first = helper.packageId;
    const published = await world.publishModules(await helpedModules(first), 'weather', undefined, [first]);
    const second = await world.upgrade(helper, first, await helperOf(DISHONEST));
    await world.upgrade(helper, second, await helperOf(HONEST));
    const { verdict } = await audit(published, helped());
    expectVerdict(verdict, 'NOT_FULLY_CHECKED');
    expect(faulty(verdict)).toEqual([second]);
  });

  test('a helper before the one that every version is linked to can not run', async () => {
    const helper = await world.publishModules(await helperOf(DISHONEST), 'helper');
    const second = await world.upgrade(helper, helper.packageId, await helperOf(HONEST));
    const modules = await helpedModules(helper.packageId);
    const published = await world.publishModules(modules, 'weather', undefined, [second]);
    expectAgreement((await audit(published, helped())).verdict);
  });

  test('a package that only a newer helper calls', async () => {
    const deep = {
      'Move.toml': HELPER_TOML.replace('helper', 'deep'),
      'sources/deep.move': 'module deep::deep;\npublic fun ok() {}\n',
    };
    const { packageId: below } = await world.publishModules(await compile('deep', deep), 'deep');
    const helper = await world.publishModules(await helperOf(HONEST), 'helper');
    const first = helper.packageId;
    const published = await world.publishModules(await helpedModules(first), 'weather', undefined, [first]);
    const calling = await compile(
      'helper',
      {
        'Move.toml': `${HELPER_TOML}[dependencies]\ndeep = { local = "../deep" }\n`,
        'sources/helper.move': HONEST.replace('{ assert', '{ deep::deep::ok(); assert'),
      },
      { deep: below },
      { deep },
    );
    const second = await world.upgrade(helper, first, calling, [below]);
    const { verdict } = await audit(published, helped());
    expectVerdict(verdict, 'NOT_FULLY_CHECKED');
    expect(faulty(verdict).sort()).toEqual([second, below].sort());
  });

  test('a package that the linkage table lists and no source has', async () => {
    const { packageId: helper } = await world.publishModules(await helperOf(HONEST), 'helper');
    const weather = await compile('weather', packageIn(WEATHER, 'weather'));
    const published = await world.publishModules([...genuine, ...weather], 'weather', undefined, [helper]);
    const { verdict } = await audit(published);
    expectVerdict(verdict, 'NOT_FULLY_CHECKED');
    expect(faulty(verdict)).toEqual([helper]);
  });
});

describe('addresses and folders', () => {
  test('Move.toml gives the helper the address of another package, beside an equal decoy', async () => {
    const { packageId: evil } = await world.publishModules(await helperOf(DISHONEST), 'helper');
    const toml = `${HELPER_TOML}[addresses]\nhelper = "${evil}"\n`;
    const application = helped(toml);
    const decoy = await helperOf(HONEST);
    const modules = [...(await helpedModules(undefined, application)), ...decoy];
    const published = await world.publishModules(modules, 'weather', undefined, [evil]);
    const { verdict } = await audit(published, application);
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(faulty(verdict)).toContain(evil);
  });

  test('two folders declare the module of the type', async () => {
    const text = String(WEATHER.files[MODULE]);
    const copy = {
      'move/copy/Move.toml': HELPER_TOML,
      'move/copy/sources/copy.move': `/* /* a */ */ ${text}`,
    };
    const { verdict } = await audit(await world.publish(WEATHER, world.read(WEATHER)), {
      ...WEATHER,
      files: { ...WEATHER.files, ...copy },
    });
    expectVerdict(verdict, 'BYTECODE_UNKNOWN');
    expect(verdict.line).toContain('move/copy and move/weather of the commit');
  });

  test('the report names the folder of each package', async () => {
    const modules = [...(await helpedModules(undefined)), ...(await helperOf(HONEST))];
    const { verdict, commit } = await audit(await world.publishModules(modules, 'weather'), helped());
    expectAgreement(verdict);
    expect(verdict.checks.map(({ against }) => against)).toContain(
      `move/weather and move/helper of the commit ${commit}`,
    );
  });
});

describe('a node', () => {
  test('that lists no versions of packages', async () => {
    const published = await world.publish(WEATHER, world.read(WEATHER));
    world.node.faults.set('ListPackageVersions', { status: 'UNIMPLEMENTED', message: '' });
    onTestFinished(() => void world.node.faults.clear());
    const { verdict } = await audit(published);
    expectVerdict(verdict, 'NOT_FULLY_CHECKED');
    expect(faulty(verdict)).toEqual(['the packages on chain']);
  });
});
