/**
 * `sui-enclave/wallet/redirect`: what the page at `redirectUri` does with the provider's answer. It loads
 * neither the wallet nor zkLogin, and doesn't judge the answer: the page that began the login does.
 */
import {
  ANSWER_KEY,
  channelName,
  type HandedAnswer,
  type KeptAnswer,
  kindOf,
  POINTER_KEY,
  readEntry,
} from './handover.ts';

/**
 * Time limit for the acknowledgement by the page that began the login, in milliseconds. The page may be in
 * the background.
 */
const ACKNOWLEDGE_MS = 5000;

const WORDS = {
  none: 'This page ends a login, but no login is under way: you can close it.',
  returned: 'Going back to the page where you began.',
  waiting: 'Handing over the login …',
  taken: 'You can close this window: the login continues where you began it.',
  late: 'The page where you began this login no longer waits for it. Go back to it, and begin again.',
};

/**
 * Hands the provider's answer to the page that began the login. In a window that the wallet opened, sends the
 * answer to the waiting page and closes the window. In the same tab, goes back to that page. Removes the
 * answer from the address bar and the history at once. Tells the user what to do, if anything.
 *
 * Exported from `sui-enclave/wallet/redirect`.
 *
 * @param answer the body of a form_post, which the server puts into the page. Default: `location.href`
 * @param say shows a sentence to the user. Default: shows it in place of the page's content
 * @returns once it is clear whether the answer was taken
 * @example
 * await answerLogin();
 */
export async function answerLogin(
  answer: string = location.href,
  say: (text: string) => void = sayInPage,
): Promise<void> {
  history.replaceState(null, '', `${location.origin}${location.pathname}`);
  const state = stateIn(answer);
  if (state === null) return say(WORDS.none);
  const pointer = readEntry(POINTER_KEY, ['wallet', 'state', 'returnTo']);
  if (pointer?.state === state) {
    sessionStorage.removeItem(POINTER_KEY);
    const kept: KeptAnswer = { wallet: pointer.wallet, answer };
    sessionStorage.setItem(ANSWER_KEY, JSON.stringify(kept));
    say(WORDS.returned);
    // The storage is this origin's own, so this is a precaution.
    const { origin, href } = new URL(pointer.returnTo, location.origin);
    return location.replace(origin === location.origin ? href : '/');
  }
  say(WORDS.waiting);
  if (!(await handOver(state, answer))) return say(WORDS.late);
  say(WORDS.taken);
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
        if (kindOf(data) !== 'taken') return;
        clearTimeout(timer);
        resolve(true);
      });
      channel.postMessage(message);
    });
  } finally {
    channel.close();
  }
}

/** Finds the only `state` in a form's body, or in the query or fragment of a URL. */
function stateIn(answer: string): string | null {
  const { search, hash } = URL.canParse(answer) ? new URL(answer) : { search: answer, hash: '' };
  const states = [search, hash.slice(1)].flatMap((part) => new URLSearchParams(part).getAll('state'));
  return states.length === 1 ? (states[0] ?? null) : null;
}

function sayInPage(text: string): void {
  const line = document.createElement('p');
  line.setAttribute('role', 'status');
  line.textContent = text;
  document.body.replaceChildren(line);
}
