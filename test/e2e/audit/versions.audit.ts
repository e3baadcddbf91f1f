/**
 * An audit checks every version of `move/enclave` and of the application: the linked versions, and older and
 * newer ones.
 */
import { Transaction } from '@mysten/sui/transactions';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { updatePcrs } from '../../../src/library/sui/transactions.ts';
import { sourcesIn } from '../../../src/toolchain/audit/move_sources.ts';
import { ENCLAVE_PACKAGE } from '../../../src/toolchain/places.ts';
import {
  compile,
  compileHelper,
  expectAgreement,
  expectVerdict,
  genuineModules,
  HONEST,
  listFaultySubjects,
  packageIn,
  runAudit,
  WEATHER,
  weatherWith,
} from './packages.ts';
import { type Deployed, type Published, World } from './world.ts';

let world: World;
/** Modules of `move/enclave`, as a release has them. */
let genuineEnclave: Uint8Array[];
/** Modules of `move/enclave`, changed to accept any signature. */
let enclaveWithoutSignatureCheck: Uint8Array[];
/** Modules of `move/enclave`, changed to register any image. */
let enclaveWithoutPcrCheck: Uint8Array[];
beforeAll(async () => {
  world = await World.start();
  genuineEnclave = await genuineModules();
  enclaveWithoutSignatureCheck = await enclaveWith('sources/enclave.move', (text) =>
    text.replace(
      /assert!\((enclave\.verify_signature\(intent, timestamp_ms, payload, signature\)), EInvalidSignature\)/,
      'let _ = $1',
    ),
  );
  enclaveWithoutPcrCheck = await enclaveWith('sources/enclave.move', (text) =>
    text.replace(/assert!\(([^;]*), EInvalidPCRs\)/, 'let _ = $1'),
  );
});
afterAll(() => world.close());

/** Compiles `move/enclave` with a change. */
async function enclaveWith(path: string, change: (text: string) => string): Promise<Uint8Array[]> {
  const sources = sourcesIn(ENCLAVE_PACKAGE);
  const text = sources[path] ?? '';
  expect(change(text)).not.toBe(text);
  return await compile('enclave', { ...sources, [path]: change(text) });
}

const audit = (published: Published, application = WEATHER, options: readonly string[] = []) =>
  runAudit(world, published, application, options);

/**
 * Returns weather with this number of additional functions. Each larger number includes the functions of all
 * smaller ones.
 */
const extendWeather = (count: number) =>
  weatherWith((text) =>
    Array.from({ length: count }, (_, index) => `public fun extra_${index}(): u64 { ${index} }`).reduce(
      (whole, line) => `${whole}${line}\n`,
      text,
    ),
  );

const compileLinkedWeather = (enclave: string, application = WEATHER) =>
  compile('weather', packageIn(application, 'weather'), { enclave });

/**
 * Mints a reading that no enclave signed.
 *
 * @param target the function, in the application or in another package
 * @returns the types of the created objects
 */
async function forge({ configId, application }: Deployed, target: string): Promise<string[]> {
  const enclave = [...world.node.ledger.objects.values()].findLast(({ type }) =>
    type.endsWith(`::enclave::Enclave<${application}>`),
  );
  const tx = new Transaction();
  const nft = tx.moveCall({
    target,
    arguments: [
      tx.pure.string('Atlantis'),
      tx.pure.u64(99),
      tx.pure.u64(Date.now()),
      tx.pure.vector('u8', new Array(64).fill(0)),
      tx.object(enclave?.id ?? ''),
      tx.object(configId),
      tx.object('0x6'),
    ],
  });
  tx.transferObjects([nft], world.address);
  return (await world.submit(tx)).created.map(({ type }) => type);
}

