import { holdsAnswer, type Redirect } from './redirect.ts';
import { findLogin, findSession, type SessionStore, sessionStore } from './storage.ts';

/**
 * - `answered`: the user is back from the provider: call completeLogin
 * - `complete`: there is a token, but no proof yet: call resumeLogin
 * - `open`: there is a session, perhaps expired: call resumeSession
 * - `none`: call beginLogin
 */
export type LoginStage = 'answered' | 'complete' | 'open' | 'none';

/**
 * Returns the stage of the login when a page is loaded. Once it has an answer, a login that was begun to
 * renew a session takes precedence over the session. An answer without a begun login is ignored, so that a
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
