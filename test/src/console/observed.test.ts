import { afterEach, expect, test, vi } from 'vitest';
import { type ObservedRequest, recordTraffic } from '../../../src/console/call/observed.ts';

afterEach(() => {
  vi.unstubAllGlobals();
});

const BASE = new URL('https://enclave.example/a/');
const KEY = 'ab'.repeat(32);

/** Sends a request. @returns its record, and the answer that the client gets */
async function observeRequest(path: string, answer: Response, init: RequestInit = {}) {
  vi.stubGlobal('fetch', async () => answer);
  const seen: ObservedRequest[] = [];
  const response = await recordTraffic(seen, BASE)(new URL(path, BASE), init);
  return { seen: seen[0], response };
}

test('a plain request is recorded with the parts that the host reads, and the key that its answer claims', async () => {
  const answer = new Response('{"a":1}', { headers: { 'x-enclave-key': KEY } });
  const { seen, response } = await observeRequest('draw', answer, { method: 'POST', body: '{"é":1}' });
  expect(seen).toEqual({
    path: '/draw',
    isSealed: false,
    sent: 8,
    received: 7,
    request: '{"é":1}',
    answer: '{"a":1}',
    key: KEY,
  });
  expect(await response.text()).toBe('{"a":1}');
});

test('only the sizes of a sealed request are recorded', async () => {
  const body = new Uint8Array(120);
  const { seen } = await observeRequest('sealed', new Response(new Uint8Array(99)), { method: 'POST', body });
  expect(seen).toMatchObject({
    path: '/sealed',
    isSealed: true,
    sent: 120,
    received: 99,
    request: '',
    answer: '',
  });
});

test('an answer without end is read only as far as the client reads, and an invalid key is not shown as a key', async () => {
  let pulled = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      pulled += 1;
      controller.enqueue(new Uint8Array(65_536).fill(0x78));
    },
  });
  const answer = new Response(endless, { headers: { 'x-enclave-key': 'AB' } });
  const { seen } = await observeRequest('draw', answer);
  expect(seen?.received).toBeGreaterThan(1_048_576);
  expect(seen?.received).toBeLessThan(1_300_000);
  expect(seen?.answer).toHaveLength(65_536);
  expect(seen?.key).toBeUndefined();
  expect(pulled).toBeLessThan(25);
});
