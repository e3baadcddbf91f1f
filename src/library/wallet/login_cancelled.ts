import { ProviderRefusedError, ZkLoginError } from '../zklogin/errors.ts';

/** Code `WALLET_STANDARD_ERROR__USER__REQUEST_REJECTED` of `@wallet-standard/errors`. */
const REQUEST_REJECTED = 4_001_000;

/**
 * Error of a login that the user cancelled by closing its window, going back, or refusing at the provider.
 * The Wallet Standard's `isWalletStandardError` recognises it by name and context, so that connect buttons
 * say "You cancelled". Its code is ZKLOGIN_CLOSED.
 */
export class LoginCancelledError extends ZkLoginError {
  readonly context = { __code: REQUEST_REJECTED };

  constructor(message: string, options?: ErrorOptions) {
    super('ZKLOGIN_CLOSED', message, options);
  }

  override get name(): string {
    return 'WalletStandardError';
  }
}

/** Turns a user's refusal at the provider into a cancelled login. Returns any other error unchanged. */
export function toLoginCancelled(error: unknown): unknown {
  // RFC 6749, section 4.1.2.1: the resource owner or the authorization server denied the request.
  const isDenied = error instanceof ProviderRefusedError && error.reason === 'access_denied';
  return isDenied ? new LoginCancelledError('the user refused at the provider', { cause: error }) : error;
}
