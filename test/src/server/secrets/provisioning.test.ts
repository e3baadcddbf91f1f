/** Sealed secrets at `POST /secrets` and in the hand-off: who may send them, and for which enclave. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SEALED_TYPE } from '../../../../src/library/sealing/request.ts';
import {
  decodeSealedSecrets,
  encodeSealedSecrets,
  type ProvisionerKey,
  provisionedBytes,
  type SealedMessage,
  sealSecrets,
} from '../../../../src/library/sealing/secrets.ts';
import { BUILT_ADDON } from '../../../../src/server/built_addon.ts';
import { NsmDevice } from '../../../../src/server/nsm/device.ts';
import { SealingKey } from '../../../../src/server/sealing/sealing_key.ts';
import { makePipe, newProvisioner, REFUSED, readState, startVault, VALUES } from '../provisioner.ts';
import { startServer, type TestServer } from '../support.ts';

const me = newProvisioner();
const colleague = newProvisioner();
const stranger = newProvisioner();
const provisioners = [me.hex, colleague.hex];
const noNsm = () => new NsmDevice({ path: '/nonexistent/nsm', addonPath: BUILT_ADDON });

async function seal(
  server: TestServer,
  values: Record<string, string> = VALUES,
  provisioner: ProvisionerKey | undefined = me,
): Promise<SealedMessage> {
  const { sealingKey, state } = await readState(server);
  return await sealSecrets(values, sealingKey, state, { provisioner });
}

const sealUnsigned = async (server: TestServer, values: Record<string, string> = VALUES) => {
  const { sealingKey, state } = await readState(server);
  return await sealSecrets(values, sealingKey, state);
};

/** Reads an answer in the clear, which the host can read and change. */
async function readPlainAnswer(response: Response): Promise<[number, string]> {
  expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  return [response.status, ((await response.json()) as { code: string }).code];
}

async function openSealedAnswer(response: Response, { openAnswer }: SealedMessage) {
  expect([response.status, response.headers.get('content-type')]).toEqual([200, SEALED_TYPE]);
  return await openAnswer(new Uint8Array(await response.arrayBuffer()));
}

const isReady = async (server: TestServer) => (await server.get('/readyz')).status === 200;

