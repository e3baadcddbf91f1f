/** The page at redirectUri, which receives the provider's answer. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import { channelName } from '../../../../src/library/wallet/handover.ts';
import { answerLogin } from '../../../../src/library/wallet/redirect.ts';
import { ORIGIN, usePage } from './page.ts';

const page = usePage();
const STATE = 'ab'.repeat(32);
const POINTER = 'sui-enclave/wallet/redirect';
const ANSWER = 'sui-enclave/wallet/answer';

afterEach(() => void vi.useRealTimers());

/** Opens the page like a provider that sends the user to it. */
function arrive(back = `/back#state=${STATE}&id_token=secret`): string {
  page.current.addresses.push(`${ORIGIN}${back}`);
  return `${ORIGIN}${back}`;
}

/** Listens like the page that began the login. @returns the received messages */
function waiting(reply: unknown = { kind: 'taken' }) {
  const arrived: unknown[] = [];
  const channel = new BroadcastChannel(channelName(STATE));
  channel.addEventListener('message', ({ data }) => {
    arrived.push(data);
    if (reply !== null) channel.postMessage(reply);
  });
  return { arrived, end: () => channel.close() };
}

const pointTo = (changed: object = {}) =>
  page.current.stored.set(
    POINTER,
    JSON.stringify({ wallet: 'w', state: STATE, returnTo: `${ORIGIN}/app?tab=1`, ...changed }),
  );

describe('the redirect page in a window of its own', () => {
  test('hands the answer over, and closes the window', async () => {
    const { arrived, end } = waiting();
    const answer = arrive();
    await answerLogin();
    end();
    expect(arrived).toEqual([{ kind: 'answer', answer }]);
    expect(page.current.isClosed).toBe(true);
    expect(page.current.document.text).toMatch(/^You can close this window/);
    expect(page.current.stored.size).toBe(0);
  });

  test('takes the answer out of the address bar before anything else', () => {
    arrive(`/back?code=secret&state=${STATE}`);
    vi.stubGlobal('BroadcastChannel', undefined);
    answerLogin().catch(() => {});
    expect(page.current.addresses.at(-1)).toBe(`${ORIGIN}/back`);
  });

  test('takes the answer out of an address that looks like another host', () => {
    arrive(`//evil.example/back#state=${STATE}`);
    vi.stubGlobal('BroadcastChannel', undefined);
    answerLogin().catch(() => {});
    expect(page.current.addresses.at(-1)).toBe(`${ORIGIN}//evil.example/back`);
  });

  test('hands over the body of a form_post', async () => {
    const { arrived, end } = waiting();
    arrive('/back');
    const body = `state=${STATE}&id_token=secret`;
    await answerLogin(body);
    end();
    expect(arrived).toEqual([{ kind: 'answer', answer: body }]);
  });

  test.each<[string, unknown]>([
    ['nobody', null],
    ['somebody who says something else', { kind: 'answer', answer: 'x' }],
  ])('says that the login is over when %s answers', async (_, reply) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const { arrived, end } = waiting(reply);
    arrive();
    const done = answerLogin();
    vi.useRealTimers();
    await expect.poll(() => arrived).toHaveLength(1);
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
    expect(said).toEqual([expect.stringMatching(/^This page ends a login/)]);
    expect(page.current.document.text).toBe('');
  });
});

test.each(['/back', '/back#id_token=x', `/back?state=1#state=${STATE}`, `/back#state=1&state=2`])(
  'the redirect page without exactly one state, as in %s, does nothing',
  async (back) => {
    pointTo();
    arrive(back);
    await answerLogin();
    expect(page.current.document.text).toMatch(/^This page ends a login/);
    expect([...page.current.stored.keys()]).toEqual([POINTER]);
    expect([page.current.left, page.current.isClosed]).toEqual([[], false]);
  },
);

describe('the redirect page in the tab of the page that began the login', () => {
  test('keeps the answer for its wallet, and goes back', async () => {
    pointTo();
    const answer = arrive();
    await answerLogin();
    expect([...page.current.stored]).toEqual([[ANSWER, JSON.stringify({ wallet: 'w', answer })]]);
    expect(page.current.left).toEqual([`${ORIGIN}/app?tab=1`]);
    expect(page.current.addresses.at(-1)).toBe(`${ORIGIN}/back`);
  });

  test.each(['https://evil.example/', 'javascript:alert(1)', '//evil.example/', 'data:text/html,x'])(
    'never goes to %s',
    async (returnTo) => {
      pointTo({ returnTo });
      arrive();
      await answerLogin();
      expect(page.current.left).toEqual(['/']);
    },
  );

  test.each<[string, string | object]>([
    ['of another state', { state: '1'.repeat(64) }],
    ['that is not JSON', '{'],
    ['without a wallet', { wallet: 1 }],
  ])('does not follow an entry %s', async (_, entry) => {
    const { arrived, end } = waiting();
    if (typeof entry === 'string') page.current.stored.set(POINTER, entry);
    else pointTo(entry);
    arrive();
    await answerLogin();
    end();
    expect(arrived).toHaveLength(1);
    expect(page.current.left).toEqual([]);
    expect([...page.current.stored.keys()]).toEqual([POINTER]);
  });
});
