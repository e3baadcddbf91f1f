/**
 * The enclave's sealing key, and HPKE's algorithms. They use Node's crypto module, which takes a tenth of the
 * time of Web Crypto.
 */
import {
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  diffieHellman,
  hash,
  type KeyObject,
} from 'node:crypto';
import {
  AEAD_AES_256_GCM,
  encode,
  KDF_HKDF_SHA256,
  KEM_DHKEM_X25519_HKDF_SHA256,
  type Key,
  LabeledExpand,
  LabeledExtract,
} from 'hpke';
import { createSuite, KEY_SIZE, type Suite, TAG_SIZE } from 'sui-enclave/sealing/hpke';
import { type OpenedRequest, openRequest, type RecipientKey } from 'sui-enclave/sealing/request';
import {
  type EnclaveState,
  type OpenedSecrets,
  openSecrets,
  requireRecipient,
  type SealedSecrets,
} from 'sui-enclave/sealing/secrets';
import { bootSeed } from '../keys/seed.ts';

/** RFC 8410, section 7: PKCS #8 of an X25519 private key, up to its 32 bytes. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b656e04220420', 'hex');
/**
 * RFC 8410, section 4: SubjectPublicKeyInfo of an X25519 public key, up to its 32 bytes. Its 12 bytes are 16
 * characters in base64.
 */
const SPKI_PREFIX = Buffer.from('302a300506032b656e032100', 'hex');
const SPKI_PREFIX_BASE64 = SPKI_PREFIX.toString('base64');

/**
 * The enclave's X25519 key (RFC 7748), to which requests are sealed. Like the signing key, it is generated at
 * boot, exists only in the memory of this process, and has no accessor.
 */
export class SealingKey {
  readonly #key: AgreementKey;

  private constructor(privateKey: KeyObject) {
    this.#key = new AgreementKey(privateKey);
  }

  /** @param nsmRandom at least 32 bytes from GetRandom, which the caller wipes */
  static create(nsmRandom?: Uint8Array): SealingKey {
    const seed = bootSeed('sui-enclave ephemeral X25519 key', nsmRandom);
    try {
      return SealingKey.of(seed);
    } finally {
      seed.fill(0);
    }
  }

  /**
   * @param bytes the private key, 32 bytes, which the caller wipes. Only `create` and tests call `of`; all
   *   other code calls `create`
   */
  static of(bytes: Uint8Array): SealingKey {
    const pkcs8 = Buffer.alloc(PKCS8_PREFIX.length + KEY_SIZE);
    pkcs8.set(PKCS8_PREFIX);
    pkcs8.set(bytes, PKCS8_PREFIX.length);
    try {
      return new SealingKey(createPrivateKey({ key: pkcs8, format: 'der', type: 'pkcs8' }));
    } finally {
      pkcs8.fill(0);
    }
  }

  /** The raw public key, 32 bytes (a copy). */
  get publicKey(): Uint8Array {
    return this.#key.publicKey.slice();
  }

  /** The key for `openWith`, which `open` uses: it can agree on secrets, but can't be read. */
  get key(): Key {
    return this.#key;
  }

