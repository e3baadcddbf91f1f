/** Tests registrations that are refused before any gas is spent. */

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decode, encode } from 'cborg';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../../../scripts/check/bench/ports.ts';
import type { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { FIXTURE_APPS, startServer } from '../../server/support.ts';
import { ChainFixture, ofApplication, PACKAGE } from './chain_fixture.ts';

let fixture: ChainFixture;
let capId: string;
let configId: string;
beforeEach(async () => {
  fixture = await ChainFixture.start();
  capId = fixture.publish();
  configId = await fixture.config(capId);
});
afterEach(() => fixture.close());

const STRANGER = `0x${'d'.repeat(64)}`;

function register(
  url: string,
  { config = configId, app = PACKAGE, enclave = PACKAGE, root = 'root.pem' } = {},
) {
  const args = [enclave, app, config, url, 'weather', 'WEATHER'];
  return fixture.run('register_enclave', ...args, ...(root === '' ? [] : ['--root', fixture.file(root)]));
}

/** Serves the attestation documents that `document` returns for the requested nonces. @returns the URL */
async function serveDocuments(
  document: (nonce: Uint8Array) => Promise<Uint8Array> | Uint8Array,
): Promise<string> {
  const server = createServer(async (request, response) => {
    const nonce = new URL(request.url ?? '', 'http://enclave').searchParams.get('nonce') ?? '';
    const attestation = Buffer.from(await document(Buffer.from(nonce, 'hex'))).toString('hex');
    response.end(JSON.stringify({ attestation }));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function attest(nsm: EmulatedNsm, nonce: Uint8Array, publicKey: Uint8Array): Promise<Uint8Array> {
  const request = { Attestation: { nonce, public_key: publicKey, user_data: null } };
  return decode(await nsm.transact(encode(request))).Attestation.document;
}

async function expectRefused(
  registration: ReturnType<typeof register>,
  code: string,
  message: string,
  exit = 1,
) {
  const sent = fixture.node.ledger.executed.length;
  const { exit: exitCode, json } = await registration;
  expect(json()).toMatchObject({ status: 'failed', code, error: expect.stringContaining(message) });
  expect(exitCode).toBe(exit);
  expect(fixture.node.ledger.executed).toHaveLength(sent);
}

describe('register_enclave refuses a document that the chain would not verify:', () => {
  test('under a root that the chain does not pin', async () => {
    const { url } = await startServer({ nsm: fixture.nsm });
    await expectRefused(
      register(url, { root: '' }),
      'WOULD_ABORT',
      'An emulated enclave can be registered only on the chain of sui-enclave dev-sui, with --root out/dev-root.pem',
    );
  });

  test('that has expired: a real document of 2025', async () => {
    const hex = readFileSync(new URL('../../../vectors/nautilus-weather.hex', import.meta.url), 'utf8');
    const url = await serveDocuments(() => Buffer.from(hex.trim(), 'hex'));
    await expectRefused(register(url, { root: '' }), 'WOULD_ABORT', 'Nothing was sent');
  });

  test('that is malformed', async () => {
    const url = await serveDocuments(() => Buffer.from('no document'));
    await expectRefused(register(url), 'WOULD_ABORT', 'would abort with 1');
  });
});

describe('register_enclave refuses a document that the contract, or the admin, would not accept:', () => {
  test('of an image that the config does not allow', async () => {
    await fixture.rotate(configId, capId);
    const { url } = await startServer({ nsm: fixture.nsm });
    await expectRefused(register(url), 'POLICY_PCRS', 'PCR0 differs');
  });

  test("of another application's emulated enclave: refused by the command, and by the chain itself", async () => {
    const apps = FIXTURE_APPS;
    const { url } = await startServer({ nsm: fixture.createNsm('dice'), apps, env: { APP: 'dice' } });
    await expectRefused(register(url), 'POLICY_PCRS', 'PCR2 differs');
    await expectRefused(register(url), 'POLICY_PCRS', 'The enclave reports that it runs dice');
    await expect(fixture.register(configId, capId, url)).rejects.toMatchObject({
      code: 'SUI_MOVE_ABORT',
      abort: 'enclave::EInvalidPCRs',
    });
  });

  test('that answers another nonce: an old document, whose enclave may no longer run', async () => {
    const url = await serveDocuments(() => attest(fixture.nsm, new Uint8Array(32), new Uint8Array(32)));
    await expectRefused(register(url), 'POLICY_NONCE', 'nonce');
  });

  test('with a key that is not of ed25519', async () => {
    const url = await serveDocuments((nonce) => attest(fixture.nsm, nonce, new Uint8Array(33)));
    await expectRefused(register(url), 'CLIENT_ATTESTED_KEY', '32 bytes');
    const { exit, json } = await fixture.run(
      'status',
      '--config',
      configId,
      url,
      '--root',
      fixture.file('root.pem'),
    );
    expect(exit).toBe(1);
    expect(json()).toMatchObject({ answering: [{ trusted: false, code: 'CLIENT_ATTESTED_KEY' }] });
  });

  test('with a key that was registered at this version and destroyed', async () => {
    const { url } = await startServer({ nsm: fixture.nsm });
    const enclaveId = await fixture.register(configId, capId, url);
    await fixture.destroy(enclaveId, configId, capId);
    await expectRefused(register(url), 'WOULD_ABORT', 'Restart the enclave for a new key');
  });
});

test.each(['options', 'arguments in their former order'])('a registration succeeds by %s', async (form) => {
  const { url } = await startServer({ nsm: fixture.nsm });
  const optionArguments = [
    ...ofApplication(PACKAGE, PACKAGE, 'weather', 'WEATHER'),
    '--config',
    configId,
    url,
    '--root',
    fixture.file('root.pem'),
  ];
  const { exit, json } =
    form === 'options' ? await fixture.run('register_enclave', ...optionArguments) : await register(url);
  expect([exit, json()]).toMatchObject([0, { status: 'done', config: configId, configVersion: '0' }]);
});

describe('register_enclave', () => {
  test('refuses the id of another object, or of no object, in place of a config', async () => {
    const { url } = await startServer({ nsm: fixture.nsm });
    await expectRefused(
      register(url, { config: capId }),
      'SUI_OBJECT_TYPE',
      'must be an enclave::EnclaveConfig',
    );
    await expectRefused(register(url, { config: STRANGER }), 'SUI_OBJECT_NOT_FOUND', STRANGER);
  });

  test('refuses a config of another application or package', async () => {
    fixture.node.ledger.packages.set(STRANGER, { ...fixture.weather, original: STRANGER });
    const { url } = await startServer({ nsm: fixture.nsm });
    await expectRefused(
      register(url, { app: STRANGER }),
      'SUI_OBJECT_TYPE',
      `for ${STRANGER}::weather::WEATHER`,
    );
    await expectRefused(
      register(url, { enclave: STRANGER }),
      'SUI_OBJECT_TYPE',
      `of the package ${STRANGER}`,
    );
  });

  test('refuses a config of another module of the same package', async () => {
    const { url } = await startServer({ nsm: fixture.nsm });
    const args = [PACKAGE, PACKAGE, configId, url, 'dice', 'DICE', '--root', fixture.file('root.pem')];
    const message = `for ${PACKAGE}::dice::DICE`;
    await expectRefused(fixture.run('register_enclave', ...args), 'SUI_OBJECT_TYPE', message);
  });

  test('accepts the latest version of an upgraded package, and calls it', async () => {
    fixture.node.ledger.packages.set(STRANGER, fixture.weather);
    const { url } = await startServer({ nsm: fixture.nsm });
    const execution = await register(url, { app: STRANGER, enclave: STRANGER });
    expect(execution.json()).toMatchObject({ status: 'done' });
    const enclave = fixture.node.ledger.objects.get(execution.json()['enclave'] as string);
    expect(enclave?.type).toBe(`${PACKAGE}::enclave::Enclave<${PACKAGE}::weather::WEATHER>`);
  });

  test('refuses the URL of an enclave that does not exist', async () => {
    const url = `http://127.0.0.1:${await findFreePort()}`;
    const cause = `at ${url}/get_attestation did not answer: the connection failed (ECONNREFUSED)`;
    await expectRefused(register(url), 'CLIENT_UNREACHABLE', cause, 2);
  });
});
