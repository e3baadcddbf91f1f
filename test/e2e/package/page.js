// Imports the client as a bundled page does, and defines a function that the test calls in the page.
import { bcs } from '@mysten/bcs';
import { parsePcrs, verifyAttestation } from 'sui-enclave/attestation';
import { EnclaveClient, signedType, text, u64 } from 'sui-enclave/client';

globalThis.checkPackage = async (hex, pcrs) => {
  const bytes = Uint8Array.from(hex.match(/../g), (byte) => Number.parseInt(byte, 16));
  const policy = { images: [parsePcrs(pcrs)] };
  const { rootSha256 } = await verifyAttestation(bytes, { now: Date.parse('2025-04-15T03:00:00Z'), policy });
  const schema = signedType(0, bcs.struct('Weather', { location: text, temperature: u64 }));
  const client = new EnclaveClient('http://127.0.0.1:1', { policy });
  const callCode = await client.processData({}, schema).catch((error) => error.code);
  return { rootSha256, callCode };
};
