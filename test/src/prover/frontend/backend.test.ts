/**
 * Tests failures of backends and issuers. Each failure gives a typed error, the front end returns nothing
 * invalid, and the service recovers.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { readVerifyingKey } from '../../../../src/prover/verify.ts';
import { changeDeadline } from '../../server/support.ts';
import { FakeBackend, Issuer, OTHER_KEY, OUR_KEY, requestFor, startTestFrontend } from './support.ts';

const devnet = { network: 'devnet', verifyingKey: readVerifyingKey(OTHER_KEY.vkey) } as const;
const createProof = (input: Record<string, string>, key = OUR_KEY) =>
  key.prove(BigInt(input['all_inputs_hash'] ?? '')) as Record<string, string[]>;

describe('a backend that', () => {
  test.each<[string, (response: ServerResponse, input: Record<string, string>) => unknown, number, string]>([
    ['answers garbage', (response) => response.end('<html>'), 502, 'PROVER_BACKEND_ANSWER'],
    ['answers null', (response) => response.end('null'), 502, 'PROVER_BACKEND_ANSWER'],
    [
      'answers with JSON of another form',
      (response) => response.end('{"pi_a":1}'),
      502,
      'PROVER_BACKEND_ANSWER',
    ],
    [
      'answers with an incomplete proof',
      (response) => response.end('{"pi_a":["1"'),
      502,
      'PROVER_BACKEND_ANSWER',
    ],
    [
      'sends too long an answer',
      (response) => response.end(' '.repeat(100_000)),
      502,
      'PROVER_BACKEND_ANSWER',
    ],
    [
      'answers with points off the curve',
      (response, input) => response.end(JSON.stringify({ ...createProof(input), pi_a: ['1', '1', '1'] })),
      502,
      'PROVER_BACKEND_ANSWER',
    ],
    [
      'answers with an object as a coordinate',
      (response, input) =>
        response.end(JSON.stringify({ ...createProof(input), pi_c: [{ x: '1' }, '1', '1'] })),
      502,
      'PROVER_BACKEND_ANSWER',
    ],
    [
      'claims another protocol',
      (response, input) => response.end(JSON.stringify({ ...createProof(input), protocol: 'plonk' })),
      502,
      'PROVER_BACKEND_ANSWER',
    ],
    [
      'proves another public input',
      (response) => response.end(JSON.stringify(OUR_KEY.prove(7n))),
      502,
      'PROVER_BACKEND_ANSWER',
    ],
    [
      'has an unknown key',
      (response, input) => response.end(JSON.stringify(createProof(input, OTHER_KEY))),
      502,
      'PROVER_BACKEND_ANSWER',
    ],
    [
      'refuses the input',
      (response) => response.writeHead(400).end('bad input'),
      502,
      'PROVER_BACKEND_ANSWER',
    ],
    ['fails', (response) => response.writeHead(500).end('PROVER_ENGINE'), 502, 'PROVER_BACKEND_ANSWER'],
    [
      'redirects',
      (response) => response.writeHead(307, { location: '/x' }).end(),
      502,
      'PROVER_BACKEND_ANSWER',
    ],
    ['hangs up', (response) => response.destroy(), 502, 'PROVER_BACKEND_UNREACHABLE'],
    ['is at capacity', (response) => response.writeHead(503).end('Server at capacity'), 503, 'PROVER_BUSY'],
    [
      'has an engine that hangs twice',
      (response) => response.writeHead(500).end('BACKEND_ENGINE_HUNG: the engine …'),
      503,
      'PROVER_ENGINE_HUNG',
    ],
    [
      'is behind a gateway that gives up',
      (response) => response.writeHead(504).end(),
      504,
      'PROVER_BACKEND_TIMEOUT',
    ],
  ])('%s causes a typed error, and the next request succeeds', async (_, answer, status, code) => {
    const { ask, backend } = await startTestFrontend();
    const { prove } = backend;
    backend.prove = ({ input }, response) => answer(response, input);
    const refused = await ask();
    expect([refused.status, refused.body['code']]).toEqual([status, code]);
    expect(JSON.stringify(refused.body)).not.toContain('pi_a');
    backend.prove = prove;
    expect((await ask()).status).toBe(200);
  });

  test.each([500, 502, 418, 307])('answers with status %d, which only the log shows', async (status) => {
    const { ask, backend, printed } = await startTestFrontend();
    backend.prove = (_, response) => response.writeHead(status).end('hunter2');
    const { body } = await ask();
    expect(body).toEqual({
      error: 'the proving component failed: try again',
      code: 'PROVER_BACKEND_ANSWER',
    });
    expect(printed()).toContain(`the backend answered with status ${status}`);
    expect(printed()).not.toContain('hunter2');
  });

  test('reports that its engine hung is asked a second time', async () => {
    const { ask, backend } = await startTestFrontend();
    const { prove } = backend;
    backend.prove = (...proveArguments) => {
      if (backend.inputs.length > 1) return prove(...proveArguments);
      return proveArguments[1].writeHead(500).end('BACKEND_ENGINE_HUNG: the engine did not answer for 3 s');
    };
    expect((await ask()).status).toBe(200);
    expect(backend.inputs).toHaveLength(2);
  });

  test('reports that its engine hung is not asked again if no further proof fits into ANSWER_SECONDS', async () => {
    const { ask, backend } = await startTestFrontend({ ANSWER_SECONDS: '2', PROOF_SECONDS: '2' });
    backend.prove = (_, response) =>
      response.writeHead(500, { 'retry-after': '1' }).end('BACKEND_ENGINE_HUNG: …');
    const { status, body, headers } = await ask();
    expect([status, body['code'], headers.get('retry-after')]).toEqual([503, 'PROVER_ENGINE_HUNG', '1']);
    expect(backend.inputs).toHaveLength(1);
  });

  test('reports that its engine hung is not asked again if the proofs of other callers come first', async () => {
    const { ask, backend } = await startTestFrontend({ ANSWER_SECONDS: '3', PROOF_SECONDS: '1' });
    const waiting: (() => void)[] = [];
    const { prove } = backend;
    backend.prove = (...proveArguments) => {
      waiting.push(() => prove(...proveArguments));
    };
    const otherRequest = ask();
    await expect.poll(() => waiting.length).toBe(1);
    // One proof fits into the remaining 1.8 s, but the proof of the other caller comes first.
    backend.prove = async (_, response) => {
      await sleep(1200);
      response.writeHead(500).end('BACKEND_ENGINE_HUNG: …');
    };
    expect((await ask({ sub: 'another' })).body['code']).toBe('PROVER_ENGINE_HUNG');
    expect(backend.inputs).toHaveLength(2);
    waiting[0]?.();
    await otherRequest;
  });

  test('answers ten times immediately without a valid proof is not considered fast', async () => {
    const { ask, backend } = await startTestFrontend({
      PROVER_TIMEOUT: '2',
      // The call to the backend lasts until the test ends it, even on a busy machine.
      configure: (config) => ({ ...config, timeoutSeconds: 60 }),
      USER_REQUESTS_PER_MINUTE: '100',
    });
    backend.prove = ({ input }, response) =>
      response.end(JSON.stringify({ ...createProof(input), pi_a: ['1', '1', '1'] }));
    for (let time = 0; time < 10; time++) expect((await ask()).body['code']).toBe('PROVER_BACKEND_ANSWER');
    const { promise: heldResponse, resolve: hold } = Promise.withResolvers<ServerResponse>();
    backend.prove = (_, response) => hold(response);
    // There is one place, so one caller is refused immediately, while the backend does not answer the other.
    const answers = [ask(), ask({ sub: 'another' })];
    expect((await Promise.race(answers)).body['code']).toBe('PROVER_BUSY');
    (await heldResponse).writeHead(500).end();
    await Promise.all(answers);
  });

  test('returns the proof of another request causes PROVER_BACKEND_ANSWER', async () => {
    const { ask, backend } = await startTestFrontend();
    const proofs: object[] = [];
    backend.prove = ({ input }, response) => {
      proofs.push(createProof(input));
      response.end(JSON.stringify(proofs[0]));
    };
    expect((await ask()).status).toBe(200);
    const { status, body } = await ask({ sub: 'another' });
    expect([status, body['code']]).toEqual([502, 'PROVER_BACKEND_ANSWER']);
  });

  test('answers too late causes an error with the number of seconds, in the form that the wallet reads', async () => {
    const { ask, backend } = await startTestFrontend({ PROVER_TIMEOUT: '1' });
    backend.prove = () => {};
    const before = performance.now();
    const { status, body } = await ask();
    expect([status, body['code']]).toEqual([504, 'PROVER_BACKEND_TIMEOUT']);
    expect(body['error']).toMatch(/the call to the proving component took longer than 1 second:/);
    expect(performance.now() - before).toBeLessThan(5000);
  });

  test('sends its answer too slowly causes PROVER_BACKEND_TIMEOUT', async () => {
    const { ask, backend } = await startTestFrontend({
      configure: (config) => ({ ...config, timeoutSeconds: 0.3 }),
    });
    backend.prove = (_, response) => response.write('{"pi_a":');
    expect((await ask()).body['code']).toBe('PROVER_BACKEND_TIMEOUT');
  });

  test.each([
    ['12', '12'],
    [undefined, '5'],
    ['99999', '600'],
  ])(
    'is at capacity and sends Retry-After %s is not asked again, and the caller gets Retry-After %s',
    async (retryAfter, expectedRetryAfter) => {
      const { ask, backend } = await startTestFrontend();
      backend.prove = (_, response) =>
        response
          .writeHead(503, retryAfter === undefined ? {} : { 'retry-after': retryAfter })
          .end('Server at capacity');
      const { headers } = await ask();
      expect(headers.get('retry-after')).toBe(expectedRetryAfter);
      expect(backend.inputs).toHaveLength(1);
    },
  );

  test('loses one connection is asked again', async () => {
    const { ask, backend } = await startTestFrontend();
    const { prove } = backend;
    backend.prove = (...proveArguments) => {
      if (backend.inputs.length === 1) return proveArguments[1].destroy();
      return prove(...proveArguments);
    };
    expect((await ask()).status).toBe(200);
    expect(backend.inputs).toHaveLength(2);
  });

  test('closes every connection is asked three times, and then reported as unreachable', async () => {
    const backend = await FakeBackend.start();
    const { ask } = await startTestFrontend({ backend });
    backend.prove = (_, response) => response.destroy();
    expect((await ask()).body['code']).toBe('PROVER_BACKEND_UNREACHABLE');
    expect(backend.inputs).toHaveLength(3);
  });
});

describe('a backend with a pinned key', () => {
  test('makes proofs for a front end whose verifying key is not published', async () => {
    const backend = await FakeBackend.start();
    backend.network = 'unknown';
    const { ask, printed } = await startTestFrontend({ backend });
    await expect.poll(printed).toMatch(/only its proofs show whether it belongs to VERIFYING_KEY/);
    expect((await ask()).status).toBe(200);
  });

  test('is detected by its proof if the key belongs to another verifying key', async () => {
    const backend = await FakeBackend.start(OTHER_KEY);
    backend.network = 'unknown';
    const { ask } = await startTestFrontend({ backend });
    const { status, body } = await ask();
    expect([status, body['code']]).toEqual([502, 'PROVER_BACKEND_ANSWER']);
  });

  test("gets no input from a front end of a network's key", async () => {
    const backend = await FakeBackend.start();
    backend.network = 'unknown';
    const { ask, printed } = await startTestFrontend({
      backend,
      configure: (config) => ({
        ...config,
        keys: { own: { ...config.keys.own, network: 'mainnet and testnet' }, others: [devnet] },
      }),
    });
    await expect.poll(printed).toMatch(/"level":"error".*the backend has the key of unknown/);
    const { status, body } = await ask();
    expect([status, body['code'], backend.inputs]).toEqual([503, 'PROVER_WRONG_NETWORK', []]);
  });
});

describe('a backend with the key of another network', () => {
  test('is reported at the start, gets no input, and is asked for its network at most every five seconds', async () => {
    const backend = await FakeBackend.start();
    backend.network = 'devnet';
    const { ask, printed } = await startTestFrontend({ backend });
    await expect
      .poll(printed)
      .toMatch(
        /"level":"error".*the backend has the key of devnet, but this service has the key of development/,
      );
    const { status, body } = await ask();
    expect([status, body['code']]).toEqual([503, 'PROVER_WRONG_NETWORK']);
    expect(body['error']).toMatch(
      /the backend has the key of devnet, but this service has the key of development/,
    );
    expect(backend.inputs).toEqual([]);
    // The front end asks for the backend's health at the start and with the first request, and then not for
    // five seconds.
    await ask();
    expect(backend.healthRequests).toBe(2);
  });

  test('is used as soon as it has the right key', async () => {
    const backend = await FakeBackend.start();
    backend.network = 'mainnet and testnet';
    const { ask, printed } = await startTestFrontend({ backend });
    await expect.poll(printed).toMatch(/the backend has the key of mainnet and testnet/);
    backend.network = 'development';
    expect((await ask()).status).toBe(200);
    expect(printed()).toMatch(/the backend has the key of this network/);
  });

  test('is detected by its proof if it does not name its network', async () => {
    const backend = await FakeBackend.start(OTHER_KEY);
    backend.network = undefined;
    const { ask, printed } = await startTestFrontend({
      backend,
      configure: (config) => ({
        ...config,
        keys: { own: { ...config.keys.own, network: 'mainnet and testnet' }, others: [devnet] },
      }),
    });
    await expect.poll(printed).toMatch(/the backend has not named its network/);
    const { status, body } = await ask();
    expect([status, body['code']]).toEqual([503, 'PROVER_WRONG_NETWORK']);
    expect(body['error']).toMatch(
      /the backend has the key of devnet, but this service has the key of mainnet and testnet/,
    );
    expect(printed()).toMatch(/"level":"error".*"backend":"devnet"/);
  });

  test("can't write unchecked text into the log", async () => {
    const backend = await FakeBackend.start();
    backend.network = 'devnet\nhunter2 <script>';
    const { ask, printed } = await startTestFrontend({ backend });
    await expect.poll(printed).toMatch(/has not named its network/);
    expect(printed()).not.toMatch(/hunter2/);
    expect((await ask()).status).toBe(200);
  });
});

describe('an issuer whose keys', () => {
  test.each<[string, (response: ServerResponse) => unknown, number, string]>([
    ['are unreachable', (response) => response.destroy(), 502, 'PROVER_ISSUER'],
    ['are refused', (response) => response.writeHead(500).end(), 502, 'PROVER_ISSUER'],
    ['are garbage', (response) => response.end('<html>'), 502, 'PROVER_ISSUER'],
    ['are an empty list', (response) => response.end('{"keys":[]}'), 502, 'PROVER_ISSUER'],
    ['are huge', (response) => response.end(' '.repeat(300_000)), 502, 'PROVER_ISSUER'],
    [
      'are answered by a redirect',
      (response) => response.writeHead(302, { location: '/x' }).end(),
      502,
      'PROVER_ISSUER',
    ],
    ['are slow', (response) => response.write('{"keys":'), 504, 'PROVER_ISSUER_TIMEOUT'],
  ])('%s causes a typed error, and does not affect other issuers', async (_, answer, status, code) => {
    changeDeadline(5000, 300);
    const issuer = await Issuer.start();
    const clients = [
      { issuer: 'https://accounts.google.com', client_id: 'mine' },
      { issuer: 'https://id.example', client_id: 'mine', jwks_url: 'https://id.example/jwks' },
    ];
    const { ask, backend } = await startTestFrontend({ issuer, CLIENTS: JSON.stringify(clients) });
    const { answer: healthy } = issuer;
    issuer.answer = answer;
    const refused = await ask({ aud: 'mine' });
    expect([refused.status, refused.body['code']]).toEqual([status, code]);
    expect(backend.inputs).toEqual([]);
    issuer.answer = healthy;
    expect((await ask({ aud: 'mine', iss: 'https://id.example' })).status).toBe(200);
  });

  test('become unreachable later has its known keys accepted', async () => {
    const { ask, issuer, post, token } = await startTestFrontend();
    expect((await ask()).status).toBe(200);
    const jwt = await token();
    issuer.stop();
    expect((await post(requestFor(jwt))).status).toBe(200);
  });
});
