/** Tests logins from the click to the account, with windows, redirects, and pages that interfere. */
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import {
  isWalletStandardError,
  WALLET_STANDARD_ERROR__USER__REQUEST_REJECTED,
} from '@mysten/wallet-standard';
import { describe, expect, test, vi } from 'vitest';
import { createMemoryStore, deriveAddress, PROVIDERS } from '../../../../src/library/zklogin/index.ts';
import { serve } from '../loopback.ts';
import { CLIENT_ID, SUBJECT } from '../zklogin/support.ts';
import { ORIGIN, usePage } from './page.ts';
import {
  connect,
  connectSilently,
  createProof,
  createRedirect,
  disconnect,
  FakeNode,
  GOOGLE,
  handOver,
  POINTS,
  post,
  type RegisterOverrides,
  register,
  SALT,
} from './support.ts';

const page = usePage();

/** Returns whether the error makes a connect button say "You cancelled". */
const isCancelled = (error: unknown) =>
  isWalletStandardError(error, WALLET_STANDARD_ERROR__USER__REQUEST_REJECTED);

const ADDRESS = deriveAddress({
  issuer: 'https://accounts.google.com',
  subject: SUBJECT,
  audience: CLIENT_ID,
  salt: SALT,
  legacyAddress: false,
});

/** Returns the URL to which the latest window was sent. */
async function readSentUrl(): Promise<URL> {
  return await vi.waitFor(() => {
    const [first] = page.current.latest.sentTo;
    if (first === undefined) throw new Error('the window is blank');
    return first.url;
  }, 60_000);
}

/** Registers a wallet whose user has logged in. */
async function logIn(options: RegisterOverrides = {}) {
  const registered = register(options);
  const connection = connect(registered.wallet);
  expect(await handOver(createRedirect(await readSentUrl()))).toBe(true);
  await connection;
  return registered;
}

/** Creates a node that answers no request before `answerEpoch` is called. */
function createSlowNode() {
  const node = new FakeNode();
  const { promise, resolve } = Promise.withResolvers<void>();
  node.ready = promise;
  const answerEpoch = async () => {
    resolve();
    await turn();
  };
  return { node, answerEpoch };
}

const listKeys = () => [...page.current.stored.keys()];
const joinStored = () => [...page.current.stored].flat().join('\n');

