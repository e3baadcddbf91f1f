/** Keeps the state of one enclave, from its attestation on, for `useEnclave`. Needs no React. */
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { bytesToHex } from '@noble/curves/utils.js';
import type { AttestationError, VerifiedAttestation } from '../attestation/index.ts';
import { getAttestedKey } from '../client/attestation.ts';
import { EnclaveClient } from '../client/client.ts';
import type { ClientError } from '../client/errors.ts';
import { foreignError } from '../client/http.ts';
import type { ConfigClientOptions, EnclaveClientOptions } from '../client/options.ts';
import { type Trust, trustIn } from '../client/trust.ts';
import { isEnclaveError } from '../errors.ts';
import type { SuiError } from '../sui/errors.ts';

/** Options to trust exactly what an EnclaveConfig on Sui trusts, as `EnclaveClient.forConfig` does. */
export interface RegisteredEnclaveOptions extends Omit<ConfigClientOptions, 'signal'> {
  /** Any client of `@mysten/sui`. Its node decides what the config says, so use a node that you trust. */
  readonly suiClient: ClientWithCoreApi;
  /** Object id of the EnclaveConfig. */
  readonly configId: string;
}

/**
 * The signing key has changed: the enclave has restarted, or another enclave answers. Each key has
 * 32 bytes.
 */
export interface KeyChange {
  /** The key that the enclave had before. */
  readonly before: Uint8Array;
  /** The new key, which was attested or signed an accepted answer. */
  readonly now: Uint8Array;
}

interface CommonState {
  /**
   * The earliest change of the key that is not acknowledged. The new key was attested, or signed an answer
   * that the client accepted. The change stays until `acknowledge` is called, even while the enclave is
   * attested again, and even if that attestation fails.
   */
  readonly changed: KeyChange | undefined;
  /** Accepts the new key in `changed`, which then disappears. Does nothing if nothing has changed. */
  acknowledge(): void;
  /**
   * Attests the enclave again. Does nothing while it is being attested, or after the component is unmounted.
   */
  retry(): void;
}

/**
 * Error of an enclave that is not attested, in `useEnclave`. Its `code` names the cause. An error from
 * outside this library becomes the `cause` of a ClientError with the code CLIENT_FAILED.
 */
export type EnclaveStateError = ClientError | AttestationError | SuiError;

type Stage<Client> =
  | {
      readonly status: 'attesting';
      readonly client: undefined;
      readonly attestation: undefined;
      readonly publicKey: undefined;
      readonly error: undefined;
    }
  | {
      readonly status: 'attested';
      readonly client: Client;
      /** The latest attestation. Its `image` has the registers that were accepted. */
      readonly attestation: VerifiedAttestation;
      /** The signing key in this attestation: Ed25519, 32 bytes. */
      readonly publicKey: Uint8Array;
      readonly error: undefined;
    }
  | {
      readonly status: 'failed';
      readonly client: undefined;
      readonly attestation: undefined;
      readonly publicKey: undefined;
      readonly error: EnclaveStateError;
    };

/** State of an enclave in `useEnclave`. It has a client only if the latest attestation succeeded. */
export type UsedEnclave<Client> = CommonState & Stage<Client>;

const UNKNOWN = { client: undefined, attestation: undefined, publicKey: undefined, error: undefined };

export class AttestedEnclave {
  readonly #connect: (signal: AbortSignal) => Promise<EnclaveClient>;
  readonly #listeners = new Set<() => void>();
  #client: EnclaveClient | undefined;
  #running: AbortController | undefined;
  /** Keys that are not reported as a change, in hexadecimal: the first key, and acknowledged keys. */
  readonly #acceptedKeys = new Set<string>();
  /** The first key, or the new key of the latest recorded change. */
  #latest: Uint8Array | undefined;
  #changes: readonly KeyChange[] = [];
  #stage: Stage<EnclaveClient> = { ...UNKNOWN, status: 'attesting' };
  #state: UsedEnclave<EnclaveClient>;