  /** @throws SealingError: SEALED_MALFORMED, SEALED_KEY_UNKNOWN, SEALED_ALTERED */
  open(message: Uint8Array): Promise<OpenedRequest> {
    return openRequest(message, this.#key, NODE_SUITE);
  }

  /** @throws SealingError: SEALED_KEY_UNKNOWN */
  requireRecipient(sealed: SealedSecrets): void {
    requireRecipient(sealed, this.#key);
  }

  /** @throws SealingError: SEALED_KEY_UNKNOWN, SEALED_ALTERED */
  openSecrets(sealed: SealedSecrets, state: EnclaveState): Promise<OpenedSecrets> {
    return openSecrets(sealed, state, this.#key, NODE_SUITE);
  }
}

/** The key in the form that the package `hpke` hands to its algorithms. */
class AgreementKey implements RecipientKey {
  readonly algorithm = { name: 'X25519' };
  readonly extractable = false;
  readonly type = 'private';
  /** The X25519 public key, 32 bytes. */
  readonly publicKey: Uint8Array;
  readonly #privateKey: KeyObject;

  constructor(privateKey: KeyObject) {
    this.#privateKey = privateKey;
    const spki = createPublicKey(privateKey).export({ format: 'der', type: 'spki' });
    this.publicKey = Uint8Array.from(spki.subarray(SPKI_PREFIX.length));
  }

  /** @throws an OpenSSL error for a key of low order, as RFC 9180, section 7.1.4, demands */
  agree(enc: Uint8Array): Uint8Array {
    // Use PEM in a string (RFC 7468), since Node takes more than twice as long for any other form.
    const base64 = Buffer.from(enc.buffer, enc.byteOffset, enc.byteLength).toString('base64');
    const spki = SPKI_PREFIX_BASE64 + base64;
    const publicKey = createPublicKey(`-----BEGIN PUBLIC KEY-----\n${spki}\n-----END PUBLIC KEY-----\n`);
    return diffieHellman({ privateKey: this.#privateKey, publicKey });
  }
}

const HASH_BLOCK = 64;
const HASH_SIZE = 32;
const NOTHING = new Uint8Array();

/**
 * Computes HMAC-SHA256 (RFC 2104) by two one-shot hashes, which take a sixth of createHmac's time.
 *
 * @param key at most 64 bytes. All keys of HPKE have 32 bytes or none
 */
function hmac(key: Uint8Array, message: Uint8Array): Buffer {
  if (key.length > HASH_BLOCK) throw new RangeError(`a key of HMAC has more than ${HASH_BLOCK} bytes`);
  const inner = Buffer.allocUnsafe(HASH_BLOCK + message.length).fill(0x36, 0, HASH_BLOCK);
  const outer = Buffer.allocUnsafe(HASH_BLOCK + HASH_SIZE).fill(0x5c, 0, HASH_BLOCK);
  for (let at = 0; at < key.length; at++) {
    const byte = key[at] as number;
    inner[at] = byte ^ 0x36;
    outer[at] = byte ^ 0x5c;
  }
  inner.set(message, HASH_BLOCK);
  // The hash is a string with one byte in each character, which Node makes in half the time of a Buffer.
  outer.write(hash('sha256', inner, 'binary'), HASH_BLOCK, 'binary');
  return Buffer.from(hash('sha256', outer, 'binary'), 'binary');
}

/** The key derivation function HKDF-SHA256 (RFC 5869). */
const kdf = {
  ...KDF_HKDF_SHA256(),
  Extract: async (salt: Uint8Array, ikm: Uint8Array): Promise<Uint8Array> => hmac(salt, ikm),
  Expand: async (prk: Uint8Array, info: Uint8Array, size: number): Promise<Uint8Array> => {
    const blocks: Buffer[] = [];
    for (let count = 1; (count - 1) * HASH_SIZE < size; count++) {
      blocks.push(hmac(prk, Buffer.concat([blocks.at(-1) ?? NOTHING, info, Uint8Array.of(count)])));
    }
    return blocks.length === 1 ? (blocks[0] as Buffer).subarray(0, size) : Buffer.concat(blocks, size);
  },
};

const webCryptoKem = KEM_DHKEM_X25519_HKDF_SHA256();
/** "KEM" and the KEM's identifier (RFC 9180, section 4.1). */
const KEM_SUITE_ID = Buffer.concat([encode('KEM'), Uint8Array.of(0, webCryptoKem.id)]);

/** DHKEM(X25519, HKDF-SHA256). The server needs only its Decap (RFC 9180, section 4.1). */
const kem = {
  ...webCryptoKem,
  Decap: async (enc: Uint8Array, privateKey: Key): Promise<Uint8Array> => {
    const key = privateKey as AgreementKey;
    const dh = key.agree(enc);
    const prk = await LabeledExtract(kdf, KEM_SUITE_ID, NOTHING, encode('eae_prk'), dh);
    const context = Buffer.concat([enc, key.publicKey]);
    return await LabeledExpand(kdf, KEM_SUITE_ID, prk, encode('shared_secret'), context, HASH_SIZE);
  },
};

/**
 * Seals by AES-256-GCM synchronously. Passes the key to Node as a KeyObject, since Node takes eight times as
 * long to accept bytes.
 *
 * @returns the ciphertext and its tag
 */
export function sealAesGcm(
  key: Uint8Array,
  nonce: Uint8Array,
  aad: Uint8Array,
  plaintext: Uint8Array,
): Uint8Array {
  const cipher = createCipheriv('aes-256-gcm', createSecretKey(key), nonce).setAAD(aad);
  return Buffer.concat([cipher.update(plaintext), cipher.final(), cipher.getAuthTag()]);
}

const aead = {
  ...AEAD_AES_256_GCM(),
  Seal: async (...values: Parameters<typeof sealAesGcm>): Promise<Uint8Array> => sealAesGcm(...values),
  Open: async (
    key: Uint8Array,
    nonce: Uint8Array,
    aad: Uint8Array,
    sealed: Uint8Array,
  ): Promise<Uint8Array> => {
    const end = sealed.length - TAG_SIZE;
    const cipher = createDecipheriv('aes-256-gcm', createSecretKey(key), nonce, {
      authTagLength: TAG_SIZE,
    }).setAAD(aad);
    cipher.setAuthTag(sealed.subarray(end));
    return Buffer.concat([cipher.update(sealed.subarray(0, end)), cipher.final()]);
  },
};

export const NODE_SUITE: Suite = createSuite(kem, kdf, aead);
