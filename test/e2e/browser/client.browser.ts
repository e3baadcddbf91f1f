/** Tests the client in a page, with the browser's fetch and Web Crypto, and an enclave on another origin. */
import { bcs } from '@mysten/bcs';
import { describe, expect, inject, test } from 'vitest';
import {
  certificatesFromPem,
  EnclaveClient,
  mayHaveExecuted,
  signedType,
  text,
  u64,
} from '../../../src/library/client/index.ts';

const WeatherResponse = signedType(0, bcs.struct('WeatherResponse', { location: text, temperature: u64 }));

describe('in a browser', () => {
  const { url, sealedUrl, image, rootPem } = inject('enclave');
  const roots = certificatesFromPem(rootPem);

  test('Node is not available', () => {
    expect(typeof globalThis.process?.versions?.node).toBe('undefined');
    expect(navigator.userAgent).toContain('Chrome');
  });

  test('an attested enclave answers', async () => {
    const client = new EnclaveClient(url, { policy: { images: [image] }, roots });
    const { data, signature } = await client.processData({ location: 'Köln' }, WeatherResponse);
    expect(data).toEqual({ location: 'Köln', temperature: 13n });
    expect(signature).toHaveLength(64);
  });

  test('a request is sealed to an attested enclave, and its answer opened', async () => {
    const client = new EnclaveClient(sealedUrl, { policy: { images: [image] }, roots, sealed: true });
    expect(await client.ask('/search?note=K%C3%B6ln', undefined)).toEqual({ note: 'Köln' });
    const refused = client.ask('/draw', {});
    await expect(refused).rejects.toMatchObject({ code: 'CLIENT_REFUSED', serverCode: 'INVALID_INPUT' });
  });

  test('a page can read which key signed, and can end a call', async () => {
    const body = JSON.stringify({ picked: '7' });
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`${sealedUrl}/draw`, { method: 'POST', headers, body });
    expect(answer.headers.get('x-enclave-key')).toMatch(/^[0-9a-f]{64}$/);
    const client = new EnclaveClient(sealedUrl, { policy: { images: [image] }, roots, sealed: true });
    await client.attest();
    const controller = new AbortController();
    const slowCall = client.ask('/slow', undefined, { signal: controller.signal });
    const reason = new Error('the page was left');
    setTimeout(() => controller.abort(reason), 50);
    await expect(slowCall).rejects.toBe(reason);
    expect(mayHaveExecuted(reason)).toBe(true);
  });

  test('another image is refused', async () => {
    const otherImage = { ...image, pcr0: 'ab'.repeat(48) };
    const client = new EnclaveClient(url, { policy: { images: [otherImage] }, roots });
    await expect(client.attest()).rejects.toMatchObject({ code: 'POLICY_PCRS' });
  });

  test('the genuine answer to another request is refused', async () => {
    const client = new EnclaveClient(url, { policy: { images: [image] }, roots });
    const expected = { expect: { location: 'Bonn' } };
    const call = client.processData({ location: 'Köln' }, WeatherResponse, expected);
    await expect(call).rejects.toMatchObject({ code: 'CLIENT_EXPECT', member: 'location' });
  });

  test('a missing enclave and one that allows no other origin can’t be distinguished', async () => {
    for (const unreachable of ['http://127.0.0.1:1', `${url}/without_cors`]) {
      const client = new EnclaveClient(unreachable, { policy: { images: [image] } });
      await expect(client.attest()).rejects.toMatchObject({
        code: 'CLIENT_UNREACHABLE',
        reason: 'unknown',
        message: expect.stringContaining('(CORS)'),
      });
    }
  });

  test('an enclave that is not under AWS’s root is refused if the page does not name its root', async () => {
    const client = new EnclaveClient(url, { policy: { images: [image] } });
    await expect(client.attest()).rejects.toMatchObject({ code: 'CHAIN_ROOT' });
  });
});