describe('a login in a window', () => {
  test('opens the window within the click, without an opener, and sends it to the provider', async () => {
    const { wallet } = register();
    const connection = connect(wallet);
    expect(page.current.opened).toHaveLength(1);
    const url = await readSentUrl();
    expect(url.origin).toBe('https://accounts.google.com');
    expect(url.searchParams.get('redirect_uri')).toBe(`${ORIGIN}/back`);
    expect(page.current.latest.sentTo.map(({ opener }) => opener)).toEqual([null]);
    await handOver(createRedirect(url));
    const { accounts } = await connection;
    expect(accounts).toBe(wallet.accounts);
    expect(accounts.map(({ address, chains }) => ({ address, chains }))).toEqual([
      { address: ADDRESS, chains: ['sui:localnet'] },
    ]);
    expect(page.current.latest.closed).toBe(true);
    expect(page.current.destinations).toEqual([]);
  });

  test('tells the dapp of the account, and leaves only the session in the storage', async () => {
    const { changes } = await logIn();
    expect(changes).toEqual([[ADDRESS]]);
    expect(listKeys()).toEqual([
      `sui-enclave/wallet/https%3A%2F%2Faccounts.google.com/${CLIENT_ID}/sui-enclave/zklogin/session`,
    ]);
    expect(joinStored()).not.toMatch(/eyJ\w+\.eyJ/);
  });

  test('is not repeated while the session is open', async () => {
    const { wallet } = await logIn();
    const { accounts } = await connect(wallet);
    expect(accounts.map(({ address }) => address)).toEqual([ADDRESS]);
    expect(page.current.opened).toHaveLength(1);
  });

  test('is not begun by a silent connect', async () => {
    const { wallet } = register();
    expect(await connectSilently(wallet)).toEqual([]);
    expect(page.current.opened).toEqual([]);
    expect(page.current.destinations).toEqual([]);
  });

  test('rejects when a second login supersedes it, and an answer to the first login has no effect', async () => {
    const { wallet } = register();
    const first = connect(wallet);
    first.catch(() => {});
    const [old, oldUrl] = [page.current.latest, await readSentUrl()];
    const second = connect(wallet);
    await expect(first).rejects.toMatchObject({ code: 'ZKLOGIN_CLOSED' });
    expect(isCancelled(await first.catch((error) => error))).toBe(false);
    expect(old.closed).toBe(true);
    const url = await readSentUrl();
    expect(await post(oldUrl.searchParams.get('state') ?? '', { kind: 'answer', answer: 'x' })).toBe(false);
    await handOver(createRedirect(url));
    expect((await second).accounts).toHaveLength(1);
  });

  test.each([
    ['disconnected', (wallet: ReturnType<typeof register>) => disconnect(wallet.wallet)],
    ['unregistered', (wallet: ReturnType<typeof register>) => wallet.unregister()],
  ])('rejects when the wallet is %s, and leaves nothing in the storage', async (_, end) => {
    const registered = register();
    const connection = connect(registered.wallet);
    connection.catch(() => {});
    await readSentUrl();
    await end(registered);
    await expect(connection).rejects.toMatchObject({ code: 'ZKLOGIN_CLOSED' });
    expect(page.current.latest.closed).toBe(true);
    expect(listKeys()).toEqual([]);
  });

  test('that is superseded while the node returns the epoch does not replace the later login', async () => {
    const { node, answerEpoch } = createSlowNode();
    const { wallet } = register({ client: node.client });
    const first = connect(wallet);
    first.catch(() => {});
    node.ready = Promise.resolve();
    const second = connect(wallet);
    const url = await readSentUrl();
    await answerEpoch();
    await handOver(createRedirect(url));
    expect((await second).accounts).toHaveLength(1);
    await expect(first).rejects.toMatchObject({ code: 'ZKLOGIN_CLOSED' });
  });

  test.each([
    ['disconnected', (wallet: ReturnType<typeof register>) => disconnect(wallet.wallet)],
    ['unregistered', (wallet: ReturnType<typeof register>) => wallet.unregister()],
  ])('stores no key if the wallet is %s while the node returns the epoch', async (_, end) => {
    const { node, answerEpoch } = createSlowNode();
    const registered = register({ client: node.client });
    const connection = connect(registered.wallet);
    connection.catch(() => {});
    await end(registered);
    await expect(connection).rejects.toMatchObject({ code: 'ZKLOGIN_CLOSED' });
    await answerEpoch();
    expect(listKeys()).toEqual([]);
  });

  test('rejects when the node does not return the epoch, and closes the window', async () => {
    const node = new FakeNode();
    node.isDown = true;
    const { wallet } = register({ client: node.client });
    await expect(connect(wallet)).rejects.toMatchObject({ code: 'SUI_NODE_UNREACHABLE' });
    expect(page.current.latest).toMatchObject({ closed: true, sentTo: [] });
  });
});

describe('in a browser that blocks the session storage', () => {
  test('a wallet with another storage connects', async () => {
    page.current.blockStorage();
    const { wallet } = await logIn({ storage: createMemoryStore() });
    expect(wallet.accounts).toHaveLength(1);
  });

  test('a blocked login window ends the login, since it cannot continue in this tab', async () => {
    page.current.blockStorage();
    page.current.blocksWindows = true;
    const { wallet } = register({ storage: createMemoryStore() });
    await expect(connect(wallet)).rejects.toMatchObject({ code: 'ZKLOGIN_CLOSED' });
    expect(page.current.destinations).toEqual([]);
  });

  test('a wallet without another storage is refused', () => {
    page.current.blockStorage();
    expect(() => register()).toThrow(expect.objectContaining({ code: 'ZKLOGIN_STORAGE' }));
  });
});

