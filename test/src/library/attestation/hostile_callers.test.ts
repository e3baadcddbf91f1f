/**
 * Callers whose values change while a document is verified. The verdict applies to the values at the time of
 * the call.
 */
import { expect, test } from 'vitest';
import { verifyAttestation } from '../../../../src/library/attestation/index.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { FakeEnclave } from '../client/fake_enclave.ts';

test('changes to a document, a root or a policy during the verification have no effect', async () => {
  const enclave = await FakeEnclave.start(new EmulatedNsm());
  const response = await fetch(new URL('/get_attestation', enclave.url));
  enclave.close();
  const { attestation } = (await response.json()) as { attestation: string };
  const bytes = Uint8Array.from(Buffer.from(attestation, 'hex'));
  const before = bytes.slice();
  const publicKey = Uint8Array.from(enclave.key.publicKey);
  const roots = enclave.roots.map((der) => Uint8Array.from(der));
  const policy = { images: [enclave.image], publicKey };
  const verified = verifyAttestation(bytes, { now: Date.now(), policy, roots });
  for (const changed of [bytes, publicKey, ...roots]) changed.fill(0);
  const { document } = await verified;
  expect(Buffer.from(before).includes(Buffer.from(document.payload))).toBe(true);
  expect(document.publicKey).toEqual(enclave.key.publicKey);
});

test('a document whose class overrides methods is read by its real bytes', async () => {
  const enclave = await FakeEnclave.start(new EmulatedNsm());
  const response = await fetch(new URL('/get_attestation', enclave.url));
  enclave.close();
  const { attestation } = (await response.json()) as { attestation: string };
  const honest = Buffer.from(attestation, 'hex');
  class TwoFaced extends Uint8Array {
    override slice(): never {
      return honest.subarray(0, 4) as never;
    }
    override subarray(): never {
      return honest.subarray(0, 4) as never;
    }
  }
  const options = { now: Date.now(), policy: { images: [enclave.image] }, roots: enclave.roots };
  await expect(verifyAttestation(new TwoFaced(honest), options)).resolves.toMatchObject({
    checked: ['image'],
  });
});
