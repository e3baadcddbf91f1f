/**
 * Boots out/test-salt.eif: the salt service in an enclave. Its identity provider is a fake behind the parent.
 */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { CLIENT_ID, GOOGLE, Issuer, OTHER_SEED, SEED } from '../../../src/apps/salt/test/support.ts';
import { certificatesFromPem, parsePcrs } from '../../../src/library/attestation/index.ts';
import { sealSecrets } from '../../../src/library/sealing/secrets.ts';
import { getSalt } from '../../../src/library/zklogin/index.ts';
import { forwardTls } from '../../../src/testing/tls.ts';
import { newProvisioner, readState } from '../../src/server/provisioner.ts';
import { endpointTls, PROVISIONER_KEY } from './applications.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { bootWithNsm, Machine, printBoot } from './machine.ts';

const EIF = 'out/test-salt.eif';
const PCRS = 'out/test-salt.pcrs';
const KEYS_PORT = 8101;
const LOG_PORT = 7778;
const vectors = JSON.parse(readFileSync('test/vectors/salt.json', 'utf8')) as {
  derivations: { seed: string; issuer: string; clientId: string; subject: string; salt: string }[];
};
const vector = vectors.derivations.find(
  ({ seed, issuer, clientId }) => seed === SEED && issuer === GOOGLE && clientId === CLIENT_ID,
);

let machine: Machine;
let google: string | undefined;
let gateway: Gateway;

beforeAll(() =>
  bootWithNsm(async () => {
    machine = new Machine(inject('vsockHost'), { recorded: true });
    machine.listen(KEYS_PORT, (socket) => forwardTls(socket, google as string, endpointTls()));
    machine.listen(LOG_PORT, (socket) => socket.on('end', () => socket.end()).resume());
    await machine.start(inject('emulator'), EIF);
    printBoot(EIF, machine, await machine.waitForAnswer());
    gateway = await startGateway(machine);
  }),
);
afterAll(async () => {
  gateway?.close();
  await machine.stop();
});

/**
 * Runs `sui-enclave provision` as the provisioner in the image's app.yaml. @returns its exit code and JSON
 */
async function provision(seed: string, pcrs = PCRS): Promise<[number, Record<string, unknown>]> {
  const [secrets, root] = [join(machine.dir, 'secrets.json'), join(machine.dir, 'root.pem')];
  writeFileSync(secrets, JSON.stringify({ SALT_SEED: seed }), { mode: 0o600 });
  writeFileSync(root, gateway.rootPem);
  const files = ['--pcrs', pcrs, '--secrets', secrets, '--key', PROVISIONER_KEY, '--root', root];
  const command = ['src/cli/provision/provision.ts', gateway.url, ...files, '--json'];
  const { code, stdout } = await promisify(execFile)(process.execPath, command).then(
    (done) => ({ code: 0, ...done }),
    (failed: { code: number; stdout: string }) => failed,
  );
  return [code, JSON.parse(stdout)];
}

/** Creates a set of secrets that is valid except for its signer. */
async function sealByStranger(seed: string): Promise<string> {
  const { sealingKey, state } = await readState({ get: (path) => fetch(gateway.url + path) });
  const provisioner = newProvisioner();
  return (await sealSecrets({ SALT_SEED: seed }, sealingKey, state, { provisioner })).json;
}

/** Requests a salt as a wallet does that trusts the registers of this image. */
async function getSaltSealed(token: string): Promise<string> {
  const policy = { images: [parsePcrs(readFileSync(PCRS, 'utf8'))] };
  const roots = certificatesFromPem(gateway.rootPem);
  return await getSalt(gateway.url, token, { policy, roots, timeoutMs: 60_000 });
}

