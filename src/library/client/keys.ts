/** Stores the keys of attested enclaves, and finds the key that signed an answer. */
import { bytesToHex, hexToBytes } from '@noble/curves/utils.js';
import {
  AttestationError,
  readUserData,
  type VerifiedAttestation,
  verifyAttestation,
} from '../attestation/index.ts';
import { abortable } from '../waiting.ts';
import type { ReceivedAnswer } from './answer.ts';
import { fetchAttestation, getAttestedKey } from './attestation.ts';
import { verifyEd25519 } from './ed25519.ts';
import { ClientError } from './errors.ts';
import type { Http } from './http.ts';
import type { Requirements, Trust } from './trust.ts';

/** The keys of an attested enclave. */
export interface EnclaveKeys {
  /** The Ed25519 public key in hexadecimal. */
  readonly hex: string;
  /** The enclave's Ed25519 public key, 32 bytes. */
  readonly publicKey: Uint8Array;
  /** The enclave's X25519 public key, 32 bytes; undefined unless requests are sealed. */
  readonly sealingKey: Uint8Array | undefined;
  readonly attestation: VerifiedAttestation;
  /** Time of the attestation, in milliseconds since 1970. */
  readonly at: number;
  /** Version of the requirements under which the enclave was attested. */
  readonly version: bigint;
  /** Number of messages in a row that were sealed to this key and reached another enclave. */
  misses: number;
}

export interface KeysOptions {
  readonly http: Http;
  readonly trust: Trust;
  readonly roots: readonly Uint8Array[] | undefined;
  readonly sealed: boolean;
  readonly maxAgeMs: number;
  readonly now: () => number;
}

/** Maximum number of known keys. If more enclaves share one URL, some calls need an attestation. */
const MAX_KEYS = 16;
/** Maximum number of attestations for one answer. */
const MAX_ATTESTATIONS = 16;

export class KnownKeys {
  readonly #options: KeysOptions;
  /** The attested keys by Ed25519 key, the latest attested last. */
  readonly #keys = new Map<string, EnclaveKeys>();
  #attesting: Promise<EnclaveKeys> | undefined;

  constructor(options: KeysOptions) {
    this.#options = options;
  }

  forget(): void {
    this.#keys.clear();
  }

  /**
   * Returns the keys that are trusted now, the latest attested first. Attests an enclave if no
   * key is trusted.
   */
  async findTrusted(signal: AbortSignal | undefined): Promise<EnclaveKeys[]> {
    const { version } = await abortable(this.#options.trust.current(), signal);
    const now = this.#options.now();
    for (const [hex, key] of this.#keys) {
      const age = now - key.at;
      // A negative age means that the clock was set back, and that the real age is unknown.
      const isTrusted = age >= 0 && age <= this.#options.maxAgeMs && key.version === version;
      if (!isTrusted) this.#keys.delete(hex);
    }
    return this.#keys.size > 0 ? [...this.#keys.values()].reverse() : [await this.attest(signal)];
  }

  /**
   * Attests the enclave that answers. Concurrent calls share one attestation.
   *
   * @throws ClientError, AttestationError
   */
  async attest(signal: AbortSignal | undefined): Promise<EnclaveKeys> {
    this.#attesting ??= this.#attestOnce().finally(() => {
      this.#attesting = undefined;
    });
    return await abortable(this.#attesting, signal);
  }

  async #attestOnce(): Promise<EnclaveKeys> {
    const { http, trust, sealed, now } = this.#options;
    const requirements = await trust.current();
    const { document, nonce } = await fetchAttestation(http);
    const at = now();
    const { attestation, version } = await this.#verify(document, nonce, at, requirements);
    const publicKey = getAttestedKey(attestation);
    const hex = bytesToHex(publicKey);
    const sealingKey = sealed ? readUserData(attestation.document).sealingKey : undefined;
    const { misses = 0 } = this.#keys.get(hex) ?? {};
    const key = { hex, publicKey, sealingKey, attestation, at, version, misses };
    this.#keys.delete(hex);
    this.#keys.set(hex, key);
    const [oldest = hex] = this.#keys.keys();
    if (this.#keys.size > MAX_KEYS) this.#keys.delete(oldest);
    return key;
  }

