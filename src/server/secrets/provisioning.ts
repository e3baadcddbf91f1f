/** Accepts sealed secrets from the hand-off, or at `POST /secrets` from a provisioner that app.yaml names. */
import { createPublicKey, verify } from 'node:crypto';
import { ConfigError } from 'sui-enclave/errors';
import {
  createReceipt,
  decodeSealedSecrets,
  type EnclaveState,
  isSealed,
  type OpenedSecrets,
  provisionedBytes,
  type Receipt,
  readSecrets,
  type SealedSecrets,
} from 'sui-enclave/sealing/secrets';
import { EnclaveServerError } from '../enclave_errors.ts';
import { unavailable } from '../nsm/errors.ts';
import { throwAsServerError } from '../sealing/sealed_answers.ts';
import type { SealingKey } from '../sealing/sealing_key.ts';
import type { Secrets } from './secrets.ts';

export interface ProvisioningParts {
  readonly secrets: Secrets;
  readonly key: SealingKey;
  /** Ed25519 public keys of app.yaml, in hexadecimal. */
  readonly provisioners: readonly string[];
  /** State of this enclave, to which sealed secrets are bound. Undefined without an NSM. */
  readonly state: EnclaveState | undefined;
  /** The value of `SECRETS`. */
  readonly accepted: 'any' | 'sealed';
}

/** The ways in which secrets arrive after the start, and who may send them. */
export class Provisioning {
  readonly #parts: ProvisioningParts;

  constructor(parts: ProvisioningParts) {
    this.#parts = parts;
  }

  /**
   * Accepts a hand-off of plain secrets if they are allowed, or of sealed secrets. Sealed secrets need a
   * signature only if app.yaml names provisioners.
   *
   * @throws ConfigError, EnclaveServerError; no message repeats a value
   */
  async handOff(json: unknown): Promise<void> {
    const { secrets, provisioners, accepted } = this.#parts;
    if (isSealed(json)) {
      const { content } = await this.#open(json);
      secrets.provide(parseContent(content));
      return;
    }
    if (accepted === 'sealed' || provisioners.length > 0) {
      const why = accepted === 'sealed' ? 'SECRETS=sealed is set' : 'app.yaml names provisioners';
      throw new ConfigError(
        `${why}: only sealed secrets are accepted; send them with the command provision or expose_enclave`,
      );
    }
    secrets.provide(json);
  }

  /**
   * Opens a message of `POST /secrets`. The cheap checks come first: only a provisioner can cause a key
   * agreement.
   *
   * @throws EnclaveServerError, NsmError
   */
  async open(json: unknown): Promise<OpenedSecrets> {
    if (this.#parts.provisioners.length === 0) {
      const message =
        'app.yaml names no provisioners, so the server accepts secrets through the hand-off only';
      throw new EnclaveServerError('SECRETS_NO_PROVISIONERS', message);
    }
    this.#requireMissing();
    return await this.#open(json);
  }

  /**
   * Accepts a set that `open` returned.
   *
   * @throws EnclaveServerError: SECRETS_FINAL, SECRETS_REFUSED, SEALED_CONTENT
   */
  accept({ content, receiptKey }: OpenedSecrets): Receipt {
    const values = parseContent(content);
    this.#requireMissing();
    try {
      this.#parts.secrets.provide(values);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      throw new EnclaveServerError('SECRETS_REFUSED', error.message);
    }
    return createReceipt(values, receiptKey);
  }

  #requireMissing(): void {
    if (this.#parts.secrets.missing().length > 0) return;
    throw new EnclaveServerError(
      'SECRETS_FINAL',
      'the enclave has its secrets already: the first valid set is final',
    );
  }

  async #open(json: unknown): Promise<OpenedSecrets> {
    const { key, state } = this.#parts;
    if (state === undefined)
      throw unavailable('without its registers, the server cannot open sealed secrets');
    try {
      const sealed = decodeSealedSecrets(json);
      this.#requireListed(sealed);
      key.requireRecipient(sealed);
      this.#requireSigned(sealed, state);
      return await key.openSecrets(sealed, state);
    } catch (error) {
      return throwAsServerError(error);
    }
  }

  #requireListed({ signed }: SealedSecrets): void {
    const { provisioners } = this.#parts;
    if (provisioners.length === 0) return;
    if (signed && provisioners.includes(Buffer.from(signed.provisioner).toString('hex'))) return;
    const message = 'the secrets must be signed by one of the provisioners that app.yaml names';
    throw new EnclaveServerError('SECRETS_PROVISIONER', message);
  }

  /** Requires a valid signature. A signature must be valid even if none is required. */
  #requireSigned(sealed: SealedSecrets, state: EnclaveState): void {
    const { signed } = sealed;
    if (!signed || isSignedBy(signed.provisioner, signed.signature, provisionedBytes(sealed, state))) return;
    const message =
      "the provisioner's signature does not match: the message was changed, or made for another enclave";
    throw new EnclaveServerError('SECRETS_SIGNATURE', message);
  }
}

function parseContent(content: Uint8Array): Readonly<Record<string, string>> {
  try {
    return readSecrets(content);
  } catch (error) {
    return throwAsServerError(error);
  }
}

/** Verifies a signature by pure ed25519 (RFC 8032, section 5.1.7). */
function isSignedBy(publicKey: Uint8Array, signature: Uint8Array, message: Uint8Array): boolean {
  const x = Buffer.from(publicKey).toString('base64url');
  try {
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    return verify(null, message, key, signature);
  } catch {
    // The key is not a point of the curve.
    return false;
  }
}
