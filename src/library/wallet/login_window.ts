/** Starts a login at a provider, in a separate window or in this tab, and waits for its answer. */
import { ZkLoginError } from '../zklogin/errors.ts';
import { holdsAnswer } from '../zklogin/redirect.ts';
import {
  ANSWER_KEY,
  channelName,
  type KeptAnswer,
  kindOf,
  POINTER_KEY,
  type Pointer,
  readEntry,
  type Taken,
} from './handover.ts';
import { LoginCancelledError } from './login_cancelled.ts';

const LIMIT_MS = 10 * 60_000;
const POLL_MS = 250;
/** Number of polls in a row that must find the window closed. */
const CLOSED_POLLS = 8;

/**
 * Opens a blank window, which must happen within the user's click. Its opener is removed while the window is
 * blank, so that a provider can't navigate the page.
 *
 * @returns null if the browser blocks it
 */
export function openLoginWindow(): Window | null {
  const opened = window.open('', '_blank', 'popup,width=500,height=720');
  if (opened !== null) opened.opener = null;
  return opened;
}

/**
 * Sends the window to the provider, and waits until the redirect page hands over the answer.
 *
 * Accepts the first message that comes from this origin and has the expected form. completeLogin then checks
 * whether the message answers this login.
 *
 * @returns the answer, for completeLogin
 * @throws ZkLoginError: ZKLOGIN_CLOSED, as LoginCancelledError if the user gave up; the signal's reason
 */
export async function answerFromWindow(
  opened: Window,
  { url, signal }: { readonly url: URL; readonly signal: AbortSignal },
): Promise<string> {
  const channel = new BroadcastChannel(channelName(stateOf(url)));
  try {
    return await settled<string>(signal, (resolve, reject) => {
      channel.addEventListener('message', ({ data, origin }: MessageEvent<unknown>) => {
        const answer = origin === location.origin ? answerIn(data) : null;
        if (answer === null) return;
        const taken: Taken = { kind: 'taken' };
        channel.postMessage(taken);
        resolve(answer);
      });
      opened.location.replace(url.href);
      let closed = 0;
      const poll = setInterval(() => {
        // A provider with the opener policy same-origin makes an open window look closed. In that case, the
        // user is in the login window, so this page has no focus.
        closed = opened.closed && document.hasFocus() ? closed + 1 : 0;
        if (closed >= CLOSED_POLLS) reject(new LoginCancelledError('the login window was closed'));
      }, POLL_MS);
      return () => clearInterval(poll);
    });
  } finally {
    channel.close();
  }
}

/**
 * Sends this tab to the provider. The login continues when this page is loaded again. Rejects if the tab
 * never leaves this page, or if the user goes back to it.
 *
 * @param wallet the id of the wallet that takes the answer
 * @throws ZkLoginError: ZKLOGIN_CLOSED, as LoginCancelledError if the user gave up; the signal's reason
 */
export async function leaveForProvider(
  wallet: string,
  { url, signal }: { readonly url: URL; readonly signal: AbortSignal },
): Promise<never> {
  const returnTo = new URL(location.href);
  if (holdsAnswer(returnTo.hash, returnTo.href)) returnTo.hash = '';
  const pointer: Pointer = { wallet, state: stateOf(url), returnTo: returnTo.href };
  sessionStorage.setItem(POINTER_KEY, JSON.stringify(pointer));
  try {
    return await settled<never>(signal, (_, reject) => {
      const cameBack = ({ persisted }: PageTransitionEvent) => {
        if (persisted) reject(new LoginCancelledError('the user went back without logging in'));
      };
      window.addEventListener('pageshow', cameBack);
      location.assign(url.href);
      return () => window.removeEventListener('pageshow', cameBack);
    });
  } finally {
    sessionStorage.removeItem(POINTER_KEY);
  }
}

/** Takes the answer to a login in this tab that is for this wallet. A second call returns null. */
export function takeAnswer(wallet: string): string | null {
  const kept: KeptAnswer | null = readEntry(ANSWER_KEY, ['wallet', 'answer']);
  if (kept?.wallet !== wallet) return null;
  sessionStorage.removeItem(ANSWER_KEY);
  return kept.answer;
}

/** Waits for a promise, a signal or a time limit. @param start returns the function that cleans up */
async function settled<T>(
  signal: AbortSignal,
  start: (resolve: (value: T) => void, reject: (error: unknown) => void) => () => void,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const abort = () => reject(signal.reason);
  const limit = setTimeout(() => {
    reject(
      new ZkLoginError('ZKLOGIN_CLOSED', `the provider did not answer within ${LIMIT_MS / 60_000} minutes`),
    );
  }, LIMIT_MS);
  const cleanUp = start(resolve, reject);
  signal.addEventListener('abort', abort);
  if (signal.aborted) abort();
  try {
    return await promise;
  } finally {
    clearTimeout(limit);
    signal.removeEventListener('abort', abort);
    cleanUp();
  }
}

function answerIn(data: unknown): string | null {
  if (kindOf(data) !== 'answer') return null;
  const { answer = null } = Object(data);
  return typeof answer === 'string' ? answer : null;
}

function stateOf(url: URL): string {
  return url.searchParams.get('state') ?? '';
}