/** Compiles a stranger's package, which calls the application. */
const compileStrangerPackage = (application: string, enclave: string) =>
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
    const versions = [WEATHER, extendWeather(1), extendWeather(2)];
    const repository = world.repository();
    const commits = versions.map(({ files }) => repository.writeCommit(files));
    const modules = await Promise.all(
      versions.map((version) => compile('weather', packageIn(version, 'weather'))),
    );
    const published = await world.publishModules([...genuineEnclave, ...(modules[0] ?? [])], 'weather');
    const deployed = await world.deploy(WEATHER, repository, commits[0] ?? '', { published });
    let latest = published.packageId;
    for (const index of [1, 2]) {
      latest = await world.upgrade(published, latest, [...genuineEnclave, ...(modules[index] ?? [])]);
      const source = world.createSource(versions[index] ?? WEATHER, repository, commits[index] ?? '');
      const tx = new Transaction();
      updatePcrs(tx, { ...deployed, source });
      await world.submit(tx);
    }
    const url = await world.serve(deployed);
    const sourceOptions = ['--source', repository.folder, '--url', url];
    const verdict = await world.audit(deployed.configId, sourceOptions);
    expectAgreement(verdict);
    const release = /the release [^,]+/.exec(verdict.line)?.[0];
    expect(verdict.line.split('. ')[1]).toBe(
      `Older versions of packages can still be called, from ${release}, the commit ${commits[0]}, the commit ${commits[1]}`,
    );
    expect(verdict.older).toHaveLength(4);

    // A node without events lists neither commits nor other configs. The auditor names the commits instead.
    world.node.faults.set('ListEvents', { status: 'UNIMPLEMENTED', message: '' });
    onTestFinished(() => void world.node.faults.clear());
    const older = commits.slice(0, 2).flatMap((commit) => ['--older-source', commit]);
    const packageIds = [published.packageId, expect.stringMatching(/^0x/)];
    for (const [options, unknownPackages] of [
      [[], packageIds],
      [older.slice(0, 2), packageIds.slice(1)],
      [older, []],
    ] as const) {
      const partialVerdict = await world.audit(deployed.configId, [...sourceOptions, ...options]);
      expectVerdict(partialVerdict, 'NOT_FULLY_CHECKED');
      expect(listFaultySubjects(partialVerdict)).toEqual([
        ...unknownPackages,
        'other configs of the application',
      ]);
      expect(partialVerdict.line.includes('--older-source')).toBe(unknownPackages.length > 0);
    }
  });

  test('an application and move/enclave, each in its own package, agree with their sources, even after an upgrade of move/enclave', async () => {
    const { packageId: enclave, ...enclaveIds } = await world.publishModules(genuineEnclave, 'enclave');
    const published = await world.publishModules(await compileLinkedWeather(enclave), 'weather', enclave, [
      enclave,
    ]);
    await world.upgrade({ ...enclaveIds, packageId: enclave }, enclave, genuineEnclave);
    const { verdict } = await audit(published);
    expectAgreement(verdict);
    expect(verdict.older).toEqual([
      expect.stringMatching(`^version 1 of 2 of enclave, ${enclave}: the release`),
    ]);
    expect(verdict.holders.filter(({ what: capability }) => capability === 'UpgradeCap')).toHaveLength(2);
  });
});

describe('an audit reports a version of move/enclave', () => {
  test('that skips the signature, and to which the application is linked', async () => {
    const enclave = await world.publishModules(enclaveWithoutSignatureCheck, 'enclave');
    const { packageId } = enclave;
    const published = await world.publishModules(
      await compileLinkedWeather(packageId),
      'weather',
      packageId,
      [packageId],
    );
    await world.upgrade(enclave, packageId, genuineEnclave);
    const { verdict, deployed } = await audit(published);
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(listFaultySubjects(verdict)).toEqual([packageId]);
    // The lie works: the application mints a reading that no enclave signed.
    const minted = await forge(deployed, `${published.packageId}::weather::update_weather`);
    expect(minted).toContainEqual(expect.stringContaining('::weather::WeatherNFT'));
  });

  test('that registers any image, and to which an older version of the application is linked', async () => {
    const enclave = await world.publishModules(enclaveWithoutPcrCheck, 'enclave');
    const first = enclave.packageId;
    const published = await world.publishModules(await compileLinkedWeather(first), 'weather', first, [
      first,
    ]);
    const next = await world.upgrade(enclave, first, genuineEnclave);
    await world.upgrade(published, published.packageId, await compileLinkedWeather(first), [next]);
    const { verdict } = await audit({ ...published, enclavePackage: next });
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(listFaultySubjects(verdict)).toEqual([first]);
  });

  test('that skips the signature, and through which another package calls the honest application', async () => {
    const enclave = await world.publishModules(genuineEnclave, 'enclave');
    const first = enclave.packageId;
    const published = await world.publishModules(await compileLinkedWeather(first), 'weather', first, [
      first,
    ]);
    const second = await world.upgrade(enclave, first, enclaveWithoutSignatureCheck);
    await world.upgrade(enclave, second, genuineEnclave);
    const strangerPackage = await world.publishModules(
      await compileStrangerPackage(published.packageId, first),
      'third',
      first,
      [second, published.packageId],
    );
    const { verdict, deployed } = await audit(published);
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(listFaultySubjects(verdict)).toEqual([second]);
    const direct = forge(deployed, `${published.packageId}::weather::update_weather`);
    await expect(direct).rejects.toMatchObject({ code: 'SUI_MOVE_ABORT' });
    const minted = await forge(deployed, `${strangerPackage.packageId}::third::mint`);
    expect(minted).toContainEqual(expect.stringContaining('::weather::WeatherNFT'));
  });

  test('that skips the signature and shares a package with the application, even if the next version is honest', async () => {
    const weather = await compile('weather', packageIn(WEATHER, 'weather'));
    const published = await world.publishModules([...enclaveWithoutSignatureCheck, ...weather], 'weather');
    await world.upgrade(published, published.packageId, [...genuineEnclave, ...weather]);
    const { verdict } = await audit(published);
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(listFaultySubjects(verdict)).toEqual([published.packageId]);
  });

  test('that has a module that no release has', async () => {
    const sources = sourcesIn(ENCLAVE_PACKAGE);
    const more = 'module enclave::more;\npublic fun one(): u64 { 1 }\n';
    const modules = await compile('enclave', { ...sources, 'sources/more.move': more });
    const enclave = await world.publishModules(genuineEnclave, 'enclave');
    const first = enclave.packageId;
    const published = await world.publishModules(await compileLinkedWeather(first), 'weather', first, [
      first,
    ]);
    const second = await world.upgrade(enclave, first, modules);
    const { verdict } = await audit(published);
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(verdict.line).toContain(`${second} has a module more`);
  });

  test('that links to a package that no release links to', async () => {
    const { packageId: helperId } = await world.publishModules(await compileHelper(HONEST), 'helper');
    const { packageId: enclave } = await world.publishModules(genuineEnclave, 'enclave', undefined, [
      helperId,
    ]);
    const published = await world.publishModules(await compileLinkedWeather(enclave), 'weather', enclave, [
      helperId,
      enclave,
    ]);
    const { verdict } = await audit(published);
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(verdict.line).toContain(`links to the package ${helperId}`);
  });

  test('that matches no release, and has another PACKAGE_VERSION', async () => {
    const next = await enclaveWith('sources/enclave.move', (text) =>
      text.replace('PACKAGE_VERSION: u64 = 1', 'PACKAGE_VERSION: u64 = 2'),
    );
    const enclave = await world.publishModules(genuineEnclave, 'enclave');
    const first = enclave.packageId;
    const published = await world.publishModules(await compileLinkedWeather(first), 'weather', first, [
      first,
    ]);
    const second = await world.upgrade(enclave, first, next);
    const { verdict } = await audit(published);
    expectVerdict(verdict, 'BYTECODE_DIFFERS');
    expect(listFaultySubjects(verdict)).toEqual([second]);
    expect(verdict.older).toEqual([expect.stringContaining(`version 1 of 2 of enclave, ${first}`)]);
  });
});

