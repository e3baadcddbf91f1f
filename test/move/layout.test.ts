/**
 * Checks that objects and events on chain have the bytes that src/library/sui reads and that the loopback
 * node's model writes.
 */
import { readFileSync } from 'node:fs';
import { bcs } from '@mysten/sui/bcs';
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { blake2b } from '@noble/hashes/blake2.js';
import { expect, test } from 'vitest';
import { ENCLAVE_EVENTS, readConfig, readEnclave, readRegistrar } from '../../src/library/sui/index.ts';
import { SourceContent } from '../../src/library/sui/structs.ts';
import { buildPackage, chooseFramework, testPackage } from '../../src/toolchain/move/packages.ts';
import { Config, Enclave, Registrar } from '../src/devnet/structs.ts';
import { withoutOwnTests } from './without_own_tests.ts';

const PACKAGE = `0x${'e'.repeat(64)}`;
const APPLICATION = `${PACKAGE}::weather::WEATHER`;
const TRANSACTION = 9n;

/** Returns the id of an object that the test's transaction creates. @param index 0 for the first one */
function computeId(index: number): string {
  const digest = Buffer.alloc(32);
  digest.writeBigUInt64LE(TRANSACTION);
  const bytes = Buffer.concat([Buffer.of(0xf1), digest, bcs.u64().serialize(index).toBytes()]);
  return `0x${Buffer.from(blake2b(bytes, { dkLen: 32 })).toString('hex')}`;
}

const [CAP, CONFIG, REGISTRAR] = [computeId(0), computeId(1), computeId(2)] as const;
// The id is arbitrary, since the WebAssembly VM does not derive ids as validators do: see address.test.ts.
const ENCLAVE = `0x${'d'.repeat(64)}`;
const PCR = new Uint8Array(48).fill(1);
const KEY = new Uint8Array(32).fill(0x11);

const source = {
  url: 'https://git.example/weather',
  commit: '0c'.repeat(20),
  folder: 'src/apps/weather',
  frameworkVersion: '0.1.0',
  measurementsSha256: '5e'.repeat(32),
};
const config = Config.serialize({
  id: CONFIG,
  name: 'testing',
  pcrs: [PCR, PCR, PCR],
  source: {
    url: source.url,
    commit: Buffer.from(source.commit, 'hex'),
    folder: source.folder,
    framework_version: source.frameworkVersion,
    measurements_sha256: Buffer.from(source.measurementsSha256, 'hex'),
  },
  capability_id: CAP,
  config_version: 2,
  overlap: { pcrs: [PCR, PCR, PCR], until_ms: 5 },
  max_key_age_ms: 86_400_000,
  registrars: [REGISTRAR],
  is_retired: true,
  package_version: 1,
  is_open: true,
}).toBytes();
const enclave = Enclave.serialize({
  id: ENCLAVE,
  pk: KEY,
  config_id: CONFIG,
  config_version: 2,
  registered_at_ms: 1744683923696n,
}).toBytes();
const registrar = Registrar.serialize({ id: REGISTRAR, config_id: CONFIG }).toBytes();

const image = { pcr0: '01'.repeat(48), pcr1: '01'.repeat(48), pcr2: '01'.repeat(48) };
const registered = { enclaveId: ENCLAVE, configId: CONFIG, configVersion: 2, publicKey: KEY };
const { EnclaveRegistered, EnclaveDestroyed } = ENCLAVE_EVENTS;
/** Last event of each type that the test's transaction emits, in BCS. */
const EMITTED: Readonly<Record<keyof typeof ENCLAVE_EVENTS, Uint8Array>> = {
  EnclaveCapCreated: ENCLAVE_EVENTS.EnclaveCapCreated.serialize({ capabilityId: CAP }).toBytes(),
  EnclaveConfigCreated: ENCLAVE_EVENTS.EnclaveConfigCreated.serialize({
    configId: CONFIG,
    capabilityId: CAP,
    name: 'testing',
    image,
    source: null,
    configVersion: 0,
  }).toBytes(),
  OpenConfigCreated: ENCLAVE_EVENTS.OpenConfigCreated.serialize({ configId: CONFIG }).toBytes(),
  PcrsUpdated: ENCLAVE_EVENTS.PcrsUpdated.serialize({
    configId: CONFIG,
    image,
    source,
    configVersion: 2,
    overlapUntilMs: 5,
  }).toBytes(),
  OverlapEnded: ENCLAVE_EVENTS.OverlapEnded.serialize({ configId: CONFIG, configVersion: 1 }).toBytes(),
  NameUpdated: ENCLAVE_EVENTS.NameUpdated.serialize({ configId: CONFIG, name: 'testing' }).toBytes(),
  MaxKeyAgeUpdated: ENCLAVE_EVENTS.MaxKeyAgeUpdated.serialize({
    configId: CONFIG,
    maxKeyAgeMs: 86_400_000,
  }).toBytes(),
  ConfigMigrated: ENCLAVE_EVENTS.ConfigMigrated.serialize({ configId: CONFIG, packageVersion: 1 }).toBytes(),
  ConfigRetired: ENCLAVE_EVENTS.ConfigRetired.serialize({ configId: CONFIG }).toBytes(),
  RegistrarCapCreated: ENCLAVE_EVENTS.RegistrarCapCreated.serialize({
    configId: CONFIG,
    registrarId: REGISTRAR,
  }).toBytes(),
  RegistrarCapRevoked: ENCLAVE_EVENTS.RegistrarCapRevoked.serialize({
    configId: CONFIG,
    registrarId: REGISTRAR,
  }).toBytes(),
  EnclaveRegistered: EnclaveRegistered.serialize({
    ...registered,
    registeredAtMs: 1744683923696n,
    registeredBy: CAP,
  }).toBytes(),
  EnclaveDestroyed: EnclaveDestroyed.serialize(registered).toBytes(),
};

