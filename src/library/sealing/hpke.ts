/**
 * HPKE (RFC 9180) in mode Base with one message for each context: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256,
 * AES-256-GCM. The package `hpke` implements the construction. The algorithms below it come from Web Crypto,
 * or from the server.
 */
import {
  type AEAD,
  AEAD_AES_256_GCM,
  CipherSuite,
  DecapError,
  type KDF,
  KDF_HKDF_SHA256,
  type KEM,
  KEM_DHKEM_X25519_HKDF_SHA256,
  type Key,
  NotSupportedError,
  OpenError,
} from 'hpke';
import { SealingError } from './errors.ts';

/** The identifiers of the algorithms (RFC 9180, section 7). */
export const ALGORITHM_IDS = { kem: 0x0020, kdf: 0x0001, aead: 0x0002 } as const;

/** Size of a public key and of an encapsulated key, in bytes. */
export const KEY_SIZE = 32;
/** Size of the authentication tag at the end of a ciphertext, in bytes. */
export const TAG_SIZE = 16;

/** The algorithms, as a platform implements them. */
export interface Suite {
  readonly hpke: CipherSuite;
  readonly aead: Readonly<AEAD>;
}

/** Function that exports a secret from a context. Only the two sides can derive this secret. */
export type ExportSecret = (context: Uint8Array, size: number) => Promise<Uint8Array>;

/** Data that both sides must know. The ciphertext authenticates it, but doesn't contain it. */
export interface BoundData {
  readonly info: Uint8Array;
  readonly aad: Uint8Array;
}

export function createSuite(kem: KEM, kdf: KDF, aead: AEAD): Suite {
  return {
    hpke: new CipherSuite(
      () => kem,
      () => kdf,
      () => aead,
    ),
    aead,
  };
}

let webCrypto: Suite | undefined;

/**
 * Returns the algorithms of Web Crypto. X25519 is in Node 22, Chrome and Edge 133, Firefox 130 and Safari 17;
 * a page has Web Crypto only if it was loaded over https or from this machine.
 */
export function webCryptoSuite(): Suite {
  webCrypto ??= createSuite(KEM_DHKEM_X25519_HKDF_SHA256(), KDF_HKDF_SHA256(), AEAD_AES_256_GCM());
  return webCrypto;
}

/**
 * Seals a message to a public key, with a fresh ephemeral key.
 *
 * @param publicKey 32 bytes
 * @returns the encapsulated key, 32 bytes; the ciphertext, 16 bytes longer than the plaintext
 * @throws SealingError: SEALING_UNSUPPORTED
 */
export async function sealTo(
  publicKey: Uint8Array,
  { info, aad, plaintext }: BoundData & { readonly plaintext: Uint8Array },
  { hpke }: Suite,
): Promise<{ enc: Uint8Array; ciphertext: Uint8Array; exportSecret: ExportSecret }> {
  try {
    const recipient = await hpke.DeserializePublicKey(publicKey);
    const { encapsulatedSecret: enc, ctx } = await hpke.SetupSender(recipient, { info });
    const ciphertext = await ctx.Seal(plaintext, aad);
    return { enc, ciphertext, exportSecret: (context, size) => ctx.Export(context, size) };
  } catch (error) {
    throw toUnsupportedError(error) ?? error;
  }
}

/**
 * Opens a message that was sealed to a key.
 *
 * @throws SealingError: SEALED_ALTERED
 */
export async function openWith(
  key: Key,
  { enc, info, aad, ciphertext }: BoundData & { readonly enc: Uint8Array; readonly ciphertext: Uint8Array },
  { hpke }: Suite,
): Promise<{ plaintext: Uint8Array; exportSecret: ExportSecret }> {
  try {
    const ctx = await hpke.SetupRecipient(key, enc, { info });
    const plaintext = await ctx.Open(ciphertext, aad);
    return { plaintext, exportSecret: (context, size) => ctx.Export(context, size) };
  } catch (error) {
    // DecapError means an encapsulated key of low order (RFC 9180, section 7.1.4), which no sender makes.
    if (error instanceof OpenError || error instanceof DecapError) throw createAlteredError();
    throw error;
  }
}

/**
 * Returns the error for any altered message. It has no cause: the sender must not learn why its ciphertext
 * failed.
 */
export function createAlteredError(): SealingError {
  const message = 'the message was sealed in another way, or was changed in transit';
  return new SealingError('SEALED_ALTERED', message);
}

/** Returns the error for an algorithm that the platform lacks; undefined for any other error. */
export function toUnsupportedError(error: unknown): SealingError | undefined {
  if (!(error instanceof NotSupportedError)) return undefined;
  const message =
    'this platform lacks X25519, AES-GCM or HMAC in Web Crypto: use Node 22, Chrome 133, Firefox 130, Safari 17 or newer, and a page on https';
  return new SealingError('SEALING_UNSUPPORTED', message, { cause: error });
}
