/**
 * Checks a page's login, from a click to a session: the states that the hook shows, and the entries that it
 * leaves in the storage.
 */
import type { ServerResponse } from 'node:http';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { createElement } from 'react';
import { renderToString } from 'react-dom/server';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { LoopbackNode } from '../../../../src/devnet/node.ts';
import { type UsedZkLogin, useZkLogin, type ZkLoginOptions } from '../../../../src/library/react/index.ts';
import {
  createMemoryStore,
  PROVIDERS,
  type Proof,
  type SessionStore,
} from '../../../../src/library/zklogin/index.ts';
import { serve } from '../loopback.ts';
import {
  type Begun,
  begin,
  CLIENT_ID,
  createJwt,
  issuerDetails,
  REDIRECT_URI,
  vector,
} from '../zklogin/support.ts';
import { type Rendered, renderHook } from './render.ts';

const [{ partialInputs }] = vector('proofs');
const LOG_IN = { provider: PROVIDERS.google, clientId: CLIENT_ID, redirectUri: REDIRECT_URI };
const SALT = '12345';
const EPOCH = 100n;

let node: LoopbackNode;
let client: SuiGrpcClient;
beforeAll(async () => {
  node = await LoopbackNode.start(new Uint8Array());
  client = new SuiGrpcClient({ network: 'localnet', baseUrl: node.url });
});
afterAll(() => node.close());
beforeEach(() => {
  node.epoch = EPOCH;
  node.faults.clear();
});

/** Fakes the page's address, and its navigation. */
function stubPage(href = 'https://wallet.example/') {
  const events = new EventTarget();
  const location = {
    href,
    get pathname() {
      return new URL(this.href).pathname;
    },
    assign: vi.fn<(url: string) => void>(),
  };
  const replaceState = vi.fn((_state: unknown, _title: string, path: string) => {
    location.href = new URL(path, location.href).href;
  });
  vi.stubGlobal('location', location);
  vi.stubGlobal('history', { state: null, replaceState });
  vi.stubGlobal('addEventListener', events.addEventListener.bind(events));
  vi.stubGlobal('removeEventListener', events.removeEventListener.bind(events));
  return { location, events };
}

/** Begins a login, and makes the provider's token for it. */
function answerLogin(begun: Begun = begin()) {
  const iat = Math.floor(Date.now() / 1000);
  const jwt = createJwt({ ...begun.claims, iat, exp: iat + 3600 });
  return { storage: begun.storage, jwt, back: begun.back({ id_token: jwt }) };
}

function proofFor(jwt: string): Proof {
  const [headerBase64 = ''] = jwt.split('.');
  const issBase64Details = issuerDetails(jwt, '"iss":"https://accounts.google.com",');
  return { ...partialInputs, headerBase64, issBase64Details };
}

const services = () => ({
  salt: vi.fn<Exclude<ZkLoginOptions['salt'], string>>(async () => SALT),
  prover: vi.fn<Exclude<ZkLoginOptions['prover'], string>>(async ({ jwt }) => proofFor(jwt)),
});

async function use(storage: SessionStore, options: Partial<ZkLoginOptions> = {}) {
  const allOptions = { client, ...services(), legacyAddress: false, storage, ...options };
  return await renderHook(() => useZkLogin(allOptions), { strict: true });
}

async function until(rendered: Rendered<UsedZkLogin>, step: UsedZkLogin['step']): Promise<void> {
  await expect.poll(() => rendered.latest().step).toBe(step);
}

const listStored = (storage: SessionStore) =>
  (['login', 'session'] as const).filter((kind) => storage.get(`sui-enclave/zklogin/${kind}`) !== null);

/** Returns the steps in order, without repetitions. */
const listSteps = ({ results }: Rendered<UsedZkLogin>) =>
  results.map(({ step }) => step).filter((step, index, all) => step !== all[index - 1]);

/** Opens a session in this storage, and returns its rendered hook. */
async function openSession(storage = createMemoryStore()) {
  const begun = answerLogin(begin({ storage }));
  stubPage(begun.back);
  const login = await use(storage);
  await until(login, 'open');
  return login;
}

