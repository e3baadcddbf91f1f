import type { ClientWithCoreApi } from '@mysten/sui/client';
import { type Transaction, TransactionDataBuilder } from '@mysten/sui/transactions';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { failureOf, sendErrorOf, suiErrorOf } from '../sui/failures.ts';
import { epochNumber } from './begin.ts';
import { ZkLoginError } from './errors.ts';
import { signerOf } from './signer.ts';
import {
  loadSession,
  noSession,
  type OpenSession,
  removeSession,
  type SessionStore,
  sessionStore,
} from './storage.ts';

/** The message of validators for a proof that doesn't verify, whatever the cause (fastcrypto-zkp). */
const PROOF_REFUSED = 'Groth16 proof verify failed';

/** The current epoch of the network. */
export type EpochSource = () => Promise<number | bigint | string> | number | bigint | string;

export type SessionState = 'usable' | 'expired';

/** Gets the current epoch from a node. */
export function epochOf(client: ClientWithCoreApi): EpochSource {
  return async () => {
    const { systemState } = await client.core.getCurrentSystemState().catch((error: unknown) => {
      throw suiErrorOf(error);
    });
    return systemState.epoch;
  };
}

/**
 * Signs with the ephemeral key and the proof, any number of times, until the epoch passes maxEpoch. The object holds
 * neither: each call reads them from the session's storage.
 */
export class ZkLoginSession {
  readonly address: string;
  readonly maxEpoch: number;
  readonly #store: SessionStore;
  readonly #currentEpoch: EpochSource;

  /** @throws ZkLoginError: ZKLOGIN_NO_SESSION, ZKLOGIN_STORAGE, ZKLOGIN_OPTION */
  constructor(store: SessionStore, currentEpoch: EpochSource) {
    if (typeof currentEpoch !== 'function') {
      throw new ZkLoginError(
        'ZKLOGIN_OPTION',
        'currentEpoch must be a function that returns the current epoch: see epochOf',
      );
    }
    const { address, maxEpoch } = loadSession(store);
    this.address = address;
    this.maxEpoch = maxEpoch;
    this.#store = store;
    this.#currentEpoch = currentEpoch;
  }

  /** @throws ZkLoginError: ZKLOGIN_NO_SESSION when the session was ended or replaced */
  async state(): Promise<SessionState> {
    const { maxEpoch } = this.#load();
    return (await this.#epoch()) > maxEpoch ? 'expired' : 'usable';
  }

  /**
   * The composite signature of a transaction.
   *
   * @param bytes BCS of the transaction's data; its sender must be the session's address
   * @returns base64, as nodes expect it
   * @throws ZkLoginError: ZKLOGIN_EXPIRED, ZKLOGIN_NO_SESSION, ZKLOGIN_SENDER
   */
  async signTransaction(bytes: Uint8Array): Promise<string> {
    const session = await this.#usable();
    requireSender(bytes, session.address);
    const { signature } = await signerOf(session).signTransaction(bytes);
    return signature;
  }

  /**
   * Sets the session's address as the sender of a transaction, then builds, signs and executes it. Calling this again
   * with the same `Transaction` is safe: it sends the same bytes, which the chain executes once. A newly created
   * transaction is another one.
   *
   * @returns the digest
   * @throws ZkLoginError: ZKLOGIN_EXPIRED, ZKLOGIN_NO_SESSION, ZKLOGIN_PROOF when the network refuses the proof;
   *   UnknownOutcomeError with the digest when no answer came; SuiError when the transaction can't be built, or failed
   */
  async execute(transaction: Transaction, client: ClientWithCoreApi): Promise<string> {
    const { address } = await this.#usable();
    transaction.setSender(address);
    const bytes = await transaction.build({ client }).catch((error: unknown) => {
      throw suiErrorOf(error);
    });
    const signatures = [await this.signTransaction(bytes)];
    const digest = TransactionDataBuilder.getDigestFromBytes(bytes);
    const result = await client.core
      .executeTransaction({ transaction: bytes, signatures })
      .catch(async (error: unknown) => {
        const failure = sendErrorOf(error, digest);
        // An earlier call without an answer may have executed these bytes: then the transaction itself changed or
        // deleted its objects.
        if (failure.code === 'SUI_OBJECT_CHANGED' || failure.code === 'SUI_OBJECT_NOT_FOUND') {
          const executed = await client.core.getTransaction({ digest }).catch(() => undefined);
          if (executed) return executed;
        }
        if (!failure.message.includes(PROOF_REFUSED)) throw failure;
        throw new ZkLoginError(
          'ZKLOGIN_PROOF',
          `the network refuses the proof (${PROOF_REFUSED}): it is for another ephemeral key, salt or nonce, so log in again; or it was made with the keys of another network`,
          { cause: failure },
        );
      });
    const { status } = result.Transaction ?? result.FailedTransaction;
    if (status.error !== null) throw failureOf(status.error);
    return digest;
  }

  /** Logs the user out: removes the key and the proof, and a login that was begun in the meantime. */
  end(): void {
    removeSession(this.#store);
  }

  toJSON(): object {
    return { address: this.address, maxEpoch: this.maxEpoch };
  }

  /** The storage may now hold another login, for which this object must not sign. */
  #load(): OpenSession {
    const session = loadSession(this.#store);
    if (session.address !== this.address || session.maxEpoch !== this.maxEpoch) throw noSession();
    return session;
  }

  async #usable(): Promise<OpenSession> {
    const session = this.#load();
    const epoch = await this.#epoch();
    if (epoch > session.maxEpoch) {
      throw new ZkLoginError(
        'ZKLOGIN_EXPIRED',
        `epoch ${epoch} is past maxEpoch ${session.maxEpoch}: a new ephemeral key pair and a new proof are needed; call beginLogin`,
      );
    }
    return session;
  }

  async #epoch(): Promise<number> {
    return epochNumber('currentEpoch', await this.#currentEpoch());
  }
}

/** The session that was opened before the page was reloaded. @throws ZkLoginError: ZKLOGIN_NO_SESSION, ZKLOGIN_STORAGE */
export function resumeSession(options: {
  readonly currentEpoch: EpochSource;
  readonly storage?: SessionStore;
}): ZkLoginSession {
  return new ZkLoginSession(sessionStore(options?.storage), options?.currentEpoch);
}

/** Detects a wrong sender here, before a validator does. */
function requireSender(bytes: Uint8Array, address: string): void {
  let sender: string | null | undefined;
  try {
    ({ sender } = TransactionDataBuilder.fromBytes(bytes).snapshot());
  } catch {
    throw new ZkLoginError('ZKLOGIN_OPTION', 'the bytes are not the BCS of a transaction');
  }
  if (sender == null || normalizeSuiAddress(sender) !== address) {
    throw new ZkLoginError(
      'ZKLOGIN_SENDER',
      `the sender of the transaction is not ${address}: set it before you build the bytes`,
    );
  }
}