describe('a login window that looks closed', () => {
  /** Connects, with timers that the test controls. */
  async function startConnecting() {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] });
    const { wallet } = register();
    let outcome: unknown = 'pending';
    const connection = connect(wallet).then(
      () => 'connected',
      (error) => (isCancelled(error) ? 'cancelled' : error.code),
    );
    connection.then((login) => {
      outcome = login;
    });
    await turn();
    return { state: () => outcome, url: page.current.latest.sentTo[0]?.url, connection };
  }
  const pass = async (ms: number) => {
    await vi.advanceTimersByTimeAsync(ms);
    await turn();
  };
  const testInFakeTime = (name: string, body: () => Promise<void>) =>
    test(name, async () => {
      try {
        await body();
      } finally {
        vi.useRealTimers();
      }
    });

  testInFakeTime('ends the login once the user has been on this page for two seconds', async () => {
    const { state } = await startConnecting();
    page.current.latest.closed = true;
    await pass(1750);
    expect(state()).toBe('pending');
    await pass(250);
    expect(state()).toBe('cancelled');
    expect(listKeys()).toEqual([]);
  });

  testInFakeTime(
    'counts as open while the user is elsewhere, since a provider may make it look closed',
    async () => {
      const { state, url, connection } = await startConnecting();
      page.current.latest.closed = true;
      page.current.document.focused = false;
      await pass(9 * 60_000);
      // A short focus of this page is not enough.
      page.current.document.focused = true;
      await pass(1000);
      page.current.document.focused = false;
      await pass(1000);
      page.current.document.focused = true;
      await pass(1000);
      expect(state()).toBe('pending');
      vi.useRealTimers();
      await handOver(createRedirect(url ?? new URL(ORIGIN)));
      expect(await connection).toBe('connected');
    },
  );

  testInFakeTime('ends the login after ten minutes in any case', async () => {
    const { state } = await startConnecting();
    await pass(10 * 60_000 - 1);
    expect(state()).toBe('pending');
    await pass(1);
    expect(state()).toBe('ZKLOGIN_CLOSED');
    expect(page.current.latest.closed).toBe(true);
  });
});

describe('a message to the page that waits', () => {
  test.each<[string, unknown]>([
    ['not an object', 'answer'],
    ['null', null],
    ['of another kind', { kind: 'taken' }],
    ['without an answer', { kind: 'answer' }],
    ['with an answer that is not a string', { kind: 'answer', answer: { toString: 1 } }],
  ])('has no effect if it is %s', async (_, message) => {
    const { wallet } = register();
    const connection = connect(wallet);
    const url = await readSentUrl();
    expect(await post(url.searchParams.get('state') ?? '', message)).toBe(false);
    await handOver(createRedirect(url));
    expect((await connection).accounts).toHaveLength(1);
  });

  test('has no effect from another origin', async () => {
    const { wallet } = register();
    const connection = connect(wallet);
    const url = await readSentUrl();
    page.current.messageOrigin = 'https://evil.example';
    const answer = createRedirect(url);
    expect(await post(url.searchParams.get('state') ?? '', { kind: 'answer', answer })).toBe(false);
    page.current.messageOrigin = ORIGIN;
    await handOver(answer);
    expect((await connection).accounts).toHaveLength(1);
  });

  test('has no effect with another state', async () => {
    const { wallet } = register();
    const connection = connect(wallet);
    const url = await readSentUrl();
    expect(await post('0'.repeat(64), { kind: 'answer', answer: createRedirect(url) })).toBe(false);
    await handOver(createRedirect(url));
    await connection;
  });

  test('has no effect if it is sent to the window and not to the channel', async () => {
    const { wallet } = register();
    const connection = connect(wallet);
    const url = await readSentUrl();
    const data = { kind: 'answer', answer: createRedirect(url) };
    page.current.window.dispatchEvent(new MessageEvent('message', { data, origin: ORIGIN }));
    await turn();
    expect(wallet.accounts).toEqual([]);
    await handOver(createRedirect(url));
    await connection;
  });

  test.each<[string, (url: URL) => string, string]>([
    ['another state in the answer', (url) => createRedirect(url, { state: '1'.repeat(64) }), 'ZKLOGIN_STATE'],
    ['a token for another key', (url) => createRedirect(url, {}, { nonce: 'x'.repeat(27) }), 'ZKLOGIN_NONCE'],
    ['a token for another client', (url) => createRedirect(url, {}, { aud: 'other' }), 'ZKLOGIN_CLAIM'],
    [
      'a token of another issuer',
      (url) => createRedirect(url, {}, { iss: 'https://evil.example' }),
      'ZKLOGIN_CLAIM',
    ],
    ['an expired token', (url) => createRedirect(url, {}, { iat: 1, exp: 2 }), 'ZKLOGIN_TOKEN_TIME'],
    [
      'a refusal by the provider',
      (url) => createRedirect(url, { error: 'invalid_scope' }),
      'ZKLOGIN_PROVIDER_REFUSED',
    ],
    ['a refusal by the user', (url) => createRedirect(url, { error: 'access_denied' }), 'ZKLOGIN_CLOSED'],
    ['the URL of another page', (url) => createRedirect(url).replace('/back', '/else'), 'ZKLOGIN_REDIRECT'],
  ])('ends the login and leaves nothing in the storage if it has %s', async (_, answerTo, code) => {
    const { wallet } = register();
    const connection = connect(wallet);
    connection.catch(() => {});
    const url = await readSentUrl();
    await post(url.searchParams.get('state') ?? '', { kind: 'answer', answer: answerTo(url) });
    await expect(connection).rejects.toMatchObject({ code });
    expect(wallet.accounts).toEqual([]);
    expect(listKeys()).toEqual([]);
  });

  test('counts once: the same answer again has no effect', async () => {
    const { wallet, changes } = register();
    const connection = connect(wallet);
    const answer = createRedirect(await readSentUrl());
    expect(await handOver(answer)).toBe(true);
    await connection;
    const state = new URLSearchParams(new URL(answer).hash.slice(1)).get('state') ?? '';
    expect(await post(state, { kind: 'answer', answer })).toBe(false);
    expect(changes).toEqual([[ADDRESS]]);
  });
});

