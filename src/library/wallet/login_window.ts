/** Starts a login at a provider, in a separate window or in this tab, and waits for its answer. */
import { ZkLoginError } from '../zklogin/errors.ts';
import { holdsAnswer } from '../zklogin/redirect.ts';
import {
  type Acknowledgement,
  ANSWER_KEY,
  channelName,
  POINTER_KEY,
  type Pointer,
  readEntry,
  readKind,
  type StoredAnswer,
} from './handover.ts';
import { LoginCancelledError } from './login_cancelled.ts';

const LIMIT_MS = 10 * 60_000;
const POLL_MS = 250;
/** Number of polls in a row that must find the window closed. */
const CLOSED_POLLS = 8;

/**
 * Opens a blank window. Browsers permit this only within the user's click. The window loses its opener while
 * it is blank, so that a provider can't navigate the page.
 *
 * @returns the window, or null if the browser blocks it
 */
export function openLoginWindow(): Window | null {
  const loginWindow = window.open('', '_blank', 'popup,width=500,height=720');
  if (loginWindow !== null) loginWindow.opener = null;
  return loginWindow;
}

/**
 * Sends the window to the provider, and waits until the redirect page hands over the answer.
 *
 * Accepts the first message that comes from this origin and has the expected form. completeLogin then checks
 * whether the message answers this login.
 *
 * @returns the answer, for completeLogin
 * @throws ZkLoginError: ZKLOGIN_CLOSED, a LoginCancelledError if the user gave up; the signal's reason
 */
export async function receiveAnswer(
  loginWindow: Window,
  { url, signal }: { readonly url: URL; readonly signal: AbortSignal },
): Promise<string> {
  const channel = new BroadcastChannel(channelName(readState(url)));
  try {
    return await waitForWork<string>(signal, (resolve, reject) => {
      channel.addEventListener('message', ({ data, origin }: MessageEvent<unknown>) => {
        const answer = origin === location.origin ? readAnswer(data) : null;
        if (answer === null) return;
        const acknowledgement: Acknowledgement = { kind: 'taken' };
        channel.postMessage(acknowledgement);
        resolve(answer);
      });
      loginWindow.location.replace(url.href);
      let closedPolls = 0;
      const poll = setInterval(() => {
        // A provider with the opener policy same-origin makes an open window look closed. In that case, the
        // user is in the login window, so this page has no focus.
        closedPolls = loginWindow.closed && document.hasFocus() ? closedPolls + 1 : 0;
        if (closedPolls >= CLOSED_POLLS) reject(new LoginCancelledError('the login window was closed'));
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
 * @param wallet the id of the wallet that the answer is for
 * @throws ZkLoginError: ZKLOGIN_CLOSED, a LoginCancelledError if the user gave up; the signal's reason
 */
export async function leaveForProvider(
  wallet: string,
  { url, signal }: { readonly url: URL; readonly signal: AbortSignal },
): Promise<never> {
  const returnTo = new URL(location.href);
  if (holdsAnswer(returnTo.hash, returnTo.href)) returnTo.hash = '';
  const pointer: Pointer = { wallet, state: readState(url), returnTo: returnTo.href };
  sessionStorage.setItem(POINTER_KEY, JSON.stringify(pointer));
  try {
    return await waitForWork<never>(signal, (_, reject) => {
      const onPageShow = ({ persisted }: PageTransitionEvent) => {
        if (persisted) reject(new LoginCancelledError('the user went back without logging in'));
      };
      window.addEventListener('pageshow', onPageShow);
      location.assign(url.href);
      return () => window.removeEventListener('pageshow', onPageShow);
    });
  } finally {
    sessionStorage.removeItem(POINTER_KEY);
  }
}

/**
 * Removes the answer to this wallet's login in this tab from the session storage, and returns it. Returns
 * null if there is no answer for this wallet.
 */
export function takeAnswer(wallet: string): string | null {
  const stored: StoredAnswer | null = readEntry(ANSWER_KEY, ['wallet', 'answer']);
  if (stored?.wallet !== wallet) return null;
  sessionStorage.removeItem(ANSWER_KEY);
  return stored.answer;
}

/**
 * Waits until the work resolves or rejects, the signal is aborted, or LIMIT_MS is over.
 *
 * @param start begins the work, and returns a function that cleans up after it
 */
async function waitForWork<T>(
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

function readAnswer(data: unknown): string | null {
  if (readKind(data) !== 'answer') return null;
  const { answer = null } = Object(data);
  return typeof answer === 'string' ? answer : null;
}

function readState(url: URL): string {
  return url.searchParams.get('state') ?? '';
}
