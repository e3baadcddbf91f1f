import { createPrivateKey, createPublicKey, type KeyObject, sign as sign25519 } from 'node:crypto';
import { bootSeed } from './seed.ts';

/** RFC 8410, section 7: PKCS #8 of an ed25519 private key, up to the 32 bytes of the seed. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');
const SEED_BYTES = 32;

/**
 * The enclave's ed25519 key (RFC 8032). It is generated at boot and exists only in the memory of this
 * process. It can't be printed or exported, since it is a private field without an accessor.
 */
export class EphemeralKey {
  readonly #privateKey: KeyObject;
  readonly #publicKey: Uint8Array;

  private constructor(privateKey: KeyObject) {
    this.#privateKey = privateKey;
    const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
    this.#publicKey = Uint8Array.from(Buffer.from(x as string, 'base64url'));
  }

  /**
   * Generates a key. OpenSSL keeps a copy of the seed for the lifetime of the key.
   *
   * @param nsmRandom at least 32 bytes from GetRandom, which the caller wipes
   */
  static create(nsmRandom?: Uint8Array): EphemeralKey {
    const seed = bootSeed('sui-enclave ephemeral ed25519 key', nsmRandom);
    try {
      return EphemeralKey.of(seed);
    } finally {
      seed.fill(0);
    }
  }

  /**
   * Returns the key of a seed.
   *
   * @param seed 32 bytes, which the caller wipes; only for development and test vectors. Otherwise use
   *   `create`
   */
  static of(seed: Uint8Array): EphemeralKey {
    if (seed.length !== SEED_BYTES)
      throw new RangeError(`the seed of an ed25519 key has ${SEED_BYTES} bytes`);
    const pkcs8 = Buffer.alloc(PKCS8_PREFIX.length + seed.length);
    pkcs8.set(PKCS8_PREFIX);
    pkcs8.set(seed, PKCS8_PREFIX.length);
    try {
      return new EphemeralKey(createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }));
    } finally {
      pkcs8.fill(0);
    }
  }

  /** The raw public key, 32 bytes (a copy). */
  get publicKey(): Uint8Array {
    return this.#publicKey.slice();
  }

  /** Returns the 64-byte signature of the message itself (pure ed25519, no prehash, no context). */
  sign(message: Uint8Array): Buffer {
    return sign25519(null, message, this.#privateKey);
  }
}
