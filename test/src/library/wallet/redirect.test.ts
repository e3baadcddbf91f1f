/** Tests the page at redirectUri, which receives the provider's answer. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { channelName } from '../../../../src/library/wallet/handover.ts';
import { answerLogin } from '../../../../src/library/wallet/redirect.ts';
import { ORIGIN, usePage } from './page.ts';

const page = usePage();
const STATE = 'ab'.repeat(32);
const POINTER = 'sui-enclave/wallet/redirect';
const ANSWER = 'sui-enclave/wallet/answer';

afterEach(() => void vi.useRealTimers());

/** Opens the page as a provider does, which sends the user to it. @returns the URL */
function arrive(back = `/back#state=${STATE}&id_token=secret`): string {
  page.current.addresses.push(`${ORIGIN}${back}`);
  return `${ORIGIN}${back}`;
}

/** Listens as the page that began the login does, and replies. @returns the received messages */
function listen(reply: unknown = { kind: 'taken' }) {
  const received: unknown[] = [];
  const channel = new BroadcastChannel(channelName(STATE));
  channel.addEventListener('message', ({ data }) => {
    received.push(data);
    if (reply !== null) channel.postMessage(reply);
  });
  return { received, end: () => channel.close() };
}

const storePointer = (changed: object = {}) =>
  page.current.stored.set(
    POINTER,
    JSON.stringify({ wallet: 'w', state: STATE, returnTo: `${ORIGIN}/app?tab=1`, ...changed }),
  );

describe('the redirect page in a window of its own', () => {
  test('hands the answer over, and closes the window', async () => {
    const { received, end } = listen();
    const answer = arrive();
    await answerLogin();
    end();
    expect(received).toEqual([{ kind: 'answer', answer }]);
    expect(page.current.isClosed).toBe(true);
    expect(page.current.document.text).toMatch(/^You can close this window/);
    expect(page.current.stored.size).toBe(0);
  });

  test('hands the answer over even if the browser blocks the session storage', async () => {
    page.current.blockStorage();
    const { received, end } = listen();
    const answer = arrive();
    await answerLogin();
    end();
    expect(received).toEqual([{ kind: 'answer', answer }]);
  });

  test('removes the answer from the address bar before it does anything else', () => {
    arrive(`/back?code=secret&state=${STATE}`);
    vi.stubGlobal('BroadcastChannel', undefined);
    answerLogin().catch(() => {});
    expect(page.current.addresses.at(-1)).toBe(`${ORIGIN}/back`);
  });

  test('removes the answer from an address that looks like another host', () => {
    arrive(`//evil.example/back#state=${STATE}`);
    vi.stubGlobal('BroadcastChannel', undefined);
    answerLogin().catch(() => {});
    expect(page.current.addresses.at(-1)).toBe(`${ORIGIN}//evil.example/back`);
  });

  test('hands over the body of a form_post', async () => {
    const { received, end } = listen();
    arrive('/back');
    const body = `state=${STATE}&id_token=secret`;
    await answerLogin(body);
    end();
    expect(received).toEqual([{ kind: 'answer', answer: body }]);
  });

  test.each<[string, unknown]>([
    ['no page replies', null],
    ['the reply is not an acknowledgement', { kind: 'answer', answer: 'x' }],
  ])('tells the user to log in again if %s', async (_, reply) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { received, end } = listen(reply);
    arrive();
    const done = answerLogin();
    vi.useRealTimers();
    await expect.poll(() => received).toHaveLength(1);
    end();
    expect(page.current.document.text).toMatch(/^Handing over/);
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    page.current.isClosed = false;
    const again = answerLogin(`${ORIGIN}/back#state=${STATE}&id_token=secret`);
    await vi.advanceTimersByTimeAsync(5000);
    await again;
    expect(page.current.document.text).toMatch(/no longer waits/);
    expect(page.current.isClosed).toBe(false);
    void done;
  });

  test('lets the page show these messages in its own way', async () => {
    const said: string[] = [];
    arrive('/back');
    await answerLogin(undefined, (text) => said.push(text));
    expect(said).toEqual([expect.stringMatching(/^This page completes a login/)]);
    expect(page.current.document.text).toBe('');
  });
});

test.each(['/back', '/back#id_token=x', `/back?state=1#state=${STATE}`, `/back#state=1&state=2`])(
  'the redirect page does not hand over %s, which does not have exactly one state',
  async (back) => {
    storePointer();
    arrive(back);
    await answerLogin();
    expect(page.current.document.text).toMatch(/^This page completes a login/);
    expect([...page.current.stored.keys()]).toEqual([POINTER]);
    expect([page.current.destinations, page.current.isClosed]).toEqual([[], false]);
  },
);

describe('the redirect page in the tab of the page that began the login', () => {
  test('stores the answer for the wallet, and goes back', async () => {
    storePointer();
    const answer = arrive();
    await answerLogin();
    expect([...page.current.stored]).toEqual([[ANSWER, JSON.stringify({ wallet: 'w', answer })]]);
    expect(page.current.destinations).toEqual([`${ORIGIN}/app?tab=1`]);
    expect(page.current.addresses.at(-1)).toBe(`${ORIGIN}/back`);
  });

  test.each(['https://evil.example/', 'javascript:alert(1)', '//evil.example/', 'data:text/html,x'])(
    'never goes to %s',
    async (returnTo) => {
      storePointer({ returnTo });
      arrive();
      await answerLogin();
      expect(page.current.destinations).toEqual(['/']);
    },
  );

  test.each<[string, string | object]>([
    ['of another state', { state: '1'.repeat(64) }],
    ['that is not JSON', '{'],
    ['without a wallet', { wallet: 1 }],
  ])('ignores an entry %s', async (_, entry) => {
    const { received, end } = listen();
    if (typeof entry === 'string') page.current.stored.set(POINTER, entry);
    else storePointer(entry);
    arrive();
    await answerLogin();
    end();
    expect(received).toHaveLength(1);
    expect(page.current.destinations).toEqual([]);
    expect([...page.current.stored.keys()]).toEqual([POINTER]);
  });
});
