import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { decode, encode } from 'cborg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Documents, readTimestamp } from '../../../../src/server/nsm/documents.ts';
import { NsmIo } from '../../../../src/server/nsm/errors.ts';
import { Nsm } from '../../../../src/server/nsm/nsm.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { sleep, startServer } from '../support.ts';

const KEY = new Uint8Array(32).fill(7);
const USER_DATA = new Uint8Array(60).fill(9);
const STAYS = new AbortController().signal;
const createNonce = (number: number) => Uint8Array.of(0xa5, 0x5a, 0xc3, number >> 8, number & 255);

/** Creates an NSM that takes some time for each document and counts the documents. */
function slowNsm(ms: number) {
  const real = new EmulatedNsm();
  const state = {
    made: 0,
    atOnce: 0,
    mostAtOnce: 0,
    failing: false,
    released: Promise.resolve(),
    onMade: () => {},
  };
  const transact = async (message: Uint8Array) => {
    if (!Buffer.from(message).includes('Attestation')) return real.transact(message);
    state.atOnce += 1;
    state.mostAtOnce = Math.max(state.mostAtOnce, state.atOnce);
    await Promise.all([sleep(ms), state.released]);
    state.atOnce -= 1;
    if (state.failing) throw new NsmIo('ioctl', 'EIO');
    state.made += 1;
    state.onMade();
    // The document is not signed, since a signature would take longer than the test allows for a document.
    const { public_key, nonce, user_data } = decode(message).Attestation;
    const payload = encode({ timestamp: Date.now(), public_key, nonce, user_data });
    return encode({ Attestation: { document: encode([new Uint8Array(), {}, payload, new Uint8Array()]) } });
  };
  return { state, transport: { transact, close() {} } };
}

function createDocuments(ms: number) {
  const { state, transport } = slowNsm(ms);
  let now = 0;
  const clock = () => now + performance.now();
  const documents = new Documents(new Nsm(transport), { publicKey: KEY, userData: USER_DATA }, clock);
  return { state, documents, pass: (ms: number) => (now += ms) };
}

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'made',
    (error: { code: string }) => error.code,
  );

describe('a document without a nonce', () => {
  test('is shared by all callers for 5 seconds', async () => {
    const { state, documents, pass } = createDocuments(5);
    const all = await Promise.all(Array.from({ length: 50 }, () => documents.shared()));
    expect(new Set(all).size).toBe(1);
    pass(4900);
    expect(await documents.shared()).toBe(all[0]);
    pass(100);
    expect(await documents.shared()).not.toBe(all[0]);
    expect(state.made).toBe(2);
  });

  test('is not cached if it fails', async () => {
    const { state, documents } = createDocuments(1);
    state.failing = true;
    expect(await Promise.all([code(documents.shared()), code(documents.shared())])).toEqual([
      'NSM_IO',
      'NSM_IO',
    ]);
    state.failing = false;
    expect(await code(documents.shared())).toBe('made');
  });

  test('takes precedence over documents with a nonce, as do documents for the server itself', async () => {
    const { documents } = createDocuments(5);
    const order: string[] = [];
    const note = (name: string) => () => void order.push(name);
    const laterCalls = [1, 2, 3].map((number) =>
      documents.fresh(createNonce(number), {}, STAYS).then(note(`fresh ${number}`)),
    );
    await Promise.all([
      ...laterCalls,
      documents.shared().then(note('shared')),
      documents.urgent(createNonce(9)).then(note('urgent')),
    ]);
    expect(order).toEqual(['fresh 1', 'urgent', 'shared', 'fresh 2', 'fresh 3']);
  });
});

describe('a document with a nonce', () => {
  test('is served in order, one at a time, each with its own nonce', async () => {
    const { state, documents } = createDocuments(1);
    const order: number[] = [];
    const ask = async (number: number) => {
      const document = await documents.fresh(createNonce(number), {}, STAYS);
      order.push(number);
      expect(Buffer.from(document).includes(Buffer.from(createNonce(number)))).toBe(true);
    };
    const numbers = Array.from({ length: 20 }, (_, number) => number);
    await Promise.all(numbers.map(ask));
    expect(order).toEqual(numbers);
    expect(state.mostAtOnce).toBe(1);
  });

  test('is limited to one per owner at a time', async () => {
    const { documents } = createDocuments(1);
    const owner = {};
    const first = documents.fresh(createNonce(1), owner, STAYS);
    expect(await code(documents.fresh(createNonce(2), owner, STAYS))).toBe('NSM_BUSY');
    await first;
    expect(await code(documents.fresh(createNonce(3), owner, STAYS))).toBe('made');
  });

  test('is refused while 256 wait', async () => {
    const { documents } = createDocuments(0);
    const waiting = Array.from({ length: 257 }, (_, number) =>
      code(documents.fresh(createNonce(number), {}, STAYS)),
    );
    expect(await code(documents.fresh(createNonce(300), {}, STAYS))).toBe('NSM_BUSY');
    expect(await Promise.all(waiting)).toEqual(waiting.map(() => 'made'));
  });

  test('is refused if it would take over 8 seconds, and the refusal says when to retry', async () => {
    const { state, documents, pass } = createDocuments(0);
    state.onMade = () => void pass(200);
    // The moving average follows the time that documents take.
    for (let times = 0; times < 20; times += 1) await documents.urgent(createNonce(times));
    const leaver = new AbortController();
    const outcomes = Array.from({ length: 60 }, (_, number) =>
      documents.fresh(createNonce(number), {}, leaver.signal),
    );
    const refused = outcomes.at(-1)?.catch((error) => error);
    expect(await refused).toMatchObject({
      code: 'NSM_BUSY',
      retryAfterSeconds: expect.toSatisfy((s) => s >= 6 && s <= 10),
    });
    leaver.abort();
    await Promise.allSettled(outcomes);
  });

  test('is not requested for an owner that has left', async () => {
    const { state, documents } = createDocuments(5);
    const first = documents.fresh(createNonce(0), {}, STAYS);
    const leaver = new AbortController();
    const laterCalls = Array.from({ length: 10 }, (_, number) =>
      code(documents.fresh(createNonce(number + 1), {}, leaver.signal)),
    );
    leaver.abort();
    expect(await Promise.all(laterCalls)).toEqual(laterCalls.map(() => 'NSM_BUSY'));
    await first;
    expect(state.made).toBe(1);
  });
});

