import { genAddressSeed, getExtendedEphemeralPublicKey } from '@mysten/sui/zklogin';
import { deriveAddress, KEY_CLAIM } from './address.ts';
import { ZkLoginError } from './errors.ts';
import { decodeJwtPayload, findInPayload, type LoginClaims, readHeader } from './jwt.ts';
import { type BigNumber, readNumber, SALT_SIZE } from './numbers.ts';
import { type Proof, type ProofRequest, readProof } from './services.ts';
import { type EpochSource, ZkLoginSession } from './session.ts';
import { createKeypair, createSigner } from './signer.ts';
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

/** Options of `login.open`, which turns a login into a session. */
export interface OpenOptions {
  /** The user's salt, 16 bytes. */
  readonly salt: BigNumber;
  /** The proving service's answer to `proofRequest` with the same salt. */
  readonly proof: Proof;
  /** Whether the address is one of the few old ones: see `legacyAddress` of deriveAddress. */
  readonly legacyAddress: boolean;
  /** Function that returns the current epoch, called before each signature: see createEpochSource. */
  readonly currentEpoch: EpochSource;
}

/** A login with a checked token, which needs a salt and a proof next. */
export class Login {
  /** Last epoch in which the session can sign. */
  readonly maxEpoch: number;
  readonly #store: SessionStore;
  readonly #nonce: string;

  /** @throws ZkLoginError: ZKLOGIN_NO_LOGIN, ZKLOGIN_STORAGE */
  constructor(store: SessionStore) {
    const { maxEpoch, nonce } = loadComplete(store);
    this.maxEpoch = maxEpoch;
    this.#nonce = nonce;
    this.#store = store;
  }

  /** The token, for the salt service. */
  get token(): string {
    return this.#load().jwt;
  }

  /** The claims that identify the user. */
  get claims(): LoginClaims {
    const { iss = '', sub = '', aud } = decodeJwtPayload(this.token);
    return { issuer: iss, subject: sub, audience: String(aud) };
  }

  /**
   * Derives the user's address from the claims and a salt.
   *
   * @throws ZkLoginError: ZKLOGIN_OPTION
   */
  address(salt: BigNumber, options: { readonly legacyAddress: boolean }): string {
    return deriveAddress({ ...this.claims, salt, legacyAddress: options?.legacyAddress });
  }

  /**
   * Returns the request for getProof.
   *
   * @throws ZkLoginError: ZKLOGIN_OPTION, ZKLOGIN_NO_LOGIN, ZKLOGIN_STORAGE
   */
  proofRequest(salt: BigNumber): ProofRequest {
    const { jwt, maxEpoch, randomness, secretKey } = this.#load();
    return {
      jwt,
      extendedEphemeralPublicKey: getExtendedEphemeralPublicKey(createKeypair(secretKey).getPublicKey()),
      maxEpoch: String(maxEpoch),
      jwtRandomness: randomness,
      salt: readNumber('salt', salt, SALT_SIZE).toString(),
      keyClaimName: KEY_CLAIM,
    };
  }

  /**
   * Opens the session that signs with this proof, and stores it in the session storage in place of the token
   * and the randomness.
   *
   * A proof doesn't reveal its ephemeral key, nonce, subject or salt. If one of these is wrong, only a
   * validator notices it, when the first transaction is sent.
   *
   * @throws ZkLoginError: ZKLOGIN_PROOF if the header or issuer of the proof differs from the token's;
   *   ZKLOGIN_OPTION, ZKLOGIN_NO_LOGIN, ZKLOGIN_STORAGE
   */
  open(options: OpenOptions): ZkLoginSession {
    const { salt, proof, legacyAddress, currentEpoch } = options ?? {};
    const { jwt, maxEpoch, secretKey } = this.#load();
    const partial = readProof(proof);
    const { value, indexMod4 } = partial.issBase64Details;
    if (partial.headerBase64 !== readHeader(jwt) || findInPayload(jwt, value) !== indexMod4) {
      throw new ZkLoginError('ZKLOGIN_PROOF', "the proof's header or issuer differs from the token's");
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
    // This refuses a proof with another substring of the token as its issuer, before anything is stored.
    createSigner(session);
    saveSession(this.#store, session);
    return new ZkLoginSession(this.#store, currentEpoch);
  }

  /** Returns the parts of the login that may be logged. */
  toJSON(): object {
    return { maxEpoch: this.maxEpoch };
  }

  /** Loads the login again, since the storage may contain another login by now. */
  #load(): CompleteLogin {
    const login = loadComplete(this.#store);
    if (login.nonce !== this.#nonce)
      throw new ZkLoginError('ZKLOGIN_NO_LOGIN', 'another login began in the meantime');
    return login;
  }
}

function loadComplete(store: SessionStore): CompleteLogin {
  const login = loadLogin(store);
  if (login.stage !== 'complete')
    throw new ZkLoginError('ZKLOGIN_NO_LOGIN', 'the login is not complete: call completeLogin');
  return login;
}

/**
 * Returns the login that completeLogin finished before the page was reloaded.
 *
 * @throws ZkLoginError: ZKLOGIN_NO_LOGIN, ZKLOGIN_STORAGE
 */
export function resumeLogin({ storage }: { readonly storage?: SessionStore } = {}): Login {
  return new Login(loginStore(storage));
}

/**
 * Cancels the login that was begun, whether it is complete or not: removes its key, randomness and token.
 * Keeps an open session.
 *
 * @throws ZkLoginError: ZKLOGIN_STORAGE
 */
export function cancelLogin({ storage }: { readonly storage?: SessionStore } = {}): void {
  removeLogin(sessionStore(storage));
}