describe('a page', () => {
  test('has no user at first, and shows nothing before it has read the storage', async () => {
    stubPage();
    const login = await use(createMemoryStore());
    await until(login, 'none');
    expect(listSteps(login)).toEqual(['loading', 'none']);
  });

  test('is rendered on a server as if it had not read the storage yet', () => {
    const Component = () =>
      useZkLogin({ client, ...services(), legacyAddress: false, storage: createMemoryStore() }).step;
    expect(renderToString(createElement(Component))).toBe('loading');
  });

  test('redirects to the provider, with a key in the storage', async () => {
    const { location } = stubPage();
    const storage = createMemoryStore();
    const login = await use(storage);
    await until(login, 'none');
    login.latest().logIn(LOG_IN);
    await expect.poll(() => location.assign).toHaveBeenCalledOnce();
    expect(login.latest().step).toBe('leaving');
    expect(new URL(location.assign.mock.calls[0]?.[0] ?? '').searchParams.get('client_id')).toBe(CLIENT_ID);
    expect(listStored(storage)).toEqual(['login']);
  });

  test('that returns from the browser’s cache no longer shows the step "leaving"', async () => {
    const { events } = stubPage();
    const login = await use(createMemoryStore());
    await until(login, 'none');
    login.latest().logIn(LOG_IN);
    await until(login, 'leaving');
    events.dispatchEvent(Object.assign(new Event('pageshow'), { persisted: true }));
    await until(login, 'none');
  });

  test('does not redirect if the node does not return the epoch, and reports the reason', async () => {
    const { location } = stubPage();
    const login = await use(createMemoryStore());
    await until(login, 'none');
    node.faults.set('GetEpoch', 'reset');
    login.latest().logIn(LOG_IN);
    await expect.poll(() => login.latest().error).toMatchObject({ code: 'SUI_NODE_UNREACHABLE' });
    expect(login.latest().step).toBe('none');
    expect(location.assign).not.toHaveBeenCalled();
  });
});

describe('an answer', () => {
  test('opens a session by token, salt and proof, and disappears from the address bar', async () => {
    const { storage, back } = answerLogin();
    const { location } = stubPage(back);
    const loginServices = services();
    const login = await use(storage, loginServices);
    await until(login, 'open');
    expect(listSteps(login)).toEqual(['loading', 'token', 'salt', 'proof', 'open']);
    const { address } = login.latest();
    expect(address).toMatch(/^0x[0-9a-f]{64}$/);
    expect(login.latest().session?.address).toBe(address);
    expect(login.results.find(({ step }) => step === 'proof')?.address).toBe(address);
    expect(location.href).toBe(REDIRECT_URI);
    expect([loginServices.salt, loginServices.prover].map(({ mock }) => mock.calls.length)).toEqual([1, 1]);
    expect(listStored(storage)).toEqual(['session']);
  });

  test('with a code is exchanged once, although StrictMode runs effects twice', async () => {
    const exchanges: ServerResponse[] = [];
    const url = await serve((_, response) => {
      exchanges.push(response);
      response.end(JSON.stringify({ id_token: jwt }));
    });
    const begun = begin({ provider: { ...PROVIDERS.google, token: { url, variant: 'grant_type' } } });
    const { jwt } = answerLogin(begun);
    stubPage(begun.back({ code: 'c' }, '?'));
    const login = await use(begun.storage);
    await until(login, 'open');
    expect(exchanges.map(({ writableFinished }) => writableFinished)).toEqual([true]);
  });

  test('of a form_post is passed as an option, with the path for the address bar', async () => {
    const { storage, back } = answerLogin();
    const { location } = stubPage(REDIRECT_URI);
    const login = await use(storage, { answer: back.split('#')[1] ?? '', home: '/' });
    await until(login, 'open');
    expect(location.href).toBe('https://wallet.example/');
  });

  test('of a user who refused is an error, and the next login may begin', async () => {
    const begun = begin();
    stubPage(begun.back({ error: 'access_denied' }));
    const login = await use(begun.storage);
    await expect.poll(() => login.latest().error).toMatchObject({ code: 'ZKLOGIN_PROVIDER_REFUSED' });
    expect(login.latest().step).toBe('none');
    login.latest().retry();
    await expect.poll(() => login.latest().error).toBe(undefined);
  });

  test('that is refused leaves the open session unchanged', async () => {
    const storage = createMemoryStore();
    await (await openSession(storage)).unmount();
    const begun = begin({ storage });
    stubPage(begun.back({ error: 'access_denied' }));
    const login = await use(storage);
    await until(login, 'open');
    expect(login.latest().error).toMatchObject({ code: 'ZKLOGIN_PROVIDER_REFUSED' });
    expect(login.latest().session?.address).toBe(login.latest().address);
  });

  test('to another login is refused, and the begun login remains', async () => {
    const { storage } = answerLogin();
    stubPage(answerLogin().back);
    const login = await use(storage);
    await expect.poll(() => login.latest().error).toMatchObject({ code: 'ZKLOGIN_STATE' });
    expect([login.latest().step, listStored(storage)]).toEqual(['none', ['login']]);
  });
});

