import { generateNonce } from '@mysten/sui/zklogin';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  beginLogin,
  createMemoryStore,
  PROVIDERS,
  type Provider,
} from '../../../../src/library/zklogin/index.ts';
import { begin, CLIENT_ID, createPublicKey, REDIRECT_URI, readStored } from './support.ts';

const CLIENT = { client_id: CLIENT_ID, redirect_uri: REDIRECT_URI };
const EXPECTED: Record<keyof typeof PROVIDERS, [string, Record<string, string>]> = {
  google: ['https://accounts.google.com/o/oauth2/v2/auth', { response_type: 'id_token', scope: 'openid' }],
  facebook: ['https://www.facebook.com/v17.0/dialog/oauth', { response_type: 'id_token', scope: 'openid' }],
  twitch: [
    'https://id.twitch.tv/oauth2/authorize',
    { response_type: 'id_token', scope: 'openid', force_verify: 'true', lang: 'en', login_type: 'login' },
  ],
  kakao: ['https://kauth.kakao.com/oauth/authorize', { response_type: 'code' }],
  apple: [
    'https://appleid.apple.com/auth/authorize',
    { response_type: 'code id_token', scope: 'email', response_mode: 'form_post' },
  ],
  slack: ['https://slack.com/openid/connect/authorize', { response_type: 'code', scope: 'openid' }],
  microsoft: [
    'https://login.microsoftonline.com/common/oauth2/v2.0/authorize',
    { response_type: 'id_token', scope: 'openid' },
  ],
};

describe('the login URL', () => {
  test.each(Object.entries(EXPECTED))(
    'has the address and the parameters of %s',
    (name, [address, parameters]) => {
      const { url, nonce, state } = begin({ provider: PROVIDERS[name as keyof typeof PROVIDERS] });
      expect(url.origin + url.pathname).toBe(address);
      expect(Object.fromEntries(url.searchParams)).toEqual({ ...CLIENT, ...parameters, nonce, state });
      expect(url.href).not.toContain('+');
    },
  );

  test('carries a nonce of 27 characters that binds key, maxEpoch and randomness', () => {
    const { nonce, storage } = begin();
    const { secretKey, maxEpoch, randomness } = readStored(storage);
    expect(nonce).toMatch(/^[\w-]{27}$/);
    expect(nonce).toBe(generateNonce(createPublicKey(secretKey), maxEpoch, randomness));
    expect(BigInt(randomness) < 2n ** 128n).toBe(true);
  });

  test('is different each time', () => {
    const [firstLogin, secondLogin] = [begin(), begin()];
    expect(firstLogin.nonce).not.toBe(secondLogin.nonce);
    expect(firstLogin.state).not.toBe(secondLogin.state);
    expect(readStored(firstLogin.storage).secretKey).not.toBe(readStored(secondLogin.storage).secretKey);
  });

  test('reveals nothing of the key', () => {
    const { url, storage } = begin();
    const { secretKey, randomness } = readStored(storage);
    expect(url.href).not.toContain(secretKey);
    expect(url.href).not.toContain(randomness);
  });
});

describe('the last epoch of a session', () => {
  test.each([
    [{ currentEpoch: 100 }, 102],
    [{ currentEpoch: '100' }, 102],
    [{ currentEpoch: 100n, validEpochs: 0 }, 100],
    [{ currentEpoch: 100, validEpochs: 30 }, 130],
    [{ currentEpoch: 100, maxEpoch: 107 }, 107],
    [{ currentEpoch: 100n, maxEpoch: 102n }, 102],
    [{ currentEpoch: '100', maxEpoch: '102' }, 102],
    [{ currentEpoch: 100n, validEpochs: 3n }, 103],
  ])('is derived from the options %o', (options, expected) => {
    expect(readStored(begin(options).storage).maxEpoch).toBe(expected);
  });

  test.each([
    [{ validEpochs: 31 }, /up to 30 epochs later/],
    [{ maxEpoch: 131 }, /up to 30 epochs later/],
    [{ maxEpoch: 99 }, /must be the current one/],
    [{ maxEpoch: 131n }, /up to 30 epochs later/],
    [{ maxEpoch: -1n }, /maxEpoch must be/],
    [{ maxEpoch: null }, /maxEpoch must be/],
    [{ maxEpoch: 2n ** 64n }, /maxEpoch must be/],
    [{ validEpochs: -1 }, /validEpochs must be/],
    [{ validEpochs: 1.5 }, /validEpochs must be/],
    [{ maxEpoch: 102, validEpochs: 2 }, /not both/],
    [{ currentEpoch: 'x' }, /currentEpoch must be/],
    [{ currentEpoch: Number.NaN }, /currentEpoch must be/],
    [{ extraEpochs: 3 }, /unknown option "extraEpochs"/],
  ])('is refused with the options %o', (options, message) => {
    expect(() => begin(options as never)).toThrow(message);
  });
});