test('reads the timestamp of real documents', () => {
  const read = (name: string) =>
    Buffer.from(readFileSync(new URL(`../../../vectors/${name}.hex`, import.meta.url), 'utf8').trim(), 'hex');
  expect(readTimestamp(read('nautilus-weather'))).toBe(1_744_683_923_696);
  expect(readTimestamp(read('evervault-debug'))).toBe(1_695_049_410_860);
  expect(readTimestamp(read('qemu-unsigned'))).toBe(1_795_154_233_000);
  const payload = (timestamp: unknown) =>
    encode([new Uint8Array(), new Map(), encode({ timestamp }), new Uint8Array()]);
  expect(readTimestamp(payload(5))).toBe(5);
  for (const bytes of [
    Buffer.from('00', 'hex'),
    Buffer.alloc(0),
    payload('5'),
    payload(-1),
    payload(2n ** 63n),
    payload(0.5),
  ]) {
    expect(() => readTimestamp(bytes)).toThrow(expect.objectContaining({ code: 'NSM_PROTOCOL' }));
  }
});

describe('GET /get_attestation', () => {
  const ask = (url: string, agent: Agent, nonce: string) =>
    new Promise<{ status: number; retryAfter: number }>((resolve, reject) => {
      const clientRequest = request(`${url}/get_attestation?nonce=${nonce}`, { agent }, (answer) => {
        answer.resume();
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, retryAfter: Number(answer.headers['retry-after']) }),
        );
      });
      clientRequest.on('error', reject);
      clientRequest.end();
    });

  test('serves each of 40 busy connections at most twice before it serves an honest verifier', async () => {
    // The test counts documents, not seconds: a busy machine serves all callers later, but none more often.
    const { transport, state } = slowNsm(1);
    const { url } = await startServer({ nsm: transport, env: { LOG_LEVEL: 'error' } });
    const attackers = new Agent({ keepAlive: true, maxSockets: 40 });
    const honest = new Agent({ keepAlive: true });
    let attacking = true;
    const attack = async () => {
      while (attacking) await ask(url, attackers, 'ab').catch(() => {});
    };
    const attacks = Array.from({ length: 40 }, attack);
    onTestFinished(async () => {
      attacking = false;
      await Promise.all(attacks);
      attackers.destroy();
      honest.destroy();
    });
    await expect.poll(() => state.made).toBeGreaterThan(40);
    for (let times = 0; times < 5; times += 1) {
      const before = state.made;
      expect(await ask(url, honest, `c0ffee0${times}`)).toMatchObject({ status: 200 });
      // Each connection is served at most once from the queue that the verifier joins, and once while the
      // verifier's request is on its way to the queue.
      expect(state.made - before).toBeLessThanOrEqual(2 * 40);
    }
  });

  test('does not use a slot of the application', async () => {
    const { transport } = slowNsm(20);
    const { url, get } = await startServer({ nsm: transport, env: { MAX_CONCURRENT_REQUESTS: '1' } });
    const agent = new Agent();
    const waiting = Array.from({ length: 10 }, () => ask(url, agent, 'ab'));
    await sleep(30);
    expect((await get('/health_check')).status).toBe(200);
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(waiting.map(() => 200));
  });

  test('answers a second concurrent request of a connection with 503, and does no work for disconnected callers', async () => {
    const { transport, state } = slowNsm(5);
    const { url, get } = await startServer({ nsm: transport });
    const before = state.made;
    const { promise, resolve: release } = Promise.withResolvers<void>();
    state.released = promise;
    const abandonedRequests = Array.from({ length: 10 }, () => {
      const clientRequest = request(`${url}/get_attestation?nonce=ab`, { agent: new Agent() });
      clientRequest.on('error', () => {});
      clientRequest.end();
      return clientRequest;
    });
    await expect.poll(() => state.atOnce).toBe(1);
    for (const clientRequest of abandonedRequests) clientRequest.destroy();
    // Answered after the server has noticed that they are gone.
    await get('/health_check');
    release();
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    onTestFinished(() => void socket.destroy());
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk;
    });
    await once(socket, 'connect');
    socket.write('GET /get_attestation?nonce=01 HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(2));
    await expect.poll(() => received).toMatch(/200 OK.*503 .*retry-after: 1.*NSM_BUSY/is);
    expect(state.made - before).toBeLessThanOrEqual(3);
  });
});