  /** Sends nothing before someone subscribes. */
  constructor(url: string, options: EnclaveClientOptions | RegisteredEnclaveOptions) {
    const wrapTrust = (trust: Trust) => observeKeys(trust, (publicKey) => this.#recordKey(publicKey));
    this.#connect = async (signal) => {
      if ('configId' in options) {
        const { suiClient, configId, ...clientOptions } = options;
        return await EnclaveClient.forConfig(
          suiClient,
          configId,
          url,
          { ...clientOptions, signal },
          wrapTrust,
        );
      }
      return new EnclaveClient(url, options, wrapTrust(trustIn(options?.policy)));
    };
    this.#state = this.#assemble();
  }

  readonly read = (): UsedEnclave<EnclaveClient> => this.#state;

  /**
   * Subscribes to changes. The first subscription starts the attestation. When the last subscription ends,
   * any work under way is aborted.
   */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#stage.status === 'attesting' && this.#running === undefined) void this.#attest();
    return () => {
      this.#listeners.delete(listener);
      // React's StrictMode ends each effect once, and begins it again immediately.
      queueMicrotask(() => {
        if (this.#listeners.size > 0) return;
        this.#running?.abort();
        this.#running = undefined;
      });
    };
  };

  readonly #retry = (): void => {
    if (this.#running !== undefined || this.#listeners.size === 0) return;
    void this.#attest();
    this.#show({ ...UNKNOWN, status: 'attesting' });
  };

  readonly #acknowledge = (): void => {
    const [change, ...remainingChanges] = this.#changes;
    if (change === undefined) return;
    this.#acceptedKeys.add(bytesToHex(change.now));
    this.#changes = remainingChanges;
    this.#show(this.#stage);
  };

  async #attest(): Promise<void> {
    const running = new AbortController();
    this.#running = running;
    const { signal } = running;
    const end = (stage: Stage<EnclaveClient>) => {
      this.#running = undefined;
      this.#show(stage);
    };
    try {
      this.#client ??= await this.#connect(signal);
      const client = this.#client;
      const attestation = await client.attest({ signal });
      const publicKey = getAttestedKey(attestation);
      if (this.#running !== running) return;
      this.#recordKey(publicKey);
      end({ status: 'attested', client, attestation, publicKey, error: undefined });
    } catch (error) {
      // After an abort, the error is not shown: the next subscription attests the enclave again.
      if (this.#running === running) end({ ...UNKNOWN, status: 'failed', error: toStateError(error) });
    }
  }

  /** Records the first key, or a change of the key. A change stays until it is acknowledged. */
  #recordKey(publicKey: Uint8Array): void {
    const hex = bytesToHex(publicKey);
    const before = this.#latest;
    if (before === undefined) this.#acceptedKeys.add(hex);
    const isNew = !this.#acceptedKeys.has(hex) && !this.#changes.some(({ now }) => bytesToHex(now) === hex);
    if (before !== undefined && !isNew) return;
    this.#latest = publicKey.slice();
    if (before === undefined) return;
    this.#changes = [...this.#changes, { before, now: this.#latest }];
    this.#show(this.#stage);
  }

  #show(stage: Stage<EnclaveClient>): void {
    this.#stage = stage;
    this.#state = this.#assemble();
    for (const listener of this.#listeners) listener();
  }

  #assemble(): UsedEnclave<EnclaveClient> {
    const [changed] = this.#changes;
    return { ...this.#stage, changed, acknowledge: this.#acknowledge, retry: this.#retry };
  }
}

function toStateError(error: unknown): EnclaveStateError {
  // The client and `forConfig` throw no other errors of this library.
  if (isEnclaveError(error)) return error as EnclaveStateError;
  return foreignError(error);
}

/**
 * Calls `onKey` with the key of each accepted answer. This may be a new key, since the client attests by
 * itself if no known key signed an answer.
 */
function observeKeys(trust: Trust, onKey: (publicKey: Uint8Array) => void): Trust {
  return {
    current: () => trust.current(),
    renewed: (outdated) => trust.renewed(outdated),
    vouchesFor: (publicKey) => trust.vouchesFor(publicKey),
    async admit(publicKey) {
      const enclaveId = await trust.admit(publicKey);
      onKey(publicKey);
      return enclaveId;
    },
  };
}