const hex = (bytes: Uint8Array) => `x"${Buffer.from(bytes).toString('hex')}"`;

/** Asserts in Move that the last event of this name has these bytes, except for an enclave's id. */
function assertEmitted(name: string): string {
  const bytes = EMITTED[name as keyof typeof EMITTED];
  const isOfEnclave = /^Enclave(Registered|Destroyed)$/.test(name);
  return `
    let events = event::events_by_type<enclave::${name}<LAYOUT>>();
    assert_eq!(events.length(), ${name === 'PcrsUpdated' ? 2 : 1});
    let mut expected = ${isOfEnclave ? 'bcs::to_bytes(&enclave_id)' : 'vector[]'};
    ${hex(isOfEnclave ? bytes.subarray(32) : bytes)}.do_ref!(|byte| expected.push_back(*byte));
    assert_eq!(bcs::to_bytes(&events[events.length() - 1]), expected);`;
}

test('objects and events have these bytes in the Move VM', async () => {
  const run = await testPackage('enclave', chooseFramework(process.env), {
    extra: {
      ...withoutOwnTests('enclave'),
      'tests/layout.move': `#[test_only]
module enclave::layout;
use enclave::clock_tests;
use enclave::enclave;
use enclave::source;
use std::bcs;
use std::unit_test::assert_eq;
use sui::event;
use sui::test_utils;
public struct LAYOUT has drop {}
#[test]
fun as_written_here() {
    let clock = clock_tests::at(1);
    let source = source::some(
        b"${source.url}".to_string(), ${hex(Buffer.from(source.commit, 'hex'))}, b"${source.folder}".to_string(),
        b"${source.frameworkVersion}".to_string(), ${hex(Buffer.from(source.measurementsSha256, 'hex'))},
    );
    let mut ctx = tx_context::new_from_hint(@0xA, ${TRANSACTION}, 0, 0, 0);
    let cap = enclave::new_cap(test_utils::create_one_time_witness<LAYOUT>(), &mut ctx);
    let mut config = cap.new_open_config_for_testing(&mut ctx);
    let (pcr0, pcr1, pcr2) = (*config.pcr0(), *config.pcr1(), *config.pcr2());
    config.begin_overlap(&cap, pcr0, pcr1, pcr2, option::none(), 4, &clock);
    config.end_overlap(&cap);
    config.begin_overlap(&cap, pcr0, pcr1, pcr2, source, 5, &clock);
    config.update_name(&cap, b"testing".to_string());
    config.update_max_key_age(&cap, option::some(86400000));
    let registrar = config.new_registrar_cap(&cap, &mut ctx);
    let enclave = config.new_enclave_attested_at_for_testing(&cap, ${hex(KEY)}, 1744683923696);
    config.retire(&cap);
    config.set_package_version_for_testing(0);
    config.migrate(&cap);
    assert_eq!(bcs::to_bytes(&config), ${hex(config)});
    assert_eq!(bcs::to_bytes(&registrar), ${hex(registrar)});
    let mut expected = bcs::to_bytes(&object::id(&enclave));
    ${hex(enclave.subarray(32))}.do_ref!(|byte| expected.push_back(*byte));
    assert_eq!(bcs::to_bytes(&enclave), expected);
    let enclave_id = object::id(&enclave);
    enclave.destroy_old_enclave(&config, &clock);
    clock.destroy_for_testing();
    registrar.destroy_registrar_cap(&mut config);
    ${Object.keys(ENCLAVE_EVENTS).map(assertEmitted).join('')}
    config.destroy_config_for_testing();
    cap.destroy_cap_for_testing();
}
`,
    },
  });
  expect(run.output).toContain('[ PASS    ] enclave::layout::as_written_here');
});

