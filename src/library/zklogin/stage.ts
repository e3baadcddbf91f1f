import { holdsAnswer, type Redirect } from './redirect.ts';
import { findLogin, findSession, type SessionStore, sessionStore } from './storage.ts';

/**
 * Stage of a login, which determines the function to call next:
 *
 * - `answered`: the provider has answered; call completeLogin
 * - `complete`: there is a token, but no proof yet; call resumeLogin
 * - `open`: there is a session, which may have expired; call resumeSession
 * - `none`: there is neither a login nor a session; call beginLogin
 */
export type LoginStage = 'answered' | 'complete' | 'open' | 'none';

/**
 * Returns the stage of the login when a page is loaded. A login that renews a session takes precedence over
 * the session once it has an answer. An answer without a begun login is ignored, so that a
 * malicious link has no effect.
 *
 * Exported from `sui-enclave/zklogin`.
 *
 * @param redirect as for completeLogin: `location.href`, or the body of a form_post
 * @throws ZkLoginError: ZKLOGIN_STORAGE
 * @example
 * if (loginStage(location.href) === 'answered') await completeLogin(location.href);
 */
export function loginStage(
  redirect: Redirect,
  { storage }: { readonly storage?: SessionStore } = {},
): LoginStage {
  const store = sessionStore(storage);
  const login = findLogin(store);
  if (login?.stage === 'complete') return 'complete';
  if (login?.stage === 'begun' && holdsAnswer(redirect, login.redirectUri)) return 'answered';
  return findSession(store) === null ? 'none' : 'open';
}
