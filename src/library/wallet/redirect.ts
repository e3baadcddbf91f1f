/**
 * `sui-enclave/wallet/redirect`: handles the provider's answer on the page at `redirectUri`. It loads neither
 * the wallet nor zkLogin, and doesn't verify the answer: the page that began the login does.
 */
import {
  ANSWER_KEY,
  channelName,
  type HandedAnswer,
  POINTER_KEY,
  readEntry,
  readKind,
  type StoredAnswer,
} from './handover.ts';

/**
 * Time limit for the acknowledgement by the page that began the login, in milliseconds. The page may be in
 * the background.
 */
const ACKNOWLEDGE_MS = 5000;

const MESSAGES = {
  none: 'This page completes a login, but no login is in progress. You can close this page.',
  returned: 'Returning to the page where you began.',
  waiting: 'Handing over the login …',
  taken: 'You can close this window: the login continues where you began it.',
  late: 'The page where you began this login no longer waits for it. Return to that page and log in again.',
};

/**
 * Hands the provider's answer to the page that began the login. In a window that the wallet opened, sends the
 * answer to the waiting page and closes the window. In the same tab, stores the answer and goes back to that
 * page. Removes the answer from the address bar and the history immediately. Tells the user what to do, if
 * anything.
 *
 * Exported from `sui-enclave/wallet/redirect`.
 *
 * @param answer the body of a form_post, which the server puts into the page. Default: `location.href`
 * @param say shows a sentence to the user. Default: shows it in place of the page's content
 * @returns a promise that resolves once it is clear whether the page took the answer
 * @example
 * await answerLogin();
 */
export async function answerLogin(
  answer: string = location.href,
  say: (text: string) => void = showInPage,
): Promise<void> {
  history.replaceState(null, '', `${location.origin}${location.pathname}`);
  const state = readState(answer);
  if (state === null) return say(MESSAGES.none);
  const pointer = readEntry(POINTER_KEY, ['wallet', 'state', 'returnTo']);
  if (pointer?.state === state) {
    sessionStorage.removeItem(POINTER_KEY);
    const stored: StoredAnswer = { wallet: pointer.wallet, answer };
    sessionStorage.setItem(ANSWER_KEY, JSON.stringify(stored));
    say(MESSAGES.returned);
    // Only pages of this origin can write to the storage, so this check is a precaution.
    const { origin, href } = new URL(pointer.returnTo, location.origin);
    return location.replace(origin === location.origin ? href : '/');
  }
  say(MESSAGES.waiting);
  if (!(await handOver(state, answer))) return say(MESSAGES.late);
  say(MESSAGES.taken);
  // This has no effect if the browser no longer counts the window as opened by a page.
  window.close();
}

async function handOver(state: string, answer: string): Promise<boolean> {
  const channel = new BroadcastChannel(channelName(state));
  const message: HandedAnswer = { kind: 'answer', answer };
  try {
    return await new Promise((resolve) => {
      const timer = setTimeout(resolve, ACKNOWLEDGE_MS, false);
      channel.addEventListener('message', ({ data }) => {
        if (readKind(data) !== 'taken') return;
        clearTimeout(timer);
        resolve(true);
      });
      channel.postMessage(message);
    });
  } finally {
    channel.close();
  }
}

/**
 * Returns the `state` in a form's body, or in the query or fragment of a URL. Returns null unless there is
 * exactly one.
 */
function readState(answer: string): string | null {
  const { search, hash } = URL.canParse(answer) ? new URL(answer) : { search: answer, hash: '' };
  const states = [search, hash.slice(1)].flatMap((part) => new URLSearchParams(part).getAll('state'));
  return states.length === 1 ? (states[0] ?? null) : null;
}

function showInPage(text: string): void {
  const line = document.createElement('p');
  line.setAttribute('role', 'status');
  line.textContent = text;
  document.body.replaceChildren(line);
}