describe('a login whose window the browser blocks', () => {
  const POINTER = 'sui-enclave/wallet/redirect';
  const ANSWER = 'sui-enclave/wallet/answer';

  /** Goes to the provider, which ends the page. @returns the URL of the provider */
  async function leave(): Promise<URL> {
    page.current.blocksWindows = true;
    const { wallet } = register();
    connect(wallet).catch(() => {});
    return await vi.waitFor(() => new URL(page.current.destinations[0] ?? ''), 60_000);
  }

  /** Loads the page again, with the same session storage, but nothing else of the earlier page. */
  function load(options: RegisterOverrides = {}) {
    const { stored } = page.current;
    page.current = new (Object.getPrototypeOf(page.current).constructor)();
    for (const [key, value] of stored) page.current.stored.set(key, value);
    page.current.install();
    return register(options);
  }

  /** Does what the redirect page does, as redirect.test.ts shows. */
  function bringBack(answer: string): void {
    const { wallet, returnTo } = JSON.parse(page.current.stored.get(POINTER) ?? '{}');
    expect(returnTo).toBe(`${ORIGIN}/app?tab=1#part`);
    page.current.stored.delete(POINTER);
    page.current.stored.set(ANSWER, JSON.stringify({ wallet, answer }));
  }

  test('continues in this tab, and connects without a window when the page is loaded again', async () => {
    const url = await leave();
    expect(url.origin).toBe('https://accounts.google.com');
    bringBack(createRedirect(url));
    const { wallet, changes } = load();
    expect(page.current.stored.has(ANSWER)).toBe(false);
    const { accounts } = await connect(wallet);
    expect(accounts.map(({ address }) => address)).toEqual([ADDRESS]);
    expect(changes).toEqual([[ADDRESS]]);
    expect([page.current.opened, page.current.destinations]).toEqual([[], []]);
    expect(joinStored()).not.toMatch(/eyJ\w+\.eyJ/);
  });

  test('also makes a silent connect wait for the account', async () => {
    bringBack(createRedirect(await leave()));
    expect(await connectSilently(load().wallet)).toEqual([ADDRESS]);
  });

  test('rejects the first connect after a refusal; the next connect begins a new login', async () => {
    bringBack(createRedirect(await leave(), { error: 'access_denied' }));
    const { wallet } = load();
    const refused = await connect(wallet).catch((error) => error);
    expect(isCancelled(refused)).toBe(true);
    expect(listKeys()).toEqual([]);
    const connection = connect(wallet);
    await handOver(createRedirect(await readSentUrl()));
    await connection;
  });

  test('is not completed by another wallet', async () => {
    bringBack(createRedirect(await leave()));
    const { wallet } = load({ providers: [{ ...GOOGLE, clientId: 'another' }] });
    expect(await connectSilently(wallet)).toEqual([]);
    expect(page.current.stored.has(ANSWER)).toBe(true);
  });

  test('is refused if the page did not ask for the answer', async () => {
    const url = await leave();
    page.current.stored.clear();
    const id = `sui-enclave/wallet/https%3A%2F%2Faccounts.google.com/${CLIENT_ID}`;
    page.current.stored.set(ANSWER, JSON.stringify({ wallet: id, answer: createRedirect(url) }));
    const { wallet } = load();
    await expect(connect(wallet)).rejects.toMatchObject({ code: 'ZKLOGIN_NO_LOGIN' });
  });

  test('does not return to an address that contains an answer', async () => {
    page.current.addresses.push(`${ORIGIN}/app#state=1&id_token=from_before`);
    await leave();
    expect(joinStored()).not.toContain('from_before');
    expect(JSON.parse(page.current.stored.get(POINTER) ?? '')).toMatchObject({ returnTo: `${ORIGIN}/app` });
  });

  test('rejects when the user goes back, and forgets the login', async () => {
    page.current.blocksWindows = true;
    const { wallet } = register();
    const connection = connect(wallet);
    connection.catch(() => {});
    await expect.poll(() => page.current.destinations).toHaveLength(1);
    const shown = Object.assign(new Event('pageshow'), { persisted: true });
    page.current.window.dispatchEvent(shown);
    await expect(connection).rejects.toMatchObject({ code: 'ZKLOGIN_CLOSED' });
    expect(isCancelled(await connection.catch((error) => error))).toBe(true);
    expect(listKeys()).toEqual([]);
  });

  test('rejects if the storage may not survive a redirect', async () => {
    page.current.blocksWindows = true;
    const { wallet } = register({ storage: createMemoryStore() });
    const blocked = await connect(wallet).catch((error) => error);
    expect([blocked.code, isCancelled(blocked)]).toEqual(['ZKLOGIN_CLOSED', false]);
    expect(page.current.destinations).toEqual([]);
  });
});