describe('POST /secrets', () => {
  test.each([
    ['a provisioner', me],
    ['another provisioner', colleague],
  ])('accepts the set of %s, with a receipt', async (_name, provisioner) => {
    const server = await startVault({ provisioners });
    expect((await server.get('/length')).status).toBe(503);
    const message = await seal(server, VALUES, provisioner);
    const { status, body } = await openSealedAnswer(await server.post('/secrets', message.json), message);
    expect(status).toBe(200);
    expect(message.isReceipt(body)).toBe(true);
    expect(await (await server.get('/length')).json()).toEqual({ length: VALUES.VAULT_KEY.length });
    expect(server.printed()).toMatch(/the secrets have arrived, from a provisioner/);
    expect(server.printed()).not.toMatch(/hunter2/);
  });

  test("refuses a stranger's otherwise valid set, and still accepts a provisioner's", async () => {
    const server = await startVault({ provisioners });
    const refusals = [
      [await seal(server, VALUES, stranger), 'SECRETS_PROVISIONER'],
      [await sealUnsigned(server), 'SECRETS_PROVISIONER'],
      // This message claims to be from a provisioner.
      [await seal(server, VALUES, { publicKey: me.publicKey, sign: stranger.sign }), 'SECRETS_SIGNATURE'],
    ] as const;
    for (const [{ json }, code] of refusals) {
      expect(await readPlainAnswer(await server.post('/secrets', json))).toEqual([403, code]);
      expect(await isReady(server)).toBe(false);
    }
    const message = await seal(server);
    expect((await openSealedAnswer(await server.post('/secrets', message.json), message)).status).toBe(200);
    expect(await isReady(server)).toBe(true);
    expect(server.printed()).not.toMatch(/hunter2/);
  });

  test("seals the application's refusal, and accepts a later set", async () => {
    const server = await startVault({ provisioners });
    const refusedMessage = await seal(server, REFUSED);
    const response = await server.post('/secrets', refusedMessage.json);
    expect(await openSealedAnswer(response, refusedMessage)).toMatchObject({
      status: 422,
      body: { code: 'SECRETS_REFUSED', error: 'VAULT_KEY has another fingerprint' },
    });
    for (const values of [{ VAULT_KEY: 'x' }, { ...VALUES, MORE: 'x' }, { ...VALUES, OTHER: '' }, {}]) {
      const message = await seal(server, values as Record<string, string>);
      expect(await openSealedAnswer(await server.post('/secrets', message.json), message)).toMatchObject({
        status: 422,
        body: { code: 'SECRETS_REFUSED' },
      });
    }
    const odd = await seal(server, { ...VALUES, OTHER: 5 as never });
    expect(await openSealedAnswer(await server.post('/secrets', odd.json), odd)).toMatchObject({
      status: 400,
      body: { code: 'SEALED_CONTENT' },
    });
    expect(await isReady(server)).toBe(false);
    const validMessage = await seal(server);
    expect(
      (await openSealedAnswer(await server.post('/secrets', validMessage.json), validMessage)).status,
    ).toBe(200);
    expect(server.printed()).not.toMatch(/wrong-wrong/);
  });

  test('refuses a replayed message, in the same enclave and after the next start', async () => {
    const first = await startVault({ provisioners });
    const { json } = await seal(first);
    expect((await first.post('/secrets', json)).status).toBe(200);
    expect(await readPlainAnswer(await first.post('/secrets', json))).toEqual([409, 'SECRETS_FINAL']);
    const next = await startVault({ provisioners });
    expect(await readPlainAnswer(await next.post('/secrets', json))).toEqual([422, 'SEALED_KEY_UNKNOWN']);
    // The host writes the key of the next start into the message.
    const sealed = { ...decodeSealedSecrets(JSON.parse(json)), key: (await readState(next)).sealingKey };
    const forged = encodeSealedSecrets(sealed);
    expect(await readPlainAnswer(await next.post('/secrets', forged))).toEqual([403, 'SECRETS_SIGNATURE']);
    expect(await isReady(next)).toBe(false);
  });

  test('refuses a message that is sealed to its key for another state', async () => {
    const server = await startVault({ provisioners });
    const { sealingKey, state } = await readState(server);
    const [pcr0, pcr1] = state.registers;
    const otherStates = [
      { ...state, version: '0.9.9' },
      { ...state, signingKey: new Uint8Array(32) },
      { ...state, registers: [pcr0, pcr1, new Uint8Array(48)] as const },
    ];
    for (const otherState of otherStates) {
      const { json } = await sealSecrets(VALUES, sealingKey, otherState, { provisioner: me });
      expect(await readPlainAnswer(await server.post('/secrets', json))).toEqual([403, 'SECRETS_SIGNATURE']);
      // Even if a provisioner signs the right state for the message, HPKE refuses the message.
      const sealed = decodeSealedSecrets(JSON.parse(json));
      const signature = await me.sign(provisionedBytes(sealed, state));
      const signed = encodeSealedSecrets({ ...sealed, signed: { provisioner: me.publicKey, signature } });
      expect(await readPlainAnswer(await server.post('/secrets', signed))).toEqual([400, 'SEALED_ALTERED']);
    }
  });

  test('refuses a malformed, too long or plain message', async () => {
    const server = await startVault({ provisioners, env: { BODY_LIMIT_BYTES: '100000' } });
    const { json } = await seal(server);
    const { sealed } = JSON.parse(json);
    const outcome = async (body: unknown) => await readPlainAnswer(await server.post('/secrets', body));
    expect(await outcome(json.slice(0, -1))).toEqual([400, 'MALFORMED_JSON']);
    expect(await outcome(VALUES)).toEqual([400, 'SEALED_MALFORMED']);
    expect(await outcome({ sealed: { ...sealed, version: 2 } })).toEqual([400, 'SEALED_MALFORMED']);
    const ciphertext = 'A'.repeat(64_100);
    expect(await outcome({ sealed: { ...sealed, ciphertext } })).toEqual([413, 'SEALED_TOO_LARGE']);
    expect(await outcome({ sealed: { ...sealed, more: 'A'.repeat(100_000) } })).toEqual([
      413,
      'BODY_TOO_LARGE',
    ]);
    const type = await server.post('/secrets', json, { headers: { 'content-type': 'text/plain' } });
    expect(await readPlainAnswer(type)).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    expect(await isReady(server)).toBe(false);
    expect(server.printed()).not.toMatch(/hunter2/);
  });

  test('refuses a message with any byte changed, removed or added', async () => {
    const server = await startVault({ provisioners });
    const { json } = await seal(server);
    const bytes = Buffer.from(json);
    await fc.assert(
      fc.asyncProperty(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), async (at, mask) => {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] as number) ^ mask;
        const removed = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1)]);
        const added = Buffer.concat([
          bytes.subarray(0, at),
          Buffer.of(0x41 + (mask % 26)),
          bytes.subarray(at),
        ]);
        for (const variant of [changed, removed, added]) {
          const [status] = await readPlainAnswer(await server.post('/secrets', new Uint8Array(variant)));
          expect([400, 403, 422]).toContain(status);
        }
      }),
      { numRuns: 25 },
    );
    expect(await isReady(server)).toBe(false);
    expect((await server.post('/secrets', json)).headers.get('content-type')).toBe(SEALED_TYPE);
  });

  test('accepts one of two sets that arrive at the same time', async () => {
    const server = await startVault({ provisioners });
    const messages = await Promise.all([
      seal(server),
      seal(server, { ...VALUES, OTHER: 'second' }, colleague),
    ]);
    const answers = await Promise.all(
      messages.map(async (message) => {
        const response = await server.post('/secrets', message.json);
        if (response.headers.get('content-type') !== SEALED_TYPE) return await response.json();
        return (await openSealedAnswer(response, message)).body;
      }),
    );
    expect(answers.filter((body) => 'names' in (body as object))).toHaveLength(1);
    expect(answers.filter((body) => (body as { code?: string }).code === 'SECRETS_FINAL')).toHaveLength(1);
  });

  test('refuses secrets if app.yaml names no provisioners', async () => {
    const server = await startServer();
    expect(await readPlainAnswer(await server.post('/secrets', {}))).toEqual([
      403,
      'SECRETS_NO_PROVISIONERS',
    ]);
  });

  test('needs an NSM, whose registers the secrets are sealed for', async () => {
    const { fd } = makePipe();
    const env = { SECRETS: 'any', SECRETS_FD: String(fd), NSM_DEVICE: '/nonexistent' };
    const server = await startVault({ provisioners, nsm: noNsm(), env });
    const { json } = await sealSecrets(
      VALUES,
      SealingKey.create().publicKey,
      (await readState(await startVault({ provisioners }))).state,
      { provisioner: me },
    );
    expect(await readPlainAnswer(await server.post('/secrets', json))).toEqual([503, 'NSM_UNAVAILABLE']);
  });
});