describe('the salt service in an enclave', () => {
  test('has the boot system of the production image, and registers of its own', () => {
    const [testImage, production] = [PCRS, 'out/nitro.pcrs'].map((path) =>
      parsePcrs(readFileSync(path, 'utf8')),
    );
    expect(testImage?.pcr1).toBe(production?.pcr1);
    expect(testImage?.pcr2).not.toBe(production?.pcr2);
  });

  test('waits for the seed that its settings name, sealed by its provisioner, and accepts no other', async () => {
    expect((await machine.request('/readyz')).json()).toMatchObject({ missing: ['SALT_SEED'] });
    expect((await machine.request('/get_salt', { token: 'x' })).status).toBe(503);
    expect(await machine.handOver(JSON.stringify({ SALT_SEED: OTHER_SEED }))).toBe('refused');
    expect(await machine.handOver(await sealByStranger(SEED))).toBe('refused');
    const [exit, report] = await provision(OTHER_SEED);
    expect([exit, report]).toMatchObject([1, { code: 'SECRETS_REFUSED' }]);
    expect(report['error']).toMatch(
      /version 1 of SALT_SEED has the fingerprint [0-9a-f]{32}, not the one in SALT_SEED_FINGERPRINTS/,
    );
    expect((await machine.request('/readyz')).json()).toMatchObject({ missing: ['SALT_SEED'] });
  });

  test('gets its seed through the parent, whose record contains it in no encoding', async () => {
    expect(await provision(SEED, 'out/nitro.pcrs')).toMatchObject([3, { code: 'POLICY_PCRS' }]);
    expect(await provision(SEED)).toEqual([0, { status: 'provisioned', names: ['SALT_SEED'] }]);
    expect((await machine.request('/readyz')).status).toBe(200);
    const traffic = machine.traffic();
    expect([SEED, Buffer.from(SEED, 'hex')].filter(traffic.saw)).toEqual([]);
    // The record is complete: it contains the other seed, which was handed over without encryption.
    expect(traffic.saw(OTHER_SEED)).toBe(true);
    expect(machine.console()).not.toContain(SEED);
  });

  test('returns the salt of the vectors to a user, after it has read the keys of the issuer through vsock', async () => {
    const issuer = await Issuer.start();
    google = issuer.origin;
    const token = await issuer.token({ sub: vector?.subject });
    const secrets = [...token.split('.').slice(1), vector?.salt as string];
    expect(await getSaltSealed(token)).toBe(vector?.salt);
    expect(issuer.asked).toBe(1);
    expect(secrets.filter(machine.traffic().saw)).toEqual([]);

    const answer = await machine.request('/get_salt', { token });
    expect(answer.json()).toEqual({ salt: vector?.salt });
    const refusedAnswer = await machine.request('/get_salt', { token: await issuer.token({ aud: 'other' }) });
    expect(refusedAnswer.json()).toMatchObject({ code: 'SALT_CLIENT_NOT_ALLOWED' });
    // The record is complete: it contains these unsealed requests.
    const traffic = machine.traffic();
    expect(secrets.filter(traffic.saw)).toEqual(secrets);
    for (const port of [3000, 7777, KEYS_PORT, LOG_PORT]) expect(traffic.ports).toContain(port);
    expect(traffic.saw(SEED)).toBe(false);
    expect(machine.console()).not.toContain(token);
  });

  test('detects every change that the parent makes to a sealed request or answer, and a replayed answer', async () => {
    const outcomes: unknown[] = [];
    let earlierAnswer: Buffer | undefined;
    const flip = (index: number) => (body: Buffer) => {
      const changed = Buffer.from(body);
      changed[index % body.length] = (changed[index % body.length] as number) ^ 1;
      return changed;
    };
    const changes: [string, (body: Buffer) => Buffer][] = [
      ...[0, 40, 70, 300].map(flip).map((change) => ['request', change] as [string, typeof change]),
      ['request', (body) => body.subarray(0, -1)],
      ...[0, 1, 40, 60].map(flip).map((change) => ['answer', change] as [string, typeof change]),
      ['answer', (body) => body.subarray(0, -1)],
      ['answer', () => earlierAnswer as Buffer],
    ];
    for (const [changedDirection, change] of changes) {
      gateway.alter = (path, direction, body) => {
        if (path !== '/sealed') return body;
        if (direction !== changedDirection) return body;
        if (direction === 'answer') earlierAnswer ??= body;
        return change(body);
      };
      outcomes.push(await getSaltSealed('a.b.c').catch(({ code }) => code));
    }
    expect(outcomes).toEqual([
      ...Array(5).fill('CLIENT_UNAUTHENTICATED'),
      ...Array(6).fill('CLIENT_SEALED_ANSWER'),
    ]);
  });
});