  /**
   * Verifies a document. If the requirements have changed in the meantime, verifies it by the new ones too.
   */
  async #verify(
    document: Uint8Array,
    nonce: Uint8Array,
    now: number,
    requirements: Requirements,
  ): Promise<{ attestation: VerifiedAttestation; version: bigint }> {
    const { trust, roots } = this.#options;
    const verify = async ({ policy, version }: Requirements) => {
      const options = { now, policy: { ...policy, nonce }, ...(roots && { roots }) };
      return { attestation: await verifyAttestation(document, options), version };
    };
    try {
      return await verify(requirements);
    } catch (error) {
      if (!(error instanceof AttestationError) || error.code !== 'POLICY_PCRS') throw error;
      const renewed = await trust.renewed(requirements);
      if (renewed === null) throw error;
      return await verify(renewed);
    }
  }

  /**
   * Finds the key that signed an answer. Only this method decides which key that is. Tries the key that the
   * hint names, if it is known, then the other known keys, then a key that is registered on chain, and then
   * keys from new attestations.
   *
   * @param hint the key that the answer claims to be signed with, in hex: anyone on the path can have written
   *   it
   * @returns the key that signed
   * @throws ClientError: CLIENT_SIGNATURE; or the error of the last attestation that failed
   */
  async findSigner(
    answer: ReceivedAnswer<unknown>,
    hint: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array> {
    const trustedKeys = await this.findTrusted(signal);
    const hintedIndex = trustedKeys.findIndex(({ hex }) => hex === hint);
    if (hintedIndex > 0) trustedKeys.unshift(...trustedKeys.splice(hintedIndex, 1));
    for (const { publicKey } of trustedKeys) if (await isSignedBy(publicKey, answer)) return publicKey;
    // The hint names a known key, which did not sign this answer, so another attestation won't help.
    if (hintedIndex >= 0) throw notSigned();
    const registered =
      hint === undefined ? undefined : await this.#findRegisteredSigner(answer, hint, signal);
    return registered ?? (await this.#attestSigner(answer, trustedKeys, hint, signal));
  }

  async #findRegisteredSigner(
    answer: ReceivedAnswer<unknown>,
    hint: string,
    signal: AbortSignal | undefined,
  ) {
    const publicKey = hexToBytes(hint);
    // Anyone can invent hints, so the signature is checked first: this check needs no request to a node.
    if (!(await isSignedBy(publicKey, answer))) return undefined;
    const isVouchedFor = await abortable(this.#options.trust.vouchesFor(publicKey), signal);
    return isVouchedFor ? publicKey : undefined;
  }

  /**
   * Attests until it reaches the enclave that signed. A balancer may route each attestation to another
   * enclave.
   */
  async #attestSigner(
    answer: ReceivedAnswer<unknown>,
    trustedKeys: readonly EnclaveKeys[],
    hint: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array> {
    const triedKeys = new Set(trustedKeys.map(({ hex }) => hex));
    const { policy } = await abortable(this.#options.trust.current(), signal);
    // Each new key shows that there may be more enclaves.
    const maxAttestations = () =>
      policy.publicKey ? 1 : Math.min(MAX_ATTESTATIONS, 2 * (triedKeys.size + 1));
    let failure: unknown;
    for (let attempts = 0; attempts < maxAttestations(); attempts++) {
      const key = await this.attest(signal).catch((error: unknown) => {
        failure = error;
      });
      signal?.throwIfAborted();
      if (!key || triedKeys.has(key.hex)) continue;
      if (await isSignedBy(key.publicKey, answer)) return key.publicKey;
      if (key.hex === hint) throw notSigned();
      triedKeys.add(key.hex);
    }
    throw failure ?? notSigned();
  }

  /**
   * Returns a key to seal a message to. The key is chosen at random, since a balancer may route the message
   * to any enclave. Each message in a row that missed the enclave of a key makes this key less likely.
   */
  async pickSealingKey(signal: AbortSignal | undefined): Promise<EnclaveKeys> {
    const trustedKeys = await this.findTrusted(signal);
    const weightOf = ({ misses }: EnclaveKeys) => 4 ** -misses;
    let at = Math.random() * trustedKeys.reduce((sum, key) => sum + weightOf(key), 0);
    for (const key of trustedKeys) {
      at -= weightOf(key);
      if (at <= 0) return key;
    }
    return trustedKeys[0] as EnclaveKeys;
  }

  get size(): number {
    return this.#keys.size;
  }
}

async function isSignedBy(publicKey: Uint8Array, { signature, signedBytes }: ReceivedAnswer<unknown>) {
  return await verifyEd25519(publicKey, signature, signedBytes);
}

function notSigned(): ClientError {
  const message =
    "the answer's signature does not match its data and the attested key: do not use the answer. If the schema's fields differ from the application's in type or order, no answer matches: compare the schema with schema.json";
  return new ClientError('CLIENT_SIGNATURE', message);
}
