import { genAddressSeed, getExtendedEphemeralPublicKey } from '@mysten/sui/zklogin';
import { deriveAddress, KEY_CLAIM } from './address.ts';
import { NoLoginError, ProofMismatchError } from './errors.ts';
import { decodeJwtPayload, findInPayload, headerOf, type LoginClaims } from './jwt.ts';
import { type BigNumber, readNumber, SALT_SIZE } from './numbers.ts';
import { type Proof, type ProofRequest, readProof } from './services.ts';
import { type EpochSource, ZkLoginSession } from './session.ts';
import { keypairOf, signerOf } from './signer.ts';
import {
  type CompleteLogin,
  loadLogin,
  loginStore,
  type OpenSession,
  removeLogin,
  type SessionStore,
  saveSession,
  sessionStore,
} from './storage.ts';

export interface OpenOptions {
  readonly salt: BigNumber;
  /** What the proving service answered to `proofRequest` with the same salt. */
  readonly proof: Proof;
  /** As in deriveAddress. */
  readonly legacyAddress: boolean;
  /** Asked before each signature: see epochOf. */
  readonly currentEpoch: EpochSource;
}

/** A login whose token is there and checked; salt and proof are what it needs next. */
export class Login {
  readonly maxEpoch: number;
  readonly #store: SessionStore;
  readonly #nonce: string;

  /** @throws NoLoginError, StorageError */
  constructor(store: SessionStore) {
    const { maxEpoch, nonce } = loadComplete(store);
    this.maxEpoch = maxEpoch;
    this.#nonce = nonce;
    this.#store = store;
  }

  /** For the salt service. */
  get token(): string {
    return this.#load().jwt;
  }

  get claims(): LoginClaims {
    const { iss = '', sub = '', aud } = decodeJwtPayload(this.token);
    return { issuer: iss, subject: sub, audience: String(aud) };
  }

  /** @throws InvalidOptionError */
  address(salt: BigNumber, options: { readonly legacyAddress: boolean }): string {
    return deriveAddress({ ...this.claims, salt, legacyAddress: options?.legacyAddress });
  }

  /** For getProof. @throws InvalidOptionError */
  proofRequest(salt: BigNumber): ProofRequest {
    const { jwt, maxEpoch, randomness, secretKey } = this.#load();
    return {
      jwt,
      extendedEphemeralPublicKey: getExtendedEphemeralPublicKey(keypairOf(secretKey).getPublicKey()),
      maxEpoch: String(maxEpoch),
      jwtRandomness: randomness,
      salt: readNumber('salt', salt, SALT_SIZE).toString(),
      keyClaimName: KEY_CLAIM,
    };
  }

  /**
   * The session that signs with this proof, kept in the session's storage; the token and the randomness are
   * removed from there.
   *
   * A proof tells neither its ephemeral key nor nonce, subject or salt: only whoever verifies it finds those
   * wrong, a validator when the first transaction is sent.
   *
   * @throws ProofMismatchError when it shows another header or issuer than the token; InvalidOptionError
   */
  open(options: OpenOptions): ZkLoginSession {
    const { salt, proof, legacyAddress, currentEpoch } = options ?? {};
    const { jwt, maxEpoch, secretKey } = this.#load();
    const partial = readProof(proof);
    const { value, indexMod4 } = partial.issBase64Details;
    if (partial.headerBase64 !== headerOf(jwt) || findInPayload(jwt, value) !== indexMod4) {
      throw new ProofMismatchError('the proof shows another header or issuer than the token of this login');
    }
    const address = this.address(salt, { legacyAddress });
    const { subject, audience } = this.claims;
    const number = readNumber('salt', salt, SALT_SIZE);
    const addressSeed = genAddressSeed(number, KEY_CLAIM, subject, audience).toString();
    const session: OpenSession = {
      stage: 'open',
      address,
      legacyAddress,
      maxEpoch,
      secretKey,
      inputs: { ...partial, addressSeed },
    };
    // Refuses what stands in the token, but not as its issuer, before anything is kept.
    signerOf(session);
    saveSession(this.#store, session);
    return new ZkLoginSession(this.#store, currentEpoch);
  }

  toJSON(): object {
    return { maxEpoch: this.maxEpoch };
  }

  /** What is kept now may be another login. */
  #load(): CompleteLogin {
    const login = loadComplete(this.#store);
    if (login.nonce !== this.#nonce) throw new NoLoginError('another login was begun since');
    return login;
  }
}

function loadComplete(store: SessionStore): CompleteLogin {
  const login = loadLogin(store);
  if (login.stage !== 'complete') throw new NoLoginError('the login is not complete: call completeLogin');
  return login;
}

/** The login that completeLogin finished before the page was loaded again. @throws NoLoginError, StorageError */
export function resumeLogin({ storage }: { readonly storage?: SessionStore } = {}): Login {
  return new Login(loginStore(storage));
}

/**
 * Gives up the login that was begun, complete or not: its key, randomness and token are removed. An open
 * session is kept.
 *
 * @throws StorageError
 */
export function cancelLogin({ storage }: { readonly storage?: SessionStore } = {}): void {
  removeLogin(sessionStore(storage));
}
