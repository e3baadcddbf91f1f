/** Callers whose values change while the client waits. The client uses the values at the time of the call. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WeatherResponse } from '../../../../src/apps/weather/types.ts';
import { EnclaveClient } from '../../../../src/library/client/index.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { FakeEnclave } from './fake_enclave.ts';

const nsm = new EmulatedNsm();
let enclave: FakeEnclave;
beforeEach(async () => {
  enclave = await FakeEnclave.start(nsm);
});
afterEach(() => enclave.close());

/** Returns a fetch that records the bodies of requests, and sends the requests to the enclave. */
function createRecorder(): { fetch: typeof fetch; bodies: unknown[] } {
  const bodies: unknown[] = [];
  return {
    bodies,
    fetch: async (url, init) => {
      if (typeof init?.body === 'string') bodies.push(JSON.parse(init.body));
      return await fetch(url, init);
    },
  };
}

test('a request that changes after the call is sent and compared as it was at the call', async () => {
  const { fetch, bodies } = createRecorder();
  const { image, roots } = enclave;
  const client = new EnclaveClient(enclave.url, { policy: { images: [image] }, roots, fetch });
  const location = 'San Francisco';
  const payload = { location };
  const answer = client.processData(payload, WeatherResponse, { expect: payload });
  payload.location = 'Paris';
  expect((await answer).data.location).toBe(location);
  expect(bodies).toEqual([{ payload: { location } }]);
});

test('a body that JSON cannot represent is refused before anything is sent', async () => {
  const { fetch, bodies } = createRecorder();
  const { image, roots } = enclave;
  const client = new EnclaveClient(enclave.url, { policy: { images: [image] }, roots, fetch });
  await expect(client.call('/draw', () => {}, WeatherResponse)).rejects.toMatchObject({
    code: 'CLIENT_OPTION',
  });
  expect(bodies).toEqual([]);
});

test('changes to roots and a key after the client was created have no effect', async () => {
  const { image } = enclave;
  const publicKey = Uint8Array.from(enclave.key.publicKey);
  const [root = new Uint8Array()] = enclave.roots.map((der) => Uint8Array.from(der));
  const roots = [root];
  const client = new EnclaveClient(enclave.url, { policy: { images: [image], publicKey }, roots });
  publicKey.fill(0);
  root.fill(0);
  roots.length = 0;
  await expect(client.attest()).resolves.toMatchObject({ checked: ['image', 'publicKey', 'nonce'] });
});

test('an option with a getter is read once', async () => {
  const { image, roots } = enclave;
  const values = [true, false];
  const options = { policy: { images: [image] }, roots, paddingBytes: 64 };
  const changing = Object.defineProperty({ ...options, sealed: true }, 'sealed', {
    get: () => values.shift(),
    enumerable: true,
  });
  expect(() => new EnclaveClient(enclave.url, changing)).not.toThrow();
  expect(values).toEqual([false]);
});