describe('a service that fails', () => {
  test('is asked again on retry, which continues the same login', async () => {
    const { storage, back } = answerLogin();
    stubPage(back);
    const loginServices = services();
    loginServices.prover.mockRejectedValueOnce(new Error('busy'));
    const login = await use(storage, loginServices);
    await expect.poll(() => login.latest().error?.message).toBe('busy');
    expect([login.latest().step, login.latest().session, listStored(storage)]).toEqual([
      'proof',
      undefined,
      ['login'],
    ]);
    const { address } = login.latest();
    login.latest().retry();
    await until(login, 'open');
    expect([login.latest().address, login.latest().error]).toEqual([address, undefined]);
  });

  test('can be abandoned', async () => {
    const { storage, back } = answerLogin();
    stubPage(back);
    const loginServices = services();
    loginServices.salt.mockRejectedValueOnce('a string');
    const login = await use(storage, loginServices);
    await expect.poll(() => login.latest().error?.message).toBe('a string');
    expect(login.latest().step).toBe('salt');
    login.latest().cancel();
    await until(login, 'none');
    expect([login.latest().error, listStored(storage)]).toEqual([undefined, []]);
  });
});

describe('a login that no further attempt can complete', () => {
  /** Returns the options of a salt service that refuses every token, as a real one does after an hour. */
  const refuseTokens = async () => {
    const body = JSON.stringify({ error: 'expired', code: 'SALT_TOKEN_EXPIRED' });
    return { salt: await serve((_, response) => response.writeHead(401).end(body)) };
  };

  test('is removed, so that the next login may begin', async () => {
    const { storage, back } = answerLogin();
    stubPage(back);
    const login = await use(storage, await refuseTokens());
    await expect.poll(() => login.latest().error).toMatchObject({ code: 'ZKLOGIN_REFUSED', status: 401 });
    const { step, address } = login.latest();
    expect([step, address, listStored(storage)]).toEqual(['none', undefined, []]);
  });

  test('is removed if its proof is for another token', async () => {
    const { storage, back } = answerLogin();
    stubPage(back);
    const login = await use(storage, { prover: async () => partialInputs });
    await expect.poll(() => login.latest().error).toMatchObject({ code: 'ZKLOGIN_PROOF' });
    expect([login.latest().step, listStored(storage)]).toEqual(['none', []]);
  });

  test('does not hide the session that it would have renewed', async () => {
    const storage = createMemoryStore();
    await (await openSession(storage)).unmount();
    stubPage(answerLogin(begin({ storage })).back);
    const login = await use(storage, await refuseTokens());
    await until(login, 'open');
    expect(login.latest().error).toMatchObject({ code: 'ZKLOGIN_REFUSED', status: 401 });
    expect(login.latest().session?.address).toBe(login.latest().address);
    expect(listStored(storage)).toEqual(['session']);
    login.latest().retry();
    await expect.poll(() => login.latest().error).toBe(undefined);
    expect(login.latest().step).toBe('open');
  });
});

