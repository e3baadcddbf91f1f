/** Seals with a known ephemeral key, so that vectors can be compared byte by byte. */
import { readFileSync } from 'node:fs';
import { AEAD_AES_256_GCM, KDF_HKDF_SHA256, KEM_DHKEM_X25519_HKDF_SHA256 } from 'hpke';
import { createSuite, type Suite } from '../../../../src/library/sealing/hpke.ts';

interface Vectors {
  readonly hpke: Readonly<
    Record<'info' | 'skRm' | 'pkRm' | 'skEm' | 'enc' | 'aad' | 'pt' | 'ct' | 'source', string>
  > & {
    readonly exports: readonly { exporter_context: string; L: number; exported_value: string }[];
  };
  readonly user_data: readonly Record<'sealing_key' | 'application' | 'version' | 'bytes', string>[];
  readonly requests: readonly {
    enclave_private_key: string;
    ephemeral_private_key: string;
    ephemeral_public_key: string;
    method: 'GET' | 'POST';
    path: string;
    body?: unknown;
    padding: number;
    content: string;
    message: string;
    answer: {
      nonce: string;
      key: string;
      status: number;
      retry_after?: number;
      body: unknown;
      padding: number;
      message: string;
    };
  }[];
  readonly secrets: readonly (Readonly<
    Record<
      | 'enclave_private_key'
      | 'ephemeral_private_key'
      | 'ephemeral_public_key'
      | 'application'
      | 'version'
      | 'pcr0'
      | 'pcr1'
      | 'pcr2'
      | 'signing_key'
      | 'info'
      | 'content'
      | 'signed'
      | 'receipt_key'
      | 'message',
      string
    >
  > & {
    readonly values: Readonly<Record<string, string>>;
    readonly provisioner_public_key?: string;
    readonly signature?: string;
    readonly answer: { nonce: string; status: number; body: unknown; message: string };
  })[];
}

/** Test vectors, whose bytes are in hexadecimal. */
export const VECTORS: Vectors = JSON.parse(
  readFileSync(new URL('../../../vectors/sealing.json', import.meta.url), 'utf8'),
);

export const hex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'));
export const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Algorithms of Web Crypto, as pages use them, with this ephemeral key instead of a random one. */
export function suiteWith(ephemeralKey: Uint8Array, ephemeralPublicKey: Uint8Array): Suite {
  const kem = KEM_DHKEM_X25519_HKDF_SHA256();
  const GenerateKeyPair = async () => ({
    privateKey: await kem.DeserializePrivateKey(ephemeralKey, false),
    publicKey: await kem.DeserializePublicKey(ephemeralPublicKey),
  });
  return createSuite({ ...kem, GenerateKeyPair }, KDF_HKDF_SHA256(), AEAD_AES_256_GCM());
}

export async function findCode(promise: Promise<unknown>): Promise<string> {
  return await promise.then(
    () => 'accepted',
    (error: { code?: string }) => error.code ?? 'no code',
  );
}