describe('the salt and the proof', () => {
  test('are requested with a signal that a later connect aborts', async () => {
    let signal: AbortSignal | undefined;
    let answers = false;
    const { wallet } = register({
      salt: async (_, request) => {
        if (answers) return SALT;
        signal = request.signal;
        return await new Promise<string>(() => {});
      },
    });
    const first = connect(wallet);
    first.catch(() => {});
    await handOver(createRedirect(await readSentUrl()));
    await expect.poll(() => signal?.aborted).toBe(false);
    answers = true;
    const second = connect(wallet);
    expect(signal?.aborted).toBe(true);
    await expect(first).rejects.toMatchObject({ code: 'ZKLOGIN_CLOSED' });
    // The first login's token is used, so no second window opens.
    expect((await second).accounts).toHaveLength(1);
    expect(page.current.opened).toHaveLength(1);
  });

  /** Logs in against a prover that fails. */
  async function failProof(error: unknown) {
    const attempts = { count: 0, fails: true };
    const node = new FakeNode();
    const registered = register({
      client: node.client,
      prover: async (request) => {
        attempts.count++;
        if (attempts.fails) throw error;
        return await createProof(request);
      },
    });
    const connection = connect(registered.wallet);
    connection.catch(() => {});
    await handOver(createRedirect(await readSentUrl()));
    await expect(connection).rejects.toBe(error);
    return { ...registered, attempts, node };
  }

  test('that a service did not return are requested again by the next connect, without a new login', async () => {
    const { wallet, attempts } = await failProof(new TypeError('fetch failed'));
    attempts.fails = false;
    expect((await connect(wallet)).accounts).toHaveLength(1);
    expect(page.current.opened).toHaveLength(1);
  });

  test('that fail a second time for an unknown reason end the login', async () => {
    const { wallet } = await failProof(new TypeError('fetch failed'));
    await expect(connect(wallet)).rejects.toThrow('fetch failed');
    expect(listKeys()).toEqual([]);
  });

  test('of a login that has become too old are not requested: a new login begins', async () => {
    const { wallet, attempts, node } = await failProof(new TypeError('fetch failed'));
    attempts.fails = false;
    node.epoch = 103;
    const connection = connect(wallet);
    await expect.poll(() => page.current.opened).toHaveLength(2);
    await handOver(createRedirect(await readSentUrl()));
    await connection;
  });

  test('of a token that has expired are not requested: a new login begins within the click', async () => {
    const { wallet, attempts } = await failProof(new TypeError('fetch failed'));
    attempts.fails = false;
    const later = Date.now() + 3_700_000;
    const clock = vi.spyOn(Date, 'now').mockReturnValue(later);
    const connection = connect(wallet);
    expect(page.current.opened).toHaveLength(2);
    await handOver(createRedirect(await readSentUrl()));
    await connection;
    clock.mockRestore();
  });

  test.each([
    [401, 0],
    [503, 1],
    [429, 1],
  ])('refused by a service with status %i leave %i logins in the storage', async (status, left) => {
    const salt = await serve((_, response) => response.writeHead(status).end('{}'));
    const { wallet } = register({ salt });
    const connection = connect(wallet);
    connection.catch(() => {});
    await handOver(createRedirect(await readSentUrl()));
    await expect(connection).rejects.toMatchObject({ code: 'ZKLOGIN_REFUSED', status });
    expect(listKeys()).toHaveLength(left);
  });

  test('for another token end the login', async () => {
    const { wallet } = register({ prover: async () => POINTS });
    const connection = connect(wallet);
    connection.catch(() => {});
    await handOver(createRedirect(await readSentUrl()));
    await expect(connection).rejects.toMatchObject({ code: 'ZKLOGIN_PROOF' });
    expect(listKeys()).toEqual([]);
  });

  test('are requested from services if the options are URLs', async () => {
    const paths: string[] = [];
    const url = await serve(async (request, response) => {
      paths.push(request.url ?? '');
      const body = JSON.parse(await text(request));
      response.end(JSON.stringify(paths.length === 1 ? { salt: SALT } : await createProof(body)));
    });
    await logIn({ salt: url, prover: `${url}/v1` });
    expect(paths).toEqual(['/get_salt', '/v1']);
  });
});

