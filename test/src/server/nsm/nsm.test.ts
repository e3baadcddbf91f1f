import { encode } from 'cborg';
import { describe, expect, test } from 'vitest';
import { attestation } from '../../../../src/server/nsm/messages.ts';
import { Nsm } from '../../../../src/server/nsm/nsm.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';

const attestRequest = {
  publicKey: new Uint8Array(32).fill(1),
  nonce: Uint8Array.of(2, 3, 4, 5, 6, 7),
  userData: Uint8Array.of(9, 8, 7, 6, 5, 4),
};

/** Creates an NSM whose driver returns the late answer to another request. */
async function createLateNsm(otherRequest: typeof attestRequest): Promise<Nsm> {
  const document = await new EmulatedNsm().transact(attestation.encode(otherRequest));
  return new Nsm({ transact: async () => document, close() {} });
}

describe('Nsm.attestation', () => {
  test('returns a document with the requested fields', async () => {
    const document = Buffer.from(await new Nsm(new EmulatedNsm()).attestation(attestRequest));
    for (const field of Object.values(attestRequest))
      expect(document.includes(Buffer.from(field))).toBe(true);
  });

  test.each([
    ['publicKey', new Uint8Array(32).fill(5)],
    ['nonce', Uint8Array.of(7, 6, 5, 4, 3, 2)],
    ['userData', Uint8Array.of(4, 5, 6, 7, 8, 9)],
  ])('rejects a document with the %s of another request', async (field, value) => {
    const nsm = await createLateNsm({ ...attestRequest, [field]: value });
    await expect(nsm.attestation(attestRequest)).rejects.toMatchObject({
      code: 'NSM_PROTOCOL',
      message: expect.stringMatching(/document of another request/),
    });
  });

  test('accepts any document if no field was requested', async () => {
    const nsm = await createLateNsm(attestRequest);
    await expect(nsm.attestation({ publicKey: null, nonce: null, userData: null })).resolves.toBeInstanceOf(
      Uint8Array,
    );
  });

  test('rejects an answer without a document', async () => {
    const nsm = new Nsm({ transact: async () => encode({ Attestation: {} }), close() {} });
    await expect(nsm.attestation(attestRequest)).rejects.toMatchObject({ code: 'NSM_PROTOCOL' });
  });
});
