/** Verifies that a token is genuine, currently valid, and issued to a client of SALT_CLIENTS. */

import { SUI_V1, valueFault } from 'sui-enclave/token/claims';
import { OidcError } from 'sui-enclave-service/oidc/errors';
import type { IssuerKeys } from 'sui-enclave-service/oidc/keys';
import * as oidc from 'sui-enclave-service/oidc/verify';
import type { SaltClient } from './clients.ts';
import { SaltError } from './errors.ts';
import type { Semaphore } from './limits.ts';

export interface VerifiedUser {
  readonly client: SaltClient;
  /**
   * The token's `iss`, with Microsoft's tenant. If the issuer has two spellings, it is always the same one.
   */
  readonly issuer: string;
  readonly subject: string;
}

export class SaltTokenVerifier {
  readonly #verifier: oidc.TokenVerifier<SaltClient>;

  constructor(
    clients: readonly SaltClient[],
    findKeys: (client: SaltClient) => IssuerKeys,
    semaphore: Semaphore,
  ) {
    this.#verifier = new oidc.TokenVerifier(clients, findKeys, { limit: (work) => semaphore.run(work) });
  }

  /** Verifies a token, and returns its user. @throws SaltError with any code but SALT_RATE_LIMITED */
  async verify(token: string): Promise<VerifiedUser> {
    const { client, issuer, payload } = await this.#verifier.verify(token).catch(refuse);
    return { client, issuer, subject: checkSubject(payload.sub) };
  }
}

function checkSubject(sub: unknown): string {
  if (typeof sub !== 'string') throw new SaltError('SALT_TOKEN_CLAIM', 'the token\'s "sub" must be a string');
  const fault = valueFault(sub, SUI_V1.subject);
  if (fault !== null)
    throw new SaltError(
      'SALT_SUBJECT_UNUSABLE',
      `the token's "sub" ${fault}: no zkLogin proof can be made for it`,
    );
  return sub;
}

/** Throws the service's error for an error of the verification: its code has the prefix `SALT_`. */
function refuse(error: unknown): never {
  if (!(error instanceof OidcError)) throw error;
  const { code, message, cause } = error;
  throw new SaltError(`SALT_${code}`, message, cause === undefined ? {} : { cause });
}
