import type { ClientWithCoreApi, SuiClientTypes } from '@mysten/sui/client';
import { type IntentScope, type SignatureWithBytes, Signer } from '@mysten/sui/cryptography';
import { type Transaction, TransactionDataBuilder } from '@mysten/sui/transactions';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import type { ZkLoginPublicIdentifier } from '@mysten/sui/zklogin';
import type { SuiError } from '../sui/errors.ts';
import { toSuiError } from '../sui/failures.ts';
import { executeSigned, sendTransaction } from '../sui/send.ts';
import { readEpoch } from './begin.ts';
import { buildBytes, copyBytes } from './bytes.ts';
import { ZkLoginError } from './errors.ts';
import { createSigner } from './signer.ts';
import { completeWithSponsor, type Sponsor, type SponsoredTransaction } from './sponsor.ts';
import {
  createNoSessionError,
  loadSession,
  type OpenSession,
  removeSession,
  type SessionStore,
  sessionStore,
} from './storage.ts';

/** The message of validators for a proof that doesn't verify, whatever the cause (fastcrypto-zkp). */
const PROOF_REFUSED = 'Groth16 proof verify failed';

/** A function that returns the current epoch of the network. */
export type EpochSource = () => Promise<number | bigint | string> | number | bigint | string;

/** State of a session: whether it can sign now. */
export type SessionState = 'usable' | 'expired';

/** Returns a function that reads the current epoch from a node. */
export function createEpochSource(client: ClientWithCoreApi): EpochSource {
  return async () => {
    const { systemState } = await client.core.getCurrentSystemState().catch((error: unknown) => {
      throw toSuiError(error);
    });
    return systemState.epoch;
  };
}

/** Options of `execute`, which sends a transaction. */
export interface ExecuteOptions {
  /** Payer of the gas. Default: the session's address. */
  readonly sponsor?: Sponsor;
  /**
   * Function that is called with the BCS of the transaction's data before it is signed, after the sponsor has
   * completed it. A rejection ends the call with the same error, and nothing is signed.
   */
  readonly approve?: (transaction: Uint8Array) => Promise<void>;
  /** How long to look up the transaction after an unclear answer, in milliseconds. Default: 10,000. */
  readonly lookUpMs?: number;
  /**
   * Time limit in milliseconds within which the node's reads must show the transaction, so that the next one
   * can be built. With 0, the call does not wait for that. Default: 60,000.
   */
  readonly waitMs?: number;
  /** Signal that ends the wait for the node. The transaction may be executed nonetheless. */
  readonly signal?: AbortSignal;
}

/**
 * Signs with the ephemeral key and the proof, any number of times, until the epoch passes maxEpoch. The
 * object contains neither key nor proof: each call reads them from the session's storage. It is a `Signer` of
 * `@mysten/sui`, for transactions and personal messages.
 */
export class ZkLoginSession extends Signer {
  /** Address of the user on Sui. */
  readonly address: string;
  /** Last epoch in which the session can sign. */
  readonly maxEpoch: number;
  readonly #store: SessionStore;
  readonly #currentEpoch: EpochSource;
  /** The bytes that a sponsor signed for a transaction, so that a retry sends the same bytes. */
  readonly #sponsored = new WeakMap<Transaction, SponsoredTransaction>();

  /** @throws ZkLoginError: ZKLOGIN_NO_SESSION, ZKLOGIN_STORAGE, ZKLOGIN_OPTION */
  constructor(store: SessionStore, currentEpoch: EpochSource) {
    super();
    if (typeof currentEpoch !== 'function') {
      throw new ZkLoginError(
        'ZKLOGIN_OPTION',
        'currentEpoch must be a function that returns the current epoch: see createEpochSource',
      );
    }
    const { address, maxEpoch } = loadSession(store);
    this.address = address;
    this.maxEpoch = maxEpoch;
    this.#store = store;
    this.#currentEpoch = currentEpoch;
  }