describe('a page that is loaded again', () => {
  test('has the account of an open session without a window', async () => {
    const { unregister } = await logIn();
    unregister();
    const { wallet, changes } = register();
    expect(await connectSilently(wallet)).toEqual([ADDRESS]);
    expect(changes).toEqual([[ADDRESS]]);
    expect((await connect(wallet)).accounts).toHaveLength(1);
    expect(page.current.opened).toHaveLength(1);
  });

  test('has no account if the session has expired, and connect logs in', async () => {
    const node = new FakeNode();
    const { unregister } = await logIn({ client: node.client });
    unregister();
    node.epoch = 103;
    const { wallet } = register({ client: node.client });
    expect(await connectSilently(wallet)).toEqual([]);
    const connection = connect(wallet);
    expect(page.current.opened).toHaveLength(2);
    await handOver(createRedirect(await readSentUrl()));
    expect((await connection).accounts).toHaveLength(1);
  });

  test('keeps the account when a node does not answer', async () => {
    const { unregister } = await logIn();
    unregister();
    const node = new FakeNode();
    node.isDown = true;
    expect(await connectSilently(register({ client: node.client }).wallet)).toEqual([ADDRESS]);
  });

  test('has no account if the stored text is not a session, and connect reports this once', async () => {
    const id = `sui-enclave/wallet/https%3A%2F%2Faccounts.google.com/${CLIENT_ID}`;
    page.current.stored.set(`${id}/sui-enclave/zklogin/session`, '{');
    const { wallet } = register();
    await expect(connect(wallet)).rejects.toMatchObject({ code: 'ZKLOGIN_STORAGE' });
    expect(await connectSilently(wallet)).toEqual([]);
    const connection = connect(wallet);
    await handOver(createRedirect(await readSentUrl()));
    await connection;
  });
});