describe('an audit reports a version of the application', () => {
  test('that drops a check, even if the next version restores it', async () => {
    const enclave = (await world.publishModules(genuineEnclave, 'enclave')).packageId;
    const honest = await compileLinkedWeather(enclave);
    const published = await world.publishModules(honest, 'weather', enclave, [enclave]);
    const weakened = weatherWith((text) => text.replace(/enclave\.assert_signed\([^;]*response, sig\);/, ''));
    const second = await world.upgrade(
      published,
      published.packageId,
      await compileLinkedWeather(enclave, weakened),
      [enclave],
    );
    await world.upgrade(published, second, honest, [enclave]);
    const { verdict, deployed, repository, url } = await audit(published);
    expectVerdict(verdict, 'NOT_FULLY_CHECKED');
    expect(listFaultySubjects(verdict)).toEqual([second]);
    expect(await forge(deployed, `${second}::weather::update_weather`)).not.toEqual([]);
    // A version that matches a commit can still be harmful: the verdict names the commit, so that the auditor
    // reads it.
    const commit = repository.writeCommit(weakened.files);
    const sourceOptions = ['--source', repository.folder, '--url', url, '--older-source', commit];
    const agreement = await world.audit(deployed.configId, sourceOptions);
    expectAgreement(agreement);
    expect(agreement.line).toContain(commit);
  });

  test('that was made from a commit that the repository does not have', async () => {
    const published = await world.publishModules(
      [...genuineEnclave, ...(await compile('weather', packageIn(extendWeather(1), 'weather')))],
      'weather',
    );
    await world.upgrade(published, published.packageId, [
      ...genuineEnclave,
      ...(await compile('weather', packageIn(extendWeather(2), 'weather'))),
    ]);
    const { verdict } = await audit(published, extendWeather(2), ['--older-source', '7'.repeat(40)]);
    expectVerdict(verdict, 'NOT_FULLY_CHECKED');
    expect(verdict.line).toContain(`the commit ${'7'.repeat(40)}`);
  });
});

describe('a node', () => {
  test('that lists no versions of packages prevents agreement', async () => {
    const published = await world.publish(WEATHER, world.loadSource(WEATHER));
    world.node.faults.set('ListPackageVersions', { status: 'UNIMPLEMENTED', message: '' });
    onTestFinished(() => void world.node.faults.clear());
    const { verdict } = await audit(published);
    expectVerdict(verdict, 'NOT_FULLY_CHECKED');
    expect(listFaultySubjects(verdict)).toEqual(['the packages on chain']);
  });
});
