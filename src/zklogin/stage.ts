import { holdsAnswer, type Redirect } from './redirect.ts';
import { findLogin, findSession, type SessionStore, sessionStore } from './storage.ts';

/**
 * - `answered`: the user is back from the provider; completeLogin is next
 * - `complete`: the token is there, and no proof yet: resumeLogin
 * - `open`: a session is there, perhaps expired: resumeSession
 * - `none`: beginLogin
 */
export type LoginStage = 'answered' | 'complete' | 'open' | 'none';

/**
 * What a page finds when it is loaded. A login that was begun to renew a session goes before the session, once
 * it has an answer. An answer that nobody waits for is none: whoever made the user follow such a link gets
 * nothing done.
 *
 * Exported from `sui-enclave/zklogin`.
 *
 * @param redirect as completeLogin takes it: `location.href`, or the body of a form_post
 * @throws StorageError
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