describe('a stored login that is damaged', () => {
  const LOGIN = `sui-enclave/wallet/https%3A%2F%2Faccounts.google.com/${CLIENT_ID}/sui-enclave/zklogin/login`;

  test.each(['{', '5', '{"stage":"complete"}', '{"stage":"complete","jwt":"a.b.c"}'])(
    'is replaced by a new login within the click: %s',
    async (stored) => {
      page.current.stored.set(LOGIN, stored);
      const { wallet } = register();
      const connection = connect(wallet);
      expect(page.current.opened).toHaveLength(1);
      await handOver(createRedirect(await readSentUrl()));
      expect((await connection).accounts).toHaveLength(1);
    },
  );

  test('only in its key makes one connect fail, and is removed', async () => {
    let isDown = true;
    const { wallet } = register({
      salt: async () => {
        if (isDown) throw new TypeError('fetch failed');
        return SALT;
      },
    });
    const first = connect(wallet);
    first.catch(() => {});
    await handOver(createRedirect(await readSentUrl()));
    await expect(first).rejects.toThrow('fetch failed');
    isDown = false;
    const login = JSON.parse(page.current.stored.get(LOGIN) ?? '');
    page.current.stored.set(LOGIN, JSON.stringify({ ...login, secretKey: 'suiprivkey1' }));
    await expect(connect(wallet)).rejects.toMatchObject({ code: 'ZKLOGIN_STORAGE' });
    expect(listKeys()).toEqual([]);
  });
});

describe('two providers', () => {
  const TWITCH = { provider: PROVIDERS.twitch, clientId: 'twitch-client' };
  const twitchClaims = { iss: PROVIDERS.twitch.issuer };

  test('each have a wallet and a session, which end separately', async () => {
    const both = { providers: [GOOGLE, TWITCH] };
    const { wallets, unregister } = register(both);
    const [google, twitch] = wallets;
    if (!google || !twitch) throw new Error('a wallet is missing');
    expect(wallets.map(({ name }) => name)).toEqual(['Google (this app only)', 'Twitch (this app only)']);
    // Both logins run at the same time, and neither disturbs the other.
    const first = connect(google);
    const googleUrl = await readSentUrl();
    const second = connect(twitch);
    const twitchUrl = await readSentUrl();
    expect(twitchUrl.origin).toBe('https://id.twitch.tv');
    await handOver(createRedirect(twitchUrl, {}, twitchClaims));
    await handOver(createRedirect(googleUrl));
    await Promise.all([first, second]);
    expect(google.accounts[0]?.address).toBe(ADDRESS);
    expect(twitch.accounts[0]?.address).not.toBe(ADDRESS);
    expect(listKeys()).toHaveLength(2);

    await disconnect(twitch);
    expect([google.accounts.length, twitch.accounts.length]).toEqual([1, 0]);
    unregister();
    const again = register(both).wallets;
    expect(await Promise.all(again.map(connectSilently))).toEqual([[ADDRESS], []]);
  });

  test('have ids without a colon, which dapp-kit would cut', () => {
    for (const { id } of register({ providers: [GOOGLE, TWITCH] }).wallets) expect(id).not.toContain(':');
  });
});

test('disconnect removes the session and tells the dapp', async () => {
  const { wallet, changes } = await logIn();
  await disconnect(wallet);
  expect(changes).toEqual([[ADDRESS], []]);
  expect(listKeys()).toEqual([]);
  expect(await connectSilently(wallet)).toEqual([]);
});