describe('the hand-off', () => {
  async function start(declaredProvisioners: readonly string[] | undefined, mode = 'any') {
    const pipe = makePipe();
    const env = { SECRETS: mode, SECRETS_FD: String(pipe.fd) };
    const server = await startVault({
      ...(declaredProvisioners && { provisioners: declaredProvisioners }),
      env,
    });
    const refused = () =>
      expect.poll(async () => ((await (await server.get('/readyz')).json()) as { refused?: string }).refused);
    return { pipe, server, refused };
  }

  test('takes plain and sealed sets, signed or not, if app.yaml names no provisioners', async () => {
    for (const make of [() => ({ json: JSON.stringify(VALUES) }), sealUnsigned, seal]) {
      const { pipe, server } = await start(undefined);
      pipe.write((await make(server)).json);
      await expect.poll(() => isReady(server)).toBe(true);
      expect(pipe.isOpen()).toBe(false);
    }
  });

  test('refuses a plain set with SECRETS=sealed, and an altered set; a valid one may follow', async () => {
    const { pipe, server, refused } = await start(undefined, 'sealed');
    pipe.write(JSON.stringify(VALUES));
    await refused().toMatch(/^SECRETS=sealed is set: only sealed secrets are accepted/);
    const validMessage = await sealUnsigned(server);
    const sealed = decodeSealedSecrets(JSON.parse(validMessage.json));
    pipe.write(encodeSealedSecrets({ ...sealed, ciphertext: sealed.ciphertext.subarray(1) }));
    await refused().toMatch(/sealed in another way, or was changed/);
    pipe.write((await sealUnsigned(server, REFUSED)).json);
    await refused().toMatch(/another fingerprint/);
    // A wrong signature is refused even if none is required.
    pipe.write((await seal(server, VALUES, { publicKey: me.publicKey, sign: stranger.sign })).json);
    await refused().toMatch(/signature does not match/);
    expect(await isReady(server)).toBe(false);
    pipe.write(validMessage.json);
    await expect.poll(() => isReady(server)).toBe(true);
    expect(server.printed()).not.toMatch(/hunter2|wrong-wrong/);
  });

  test('takes only signed sets if app.yaml names provisioners', async () => {
    const { pipe, server, refused } = await start(provisioners);
    pipe.write(JSON.stringify(VALUES));
    await refused().toMatch(/^app.yaml names provisioners: only sealed secrets are accepted/);
    pipe.write((await sealUnsigned(server)).json);
    await refused().toMatch(/signed by one of the provisioners/);
    pipe.write((await seal(server)).json);
    await expect.poll(() => isReady(server)).toBe(true);
  });

  test('closes when a set has arrived at POST /secrets', async () => {
    const { pipe, server } = await start(provisioners);
    expect(pipe.isOpen()).toBe(true);
    const message = await seal(server);
    expect((await server.post('/secrets', message.json)).status).toBe(200);
    await expect.poll(() => pipe.isOpen()).toBe(false);
    expect(server.printed()).not.toMatch(/hand-off ended|hand-off broke/);
  });
});

describe('SECRETS=sealed stops the start', () => {
  test.each([
    ['without a source of secrets', {}, /needs a source of secrets/],
    ['with a secret in the environment', { VAULT_KEY: 'hunter2' }, /^VAULT_KEY must not be set/],
    ['with a secret in a file', { OTHER_FILE: '/hunter2' }, /^OTHER_FILE must not be set/],
  ])('%s', async (_name, env, message) => {
    const starting = startVault({ env: { ...env } });
    await expect(starting).rejects.toThrow(message);
    await expect(starting).rejects.not.toThrow(/hunter2/);
  });

  test('without an NSM', async () => {
    const env = { NSM_DEVICE: '/nonexistent' };
    await expect(startVault({ provisioners, nsm: noNsm(), env })).rejects.toThrow(/needs an NSM/);
  });

  test('if its value is neither any nor sealed', async () => {
    await expect(startVault({ provisioners, env: { SECRETS: 'plain' } })).rejects.toThrow(
      /^SECRETS must be any or sealed/,
    );
  });
});
