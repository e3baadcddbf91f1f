import type { ClientWithCoreApi } from '@mysten/sui/client';
import { type Transaction, TransactionDataBuilder } from '@mysten/sui/transactions';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { failureOf, sendErrorOf, suiErrorOf } from '../sui/failures.ts';
import { epochNumber } from './begin.ts';
import {
  InvalidOptionError,
  NoSessionError,
  ProofMismatchError,
  SenderError,
  SessionExpiredError,
} from './errors.ts';
import { signerOf } from './signer.ts';
import { loadSession, type OpenSession, removeSession, type SessionStore, sessionStore } from './storage.ts';

/** What validators say of a proof that does not verify, whatever the cause (fastcrypto-zkp). */
const PROOF_REFUSED = 'Groth16 proof verify failed';

/** The current epoch of the network. */
export type EpochSource = () => Promise<number | bigint | string> | number | bigint | string;

export type SessionState = 'usable' | 'expired';

/** Asks a node. */
export function epochOf(client: ClientWithCoreApi): EpochSource {
  return async () => {
    const { systemState } = await client.core.getCurrentSystemState().catch((error: unknown) => {
      throw suiErrorOf(error);
    });
    return systemState.epoch;
  };
}

/**
 * Signs with the ephemeral key and the proof, any number of times, until the epoch passes maxEpoch. It holds
 * neither itself: each call takes them from the session's storage.
 */
export class ZkLoginSession {
  readonly address: string;
  readonly maxEpoch: number;
  readonly #store: SessionStore;
  readonly #currentEpoch: EpochSource;

  /** @throws NoSessionError, StorageError */
  constructor(store: SessionStore, currentEpoch: EpochSource) {
    if (typeof currentEpoch !== 'function') {
      throw new InvalidOptionError(
        'currentEpoch must be a function that tells the current epoch: see epochOf',
      );
    }
    const { address, maxEpoch } = loadSession(store);
    this.address = address;
    this.maxEpoch = maxEpoch;
    this.#store = store;
    this.#currentEpoch = currentEpoch;
  }

  /** @throws NoSessionError when the key pair is not there any more */
  async state(): Promise<SessionState> {
    const { maxEpoch } = this.#load();
    return (await this.#epoch()) > maxEpoch ? 'expired' : 'usable';
  }

  /**
   * The composite signature of a transaction.
   *
   * @param bytes BCS of the transaction's data; its sender must be the session's address
   * @returns base64, as nodes take it beside the bytes
   * @throws SessionExpiredError, NoSessionError, SenderError
   */
  async signTransaction(bytes: Uint8Array): Promise<string> {
    const session = await this.#usable();
    requireSender(bytes, session.address);
    const { signature } = await signerOf(session).signTransaction(bytes);
    return signature;
  }

  /**
   * Builds a transaction, with the session's address as its sender whatever it was, signs and executes it.
   * To call this again with the same `Transaction` is safe: it sends the same bytes, which the chain executes
   * once. A transaction that is made anew is another one.
   *
   * @returns its digest
   * @throws SessionExpiredError, NoSessionError; ProofMismatchError when the network refuses the proof;
   *   UnknownOutcomeError with the digest when no answer came; SuiError when it can't be built, or failed
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
        // These bytes may have been executed by an earlier call that got no answer: then they changed, or
        // took away, their own objects.
        if (failure.code === 'SUI_OBJECT_CHANGED' || failure.code === 'SUI_OBJECT_NOT_FOUND') {
          const executed = await client.core.getTransaction({ digest }).catch(() => undefined);
          if (executed) return executed;
        }
        if (!failure.message.includes(PROOF_REFUSED)) throw failure;
        throw new ProofMismatchError(
          `the network refuses the proof (${PROOF_REFUSED}): it is of another ephemeral key, salt or nonce, so log in again; or it was made with the keys of another network`,
          { cause: failure },
        );
      });
    const { status } = result.Transaction ?? result.FailedTransaction;
    if (status.error !== null) throw failureOf(status.error);
    return digest;
  }

  /** The user logs out: removes key and proof, and a login that was begun since. */
  end(): void {
    removeSession(this.#store);
  }

  toJSON(): object {
    return { address: this.address, maxEpoch: this.maxEpoch };
  }

  /** What is kept now may be of another login, which this object must not sign for. */
  #load(): OpenSession {
    const session = loadSession(this.#store);
    if (session.address !== this.address || session.maxEpoch !== this.maxEpoch) throw new NoSessionError();
    return session;
  }

  async #usable(): Promise<OpenSession> {
    const session = this.#load();
    const epoch = await this.#epoch();
    if (epoch > session.maxEpoch) throw new SessionExpiredError(epoch, session.maxEpoch);
    return session;
  }

  async #epoch(): Promise<number> {
    return epochNumber('currentEpoch', await this.#currentEpoch());
  }
}

/** The session that was opened before the page was loaded again. @throws NoSessionError, StorageError */
export function resumeSession(options: {
  readonly currentEpoch: EpochSource;
  readonly storage?: SessionStore;
}): ZkLoginSession {
  return new ZkLoginSession(sessionStore(options?.storage), options?.currentEpoch);
}

/** Whoever has another sender sign finds out here, not at a validator. */
function requireSender(bytes: Uint8Array, address: string): void {
  let sender: string | null | undefined;
  try {
    ({ sender } = TransactionDataBuilder.fromBytes(bytes).snapshot());
  } catch {
    throw new InvalidOptionError('the bytes are no BCS of a transaction');
  }
  if (sender == null || normalizeSuiAddress(sender) !== address) {
    throw new SenderError(`the transaction's sender is not ${address}: set it before you build the bytes`);
  }
}