  /**
   * Returns whether the session can sign in the present epoch, or has expired.
   *
   * @throws ZkLoginError: ZKLOGIN_NO_SESSION if the session was ended or replaced
   */
  async state(): Promise<SessionState> {
    const { maxEpoch } = this.#load();
    return (await this.#readEpoch()) > maxEpoch ? 'expired' : 'usable';
  }

  override getKeyScheme(): 'ZkLogin' {
    return 'ZkLogin';
  }

  /**
   * Returns the public key of the zkLogin address, for `@mysten/sui`.
   *
   * @throws ZkLoginError: ZKLOGIN_NO_SESSION, ZKLOGIN_STORAGE
   */
  override getPublicKey(): ZkLoginPublicIdentifier {
    return createSigner(this.#load()).getPublicKey();
  }

  /** Returns the address, even after the session has ended. */
  override toSuiAddress(): string {
    return this.address;
  }

  /**
   * Always rejects, since zkLogin can't sign bytes without an intent.
   *
   * @throws ZkLoginError: ZKLOGIN_OPTION
   */
  override async sign(): Promise<never> {
    throw createScopeError();
  }

  /**
   * Signs for `signTransaction` and `signPersonalMessage`. Returns the bytes and the composite signature, in
   * base64 as nodes expect them. The sender of a transaction must be the session's address.
   *
   * @throws ZkLoginError: ZKLOGIN_EXPIRED, ZKLOGIN_NO_SESSION, ZKLOGIN_STORAGE, ZKLOGIN_SENDER,
   *   ZKLOGIN_OPTION for another intent
   */
  override async signWithIntent(bytes: Uint8Array, intent: IntentScope): Promise<SignatureWithBytes> {
    // Copy the bytes, since the caller could change its own after the check of the sender.
    const copy = copyBytes('bytes', bytes);
    const session = await this.#loadUsable();
    if (intent === 'TransactionData') requireSender(copy, session.address);
    else if (intent !== 'PersonalMessage') throw createScopeError();
    return await createSigner(session).signWithIntent(copy, intent);
  }

  /**
   * Returns the composite signature of a message. To verify it, call `verifyPersonalMessageSignature` of
   * `@mysten/sui/verify` with a client, since only a node can check the proof.
   *
   * @throws ZkLoginError: ZKLOGIN_EXPIRED, ZKLOGIN_NO_SESSION, ZKLOGIN_STORAGE, ZKLOGIN_OPTION
   */
  override async signPersonalMessage(message: Uint8Array): Promise<SignatureWithBytes> {
    // Copy the message, since the returned bytes must be the signed bytes.
    return await super.signPersonalMessage(copyBytes('message', message));
  }

  /**
   * Builds, signs and executes a transaction, as every `Signer` does: it returns a failed transaction, for
   * which `execute` throws an error. It does not wait until the node's reads show the transaction: call
   * `client.core.waitForTransaction` for that.
   *
   * @throws the errors of `execute`; ZkLoginError: ZKLOGIN_SENDER if the transaction has another sender
   */
  override async signAndExecuteTransaction({
    transaction,
    client,
  }: Parameters<Signer['signAndExecuteTransaction']>[0]) {
    await this.#loadUsable();
    transaction.setSenderIfNotSet(this.address);
    const bytes = await buildBytes(transaction, client);
    const { signature } = await this.signTransaction(bytes);
    const include = { transaction: true, effects: true } as const;
    return await executeSigned(client, { transaction: bytes, signatures: [signature], include }).catch(
      (error: SuiError) => {
        throw toProofError(error);
      },
    );
  }

  /**
   * Sets the session's address as the sender of a transaction, then builds, signs and executes it, and waits
   * until the node shows it. Calling this again with the same `Transaction` is safe: it sends the same bytes,
   * which the chain executes once. A newly created `Transaction` is another transaction to the chain.
   *
   * @returns the transaction as the client describes it, with digest, effects and events
   * @throws ZkLoginError: ZKLOGIN_EXPIRED, ZKLOGIN_NO_SESSION, ZKLOGIN_PROOF if the network refuses the
   *   proof, ZKLOGIN_SPONSOR if the sponsor answers with another transaction; UnknownOutcomeError with the
   *   digest if the node's answer leaves open whether it was executed, NotVisibleError with the digest if it
   *   was executed but the node does not show it in time; SuiError if the transaction can't be built, or
   *   failed
   */
  async execute(
    transaction: Transaction,
    client: ClientWithCoreApi,
    { sponsor, approve, lookUpMs, waitMs, signal }: ExecuteOptions = {},
  ): Promise<SuiClientTypes.Transaction<{ effects: true; events: true }>> {
    const { address } = await this.#loadUsable();
    transaction.setSender(address);
    const sponsored =
      sponsor === undefined
        ? null
        : await this.#completeWithSponsor(transaction, client, { sponsor, address });
    const bytes = sponsored?.transaction ?? (await buildBytes(transaction, client));
    // Pass a copy of the transaction, since exactly the approved bytes must be signed.
    await approve?.(bytes.slice());
    const { signature } = await this.signTransaction(bytes);
    const signatures = sponsored === null ? [signature] : [signature, sponsored.signature];
    const include = { effects: true, events: true } as const;
    return await sendTransaction(client, {
      transaction: bytes,
      signatures,
      include,
      ...(lookUpMs !== undefined && { lookUpMs }),
      ...(waitMs !== undefined && { waitMs }),
      ...(signal && { signal }),
    }).catch((error: SuiError) => {
      throw toProofError(error);
    });
  }

  async #completeWithSponsor(
    transaction: Transaction,
    client: ClientWithCoreApi,
    { sponsor, address }: { sponsor: Sponsor; address: string },
  ): Promise<SponsoredTransaction> {
    const earlier = this.#sponsored.get(transaction);
    const sponsored = await completeWithSponsor(sponsor, { transaction, client, sender: address, earlier });
    this.#sponsored.set(transaction, sponsored);
    return sponsored;
  }

  /** Logs the user out: removes the key and the proof, and a login that was begun in the meantime. */
  end(): void {
    removeSession(this.#store);
  }

  /** Returns the parts of the session that may be logged. */
  toJSON(): object {
    return { address: this.address, maxEpoch: this.maxEpoch };
  }

  /** Loads the session. The storage may hold another login by now, for which this object must not sign. */
  #load(): OpenSession {
    const session = loadSession(this.#store);
    if (session.address !== this.address || session.maxEpoch !== this.maxEpoch) throw createNoSessionError();
    return session;
  }

  async #loadUsable(): Promise<OpenSession> {
    this.#load();
    const epoch = await this.#readEpoch();
    // The session may have been ended or replaced while the node returned the epoch.
    const session = this.#load();
    if (epoch > session.maxEpoch) {
      throw new ZkLoginError(
        'ZKLOGIN_EXPIRED',
        `epoch ${epoch} is past maxEpoch ${session.maxEpoch}: a new ephemeral key pair and a new proof are needed; call beginLogin`,
      );
    }
    return session;
  }

  async #readEpoch(): Promise<number> {
    return readEpoch('currentEpoch', await this.#currentEpoch());
  }
}

/**
 * Returns the session that was opened before the page was reloaded.
 *
 * @throws ZkLoginError: ZKLOGIN_NO_SESSION, ZKLOGIN_STORAGE
 */
export function resumeSession(options: {
  readonly currentEpoch: EpochSource;
  readonly storage?: SessionStore;
}): ZkLoginSession {
  return new ZkLoginSession(sessionStore(options?.storage), options?.currentEpoch);
}

function createScopeError(): ZkLoginError {
  return new ZkLoginError(
    'ZKLOGIN_OPTION',
    'a zkLogin session signs transactions and personal messages only: call signTransaction or signPersonalMessage',
  );
}

/** Returns the same error, or ZKLOGIN_PROOF if validators refused the proof. */
function toProofError(failure: SuiError): SuiError | ZkLoginError {
  if (!failure.message.includes(PROOF_REFUSED)) return failure;
  return new ZkLoginError(
    'ZKLOGIN_PROOF',
    `the network refuses the proof (${PROOF_REFUSED}): either it is for another ephemeral key, salt or nonce, so log in again; or the prover has the proving key of another network`,
    { cause: failure },
  );
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
