/** The client in a page: its fetch, its Web Crypto, an enclave on another origin. */
import { bcs } from '@mysten/bcs';
import { describe, expect, inject, test } from 'vitest';
import { certificatesFromPem, EnclaveClient, signedType, text, u64 } from '../../src/client/index.ts';

const WeatherResponse = signedType(0, bcs.struct('WeatherResponse', { location: text, temperature: u64 }));

describe('in a browser', () => {
  const { url, image, rootPem } = inject('enclave');
  const roots = certificatesFromPem(rootPem);

  test('there is no Node', () => {
    expect(typeof globalThis.process?.versions?.node).toBe('undefined');
    expect(navigator.userAgent).toContain('Chrome');
  });

  test('an attested enclave answers', async () => {
    const client = new EnclaveClient(url, { policy: { images: [image] }, roots });
    const { data, signature } = await client.processData({ location: 'Köln' }, WeatherResponse);
    expect(data).toEqual({ location: 'Köln', temperature: 13n });
    expect(signature).toHaveLength(64);
  });

  test('another image is refused', async () => {
    const other = { ...image, pcr0: 'ab'.repeat(48) };
    const client = new EnclaveClient(url, { policy: { images: [other] }, roots });
    await expect(client.attest()).rejects.toMatchObject({ code: 'POLICY_PCRS' });
  });

  test('an enclave that is not under AWS’s root is refused unless the root is named', async () => {
    const client = new EnclaveClient(url, { policy: { images: [image] } });
    await expect(client.attest()).rejects.toMatchObject({ code: 'CHAIN_ROOT' });
  });
});
