/** out/test-salt.eif: the salt service in an enclave. Its identity provider is a stand-in behind the parent. */
import { createPrivateKey, createPublicKey, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { certificatesFromPem, parsePcrs } from '../../../src/attestation/index.ts';
import { type ProvisionerKey, sealSecrets } from '../../../src/sealing/secrets.ts';
import { getSalt } from '../../../src/zklogin/index.ts';
import { CLIENT_ID, GOOGLE, Issuer, OTHER_SEED, SEED } from '../../src/apps/salt/support.ts';
import { newProvisioner, stateOf } from '../../src/provisioner.ts';
import { endpointTls, PROVISIONER_KEY } from './applications.ts';
import { type Gateway, startGateway } from './gateway.ts';
import { bootWithNsm, Machine, printBoot } from './machine.ts';
import { forwardTls } from './tls.ts';

const EIF = 'out/test-salt.eif';
const KEYS_PORT = 8101;
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
    await machine.start(inject('emulator'), EIF);
    printBoot(EIF, machine, await machine.answering());
    gateway = await startGateway(machine);
  }),
);
afterAll(async () => {
  gateway?.close();
  await machine.stop();
});

/** By default, by the one whom the image's app.yaml names. */
async function sealSeed(seed: string, provisioner: ProvisionerKey = keyOfFile(PROVISIONER_KEY)) {
  const { sealingKey, state } = await stateOf({ get: (path) => fetch(gateway.url + path) });
  return await sealSecrets({ SALT_SEED: seed }, sealingKey, state, { provisioner });
}

function keyOfFile(path: string): ProvisionerKey {
  const privateKey = createPrivateKey(readFileSync(path));
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  const publicKey = new Uint8Array(Buffer.from(x as string, 'base64url'));
  return { publicKey, sign: (message) => sign(null, message, privateKey) };
}

async function post(path: string, body: string): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return await fetch(gateway.url + path, { method: 'POST', headers, body });
}

/** As a wallet asks, which trusts the registers of this image. */
async function getSaltSealed(token: string): Promise<string> {
  const policy = { images: [parsePcrs(readFileSync('out/test-salt.pcrs', 'utf8'))] };
  const roots = certificatesFromPem(gateway.rootPem);
  return await getSalt(gateway.url, token, { policy, roots, timeoutMs: 60_000 });
}

describe('the salt service in an enclave', () => {
  test('has the boot system of the production image, and registers of its own', () => {
    const [own, production] = ['out/test-salt.pcrs', 'out/nitro.pcrs'].map((path) =>
      parsePcrs(readFileSync(path, 'utf8')),
    );
    expect(own?.pcr1).toBe(production?.pcr1);
    expect(own?.pcr2).not.toBe(production?.pcr2);
  });

  test('waits for the seed that its settings name, sealed by its provisioner, and accepts no other', async () => {
    expect((await machine.request('/readyz')).json()).toMatchObject({ missing: ['SALT_SEED'] });
    expect((await machine.request('/get_salt', { token: 'x' })).status).toBe(503);
    expect(await machine.handOver(JSON.stringify({ SALT_SEED: OTHER_SEED }))).toBe('refused');
    const ofStranger = await sealSeed(SEED, newProvisioner());
    expect(await machine.handOver(ofStranger.json)).toBe('refused');
    const refusal = await post('/secrets', ofStranger.json);
    expect([refusal.status, await refusal.json()]).toMatchObject([403, { code: 'SECRETS_PROVISIONER' }]);
    expect(await machine.handOver((await sealSeed(OTHER_SEED)).json)).toBe('refused');
    expect((await machine.request('/readyz')).json()).toMatchObject({
      missing: ['SALT_SEED'],
      refused: expect.stringMatching(/^version 1 of SALT_SEED has the fingerprint [0-9a-f]{32}, not that of/),
    });
  });

  test('gets its seed through the parent, whose record has no form of it', async () => {
    const sealed = await sealSeed(SEED);
    const answer = await post('/secrets', sealed.json);
    const { status, body } = await sealed.openAnswer(new Uint8Array(await answer.arrayBuffer()));
    expect([status, sealed.isReceipt(body)]).toEqual([200, true]);
    expect((await machine.request('/readyz')).status).toBe(200);
    const traffic = machine.traffic();
    expect([SEED, Buffer.from(SEED, 'hex')].filter(traffic.saw)).toEqual([]);
    // The one that was handed over in clear: the record is of everything.
    expect(traffic.saw(OTHER_SEED)).toBe(true);
    expect(machine.console()).not.toContain(SEED);
  });

  test('gives a user the salt of the vectors, after it has read the keys of the issuer through vsock', async () => {
    const issuer = await Issuer.start();
    google = issuer.origin;
    const token = await issuer.token({ sub: vector?.subject });
    const secrets = [...token.split('.').slice(1), vector?.salt as string];
    expect(await getSaltSealed(token)).toBe(vector?.salt);
    expect(issuer.asked).toBe(1);
    expect(secrets.filter(machine.traffic().saw)).toEqual([]);

    const answer = await machine.request('/get_salt', { token });
    expect(answer.json()).toEqual({ salt: vector?.salt });
    const other = await machine.request('/get_salt', { token: await issuer.token({ aud: 'other' }) });
    expect(other.json()).toMatchObject({ code: 'SALT_CLIENT_NOT_ALLOWED' });
    // The same in clear.
    const traffic = machine.traffic();
    expect(secrets.filter(traffic.saw)).toEqual(secrets);
    for (const port of [3000, 7777, KEYS_PORT]) expect(traffic.ports).toContain(port);
    expect(traffic.saw(SEED)).toBe(false);
    expect(machine.console()).not.toContain(token);
  });

  test('lets the parent change nothing of a sealed request or its answer, nor use an earlier answer', async () => {
    const outcomes: unknown[] = [];
    let earlier: Buffer | undefined;
    const flip = (at: number) => (body: Buffer) => {
      const changed = Buffer.from(body);
      changed[at % body.length] = (changed[at % body.length] as number) ^ 1;
      return changed;
    };
    const changes: [string, (body: Buffer) => Buffer][] = [
      ...[0, 40, 70, 300].map(flip).map((change) => ['request', change] as [string, typeof change]),
      ['request', (body) => body.subarray(0, -1)],
      ...[0, 1, 40, 60].map(flip).map((change) => ['answer', change] as [string, typeof change]),
      ['answer', (body) => body.subarray(0, -1)],
      ['answer', () => earlier as Buffer],
    ];
    for (const [where, change] of changes) {
      gateway.alter = (path, what, body) => {
        if (path !== '/sealed') return body;
        if (what !== where) return body;
        if (what === 'answer') earlier ??= body;
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
