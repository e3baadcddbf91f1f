/** Errors of provisioning: one `code` for each cause. No message contains a secret. */
import { CodedError } from 'sui-enclave/errors';
import { EXIT } from '../command.ts';

/** Every code of a ProvisionError, and what it means. */
export const PROVISION_CODES = {
  SECRETS_FILE: 'The secrets, or the file with them, can not be used.',
  PROVISIONER_KEY: "The provisioner's key, or the file with it, can not be used.",
  CONFIG_OPEN: "The application's config is open, so anyone may run its image. Nothing was sent.",
  SECRETS_REFUSED: 'The enclave opened the secrets and refused them, in a sealed answer.',
  SECRETS_NOT_TAKEN: 'The secrets were refused in clear, by the enclave or by anyone on the way.',
  SECRETS_RECEIPT: 'The answer is not the receipt for these secrets: they may not have arrived.',
} as const;

export type ProvisionCode = keyof typeof PROVISION_CODES;

/**
 * An error of provisioning itself. Provisioning also throws AttestationErrors, ClientErrors and
 * SealingErrors.
 */
export class ProvisionError extends CodedError<ProvisionCode> {
  /** The code in the answer, from the enclave or anyone on the path. */
  readonly serverCode: string | null;

  constructor(code: ProvisionCode, message: string, serverCode: string | null = null) {
    super(code, message);
    this.serverCode = serverCode;
  }
}

/** The config of the application is open, so nothing was tried. */
export class OpenConfigError extends ProvisionError {
  readonly exit = EXIT.notTried;

  constructor(message: string) {
    super('CONFIG_OPEN', message);
  }
}

/** Codes of a ProvisionFileError. */
export type ProvisionFileCode = Extract<ProvisionCode, 'SECRETS_FILE' | 'PROVISIONER_KEY'>;

/** A file of the provisioner can't be used, so nothing was tried. */
export class ProvisionFileError extends ProvisionError {
  readonly exit = EXIT.notTried;

  constructor(code: ProvisionFileCode, message: string) {
    super(code, message);
  }
}
