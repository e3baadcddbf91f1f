/** Attests an image under a root of its own, for a fake enclave that waits for its secrets. */
import { loadImage } from '../../../src/cli/parent/image.ts';
import { encodeUserData } from '../../../src/library/sealing/user_data.ts';
import { Nsm } from '../../../src/server/nsm/nsm.ts';
import { SealingKey } from '../../../src/server/sealing/sealing_key.ts';
import { createRoot, toPem } from '../../../src/testing/attestation_ca.ts';
import { EmulatedNsm } from '../../../src/testing/emulated_nsm.ts';

interface Attester {
  readonly rootPem: string;
  /** Returns the answer of `/get_attestation`. @param nonce in hexadecimal */
  attest(nonce: string): Promise<string>;
}

export async function attestImage(eif: string): Promise<Attester> {
  const { pcr0, pcr1, pcr2 } = loadImage(eif).registers;
  const registers = [pcr0, pcr1, pcr2].map((hex) => Uint8Array.from(Buffer.from(hex, 'hex')));
  const root = createRoot(new Date());
  const nsm = new Nsm(new EmulatedNsm(Date.now, root, registers as never));
  const sealingKey = SealingKey.create().publicKey;
  const userData = encodeUserData({ sealingKey, application: 'weather', version: '1.0.0' });
  const publicKey = new Uint8Array(32).fill(7);
  return {
    rootPem: toPem(root.certificate),
    async attest(nonce) {
      const document = await nsm.attestation({ publicKey, userData, nonce: Buffer.from(nonce, 'hex') });
      return JSON.stringify({ attestation: Buffer.from(document).toString('hex') });
    },
  };
}