/**
 * Begins a login whose proof arrives when the test calls `prove`.
 *
 * @returns also the signal of that request
 */
async function startProof() {
  const { storage, jwt, back } = answerLogin();
  stubPage(back);
  const { promise, resolve } = Promise.withResolvers<Proof>();
  const loginServices = services();
  loginServices.prover.mockReturnValueOnce(promise);
  const login = await use(storage, loginServices);
  await expect.poll(() => loginServices.prover).toHaveBeenCalledOnce();
  const signal = loginServices.prover.mock.calls[0]?.[1].signal;
  return { storage, login, signal, prove: () => resolve(proofFor(jwt)) };
}
const waitBriefly = () => new Promise((resolve) => setTimeout(resolve, 50));

describe.each(['cancel', 'logOut'] as const)('the hook, on %s while the proof is being made,', (end) => {
  test('ends the request, and opens nothing if the proof arrives anyway', async () => {
    const { storage, login, signal, prove } = await startProof();
    login.latest()[end]();
    await until(login, 'none');
    expect([signal?.aborted, listStored(storage)]).toEqual([true, []]);
    prove();
    await waitBriefly();
    expect([login.latest().step, login.latest().session, login.latest().address]).toEqual([
      'none',
      undefined,
      undefined,
    ]);
    expect(listStored(storage)).toEqual([]);
  });
});

test('a page that unmounts the hook ends its request, and continues when it mounts the hook again', async () => {
  const { storage, login, signal } = await startProof();
  await login.unmount();
  await expect.poll(() => signal?.aborted).toBe(true);
  const next = await use(storage);
  await until(next, 'open');
});

describe('an open session', () => {
  test('survives a reload, without a request to any service', async () => {
    const storage = createMemoryStore();
    const before = await openSession(storage);
    await before.unmount();
    stubPage();
    const loginServices = services();
    const login = await use(storage, loginServices);
    await until(login, 'open');
    expect(login.latest().address).toBe(before.latest().address);
    expect([loginServices.salt, loginServices.prover].map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
  });

  test('is shown if the next login can not begin while an earlier one has no salt yet', async () => {
    const storage = createMemoryStore();
    await (await openSession(storage)).unmount();
    stubPage(answerLogin(begin({ storage })).back);
    const loginServices = services();
    loginServices.salt.mockRejectedValue(new Error('busy'));
    const login = await use(storage, loginServices);
    await expect.poll(() => login.latest().error?.message).toBe('busy');
    login.latest().logIn({ ...LOG_IN, clientId: '' });
    await until(login, 'open');
    expect(login.latest().error).toMatchObject({ code: 'ZKLOGIN_OPTION' });
    expect(login.latest().session?.address).toBe(login.latest().address);
  });

  test('disappears from page and storage at the moment of logOut', async () => {
    const storage = createMemoryStore();
    const login = await openSession(storage);
    const firstIndex = login.results.length;
    login.latest().logOut();
    expect(listStored(storage)).toEqual([]);
    await until(login, 'none');
    expect(login.results.slice(firstIndex).map(({ session }) => session)).toEqual(
      login.results.slice(firstIndex).map(() => undefined),
    );
    expect(login.latest().address).toBe(undefined);
  });

  test('is not shown after its last epoch, which retry detects', async () => {
    const login = await openSession();
    const { address } = login.latest();
    node.epoch = EPOCH + 3n;
    login.latest().retry();
    await until(login, 'expired');
    expect([login.latest().session, login.latest().address]).toEqual([undefined, address]);
  });

  test('is not shown if the node does not return the epoch, until a retry succeeds', async () => {
    const storage = createMemoryStore();
    await (await openSession(storage)).unmount();
    stubPage();
    node.faults.set('GetEpoch', 'reset');
    const login = await use(storage);
    await expect.poll(() => login.latest().error).toMatchObject({ code: 'SUI_NODE_UNREACHABLE' });
    expect([login.latest().step, login.latest().session]).toEqual(['loading', undefined]);
    node.faults.clear();
    login.latest().retry();
    await until(login, 'open');
  });
});