test('src/library/sui/README.md states the number of stored bytes', async () => {
  const readme = readFileSync(new URL('../../src/library/sui/README.md', import.meta.url), 'utf8');
  const readStoredBytes = (call: string) => {
    const isRow = (line: string) => line.startsWith(`| \`${call}\``) && /bytes \|$/.test(line);
    const row = readme.split('\n').find(isRow) ?? '';
    return Number(row.split('|').at(-2)?.replace(/\D/g, ''));
  };
  const builds = await Promise.all(
    ['enclave', 'weather'].map((name) => buildPackage(name, chooseFramework({}))),
  );
  const bytes = builds
    .flatMap(({ modules }) => modules)
    .map((module) => Buffer.from(module, 'base64').length);
  expect(readStoredBytes('publish')).toBe(bytes.reduce((sum, length) => sum + length, 0));
  // The example has no registrar, no maximum key age, no source and no overlap. An overlap has
  // three registers, each with its length, and a time.
  const overlap = 3 * 49 + 8;
  const sourceBytes = SourceContent.serialize(source).toBytes().length;
  expect(readStoredBytes('create_enclave_config')).toBe(config.length - 32 - 8 - overlap - sourceBytes);
  expect(readStoredBytes('source::some')).toBe(sourceBytes);
  expect(readStoredBytes('begin_overlap')).toBe(overlap);
  // A mark is a dynamic field: its id, the name of 32 bytes, and an enum.
  expect(readStoredBytes('register_enclave')).toBe(enclave.length + 65);
  expect(readStoredBytes('new_registrar_cap')).toBe(registrar.length + 32);
});

/** Returns a client whose node has one object. */
function createClient(struct: string, objectId: string, content: Uint8Array): ClientWithCoreApi {
  const type = `${PACKAGE}::enclave::${struct}<${APPLICATION}>`;
  const getObjects = async () => ({ objects: [{ objectId, type, content }] });
  return { core: { getObjects } } as unknown as ClientWithCoreApi;
}

test('objects are read from these bytes', async () => {
  const contract = { enclavePackage: PACKAGE, application: APPLICATION };
  const pcr = '01'.repeat(48);
  expect(await readConfig(createClient('EnclaveConfig', CONFIG, config), CONFIG)).toEqual({
    ...contract,
    id: CONFIG,
    name: 'testing',
    image: { pcr0: pcr, pcr1: pcr, pcr2: pcr },
    source,
    capabilityId: CAP,
    configVersion: 2n,
    overlap: { image, untilMs: 5n },
    maxKeyAgeMs: 86_400_000n,
    registrars: [REGISTRAR],
    isRetired: true,
    packageVersion: 1n,
    isOpen: true,
  });
  expect(await readEnclave(createClient('Enclave', ENCLAVE, enclave), ENCLAVE)).toEqual({
    ...contract,
    id: ENCLAVE,
    publicKey: KEY,
    configId: CONFIG,
    configVersion: 2n,
    registeredAtMs: 1744683923696n,
  });
  expect(await readRegistrar(createClient('RegistrarCap', REGISTRAR, registrar), REGISTRAR)).toEqual({
    ...contract,
    id: REGISTRAR,
    configId: CONFIG,
  });
});

test('src/library/sui defines every event that the contracts emit', () => {
  const sources = ['enclave/sources/enclave', 'enclave/sources/once', 'weather/sources/weather'].map((path) =>
    readFileSync(new URL(`../../move/${path}.move`, import.meta.url), 'utf8'),
  );
  const emitted = sources.flatMap((source) =>
    [...source.matchAll(/event::emit\((\w+)/g)].map(([, name]) => name),
  );
  expect([...new Set(emitted)].sort()).toEqual(Object.keys(ENCLAVE_EVENTS).sort());
});

test.each([
  ['config', config.length],
  ['enclave', enclave.length],
])('the %s with one byte more or less is refused', async (name, length) => {
  const content = name === 'config' ? config : enclave;
  for (const changed of [content.subarray(0, length - 1), Buffer.concat([content, Buffer.of(0)])]) {
    const reading =
      name === 'config'
        ? readConfig(createClient('EnclaveConfig', CONFIG, changed), CONFIG)
        : readEnclave(createClient('Enclave', ENCLAVE, changed), ENCLAVE);
    await expect(reading).rejects.toMatchObject({ code: 'SUI_NODE_ANSWER' });
  }
});