describe('the storage of the key', () => {
  class LocalStorage {
    readonly values = new Map<string, string>();
    getItem = (key: string) => this.values.get(key) ?? null;
    setItem = (key: string, value: string) => void this.values.set(key, value);
    removeItem = (key: string) => void this.values.delete(key);
  }
  const options = {
    provider: PROVIDERS.google,
    clientId: CLIENT_ID,
    redirectUri: REDIRECT_URI,
    currentEpoch: 1,
  };

  test('may not be local storage or any other persistent storage, which is refused before a key is generated', () => {
    const storage = new LocalStorage();
    for (const refused of [storage, { ...createMemoryStore(), persistent: true }, {}]) {
      expect(() => beginLogin({ ...options, storage: refused as never })).toThrow(
        /local storage and the like are refused/,
      );
    }
    expect(storage.values.size).toBe(0);
  });

  test('has no default outside browsers', () => {
    expect(() => beginLogin(options)).toThrow(expect.objectContaining({ code: 'ZKLOGIN_STORAGE' }));
  });

  test('causes an error if a browser blocks it, or does not have it', () => {
    const get = vi.fn<() => unknown>(() => {
      throw new DOMException('The operation is insecure.', 'SecurityError');
    });
    Object.defineProperty(globalThis, 'sessionStorage', { configurable: true, get });
    onTestFinished(() => {
      Reflect.deleteProperty(globalThis, 'sessionStorage');
    });
    expect(() => beginLogin(options)).toThrow(
      expect.objectContaining({ code: 'ZKLOGIN_STORAGE', message: expect.stringMatching(/browser blocks/) }),
    );
    get.mockReturnValue(null);
    expect(() => beginLogin(options)).toThrow(expect.objectContaining({ code: 'ZKLOGIN_STORAGE' }));
  });
});

describe('the name of the network', () => {
  const options = { clientId: CLIENT_ID, redirectUri: REDIRECT_URI, currentEpoch: 1 };
  const deferLogin = (provider: Provider, network?: 'mainnet' | 'testnet' | 'devnet') => () =>
    beginLogin({ ...options, provider, storage: createMemoryStore(), ...(network && { network }) });

  test.each(['kakao', 'slack', 'microsoft'] as const)('is required for %s, and must be devnet', (name) => {
    const provider = PROVIDERS[name];
    expect(deferLogin(provider)).toThrow(
      expect.objectContaining({
        code: 'ZKLOGIN_OPTION',
        message: `${provider.name} is accepted on devnet only: set the option network to the network of the wallet's transactions`,
      }),
    );
    expect(deferLogin(provider, 'mainnet')).toThrow(/is accepted on devnet, but not on mainnet/);
    deferLogin(provider, 'devnet')();
  });

  test.each(['google', 'facebook', 'twitch', 'apple'] as const)('is optional for %s', (name) => {
    deferLogin(PROVIDERS[name])();
    deferLogin(PROVIDERS[name], 'testnet')();
    expect(deferLogin(PROVIDERS[name], 'main' as never)).toThrow(/but not on main$/);
  });

  test('is optional for a custom provider without networks', () => {
    deferLogin({ ...PROVIDERS.slack, networks: [] })();
    expect(deferLogin({ ...PROVIDERS.google, networks: ['testnet', 'devnet'] })).toThrow(
      /only: set the option network/,
    );
  });
});

test.each([
  [undefined, /provider must be one of PROVIDERS \(google, facebook, .*\) or come from discoverProvider/],
  [{}, /provider must be/],
  [{ provider: (PROVIDERS as Record<string, Provider>)['gogle'] }, /provider must be/],
  [{ provider: 'google' }, /provider must be/],
  [{ provider: { ...PROVIDERS.google, networks: undefined } }, /provider must be/],
  [{ provider: PROVIDERS.google, clientId: 5 }, /clientId must be a string/],
  [{ provider: PROVIDERS.google, clientId: 'x', redirectUri: new URL(REDIRECT_URI) }, /redirectUri must be/],
])('the error for an invalid option names the option: %o', (options, message) => {
  expect(() => beginLogin(options as never)).toThrow(
    expect.objectContaining({ code: 'ZKLOGIN_OPTION', message: expect.stringMatching(message) }),
  );
});

test.each([
  [{ clientId: '' }, /clientId is empty/],
  [{ clientId: 'a"b' }, /clientId has a quote/],
  [{ clientId: 'a'.repeat(144) }, /clientId is longer than 143/],
  [{ redirectUri: 'back' }, /redirectUri/],
  [{ redirectUri: `${REDIRECT_URI}#x` }, /redirectUri/],
  [
    { provider: PROVIDERS.slack, network: 'mainnet' as const },
    /Slack is accepted on devnet, but not on mainnet/,
  ],
  [
    { provider: { ...PROVIDERS.google, extraParameters: { nonce: 'x' } } as Provider },
    /nonce is reserved for the login/,
  ],
])('beginLogin refuses %o', (options, message) => {
  expect(() => begin(options)).toThrow(message);
});
