/** Tests the registration of wallets in a dapp's list, and the options that it refuses. */
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { getWallets, isWalletWithRequiredFeatureSet } from '@mysten/wallet-standard';
import { describe, expect, test, vi } from 'vitest';
import { registerZkLoginWallet } from '../../../../src/library/wallet/index.ts';
import { PROVIDERS } from '../../../../src/library/zklogin/index.ts';
import { CLIENT_ID } from '../zklogin/support.ts';
import { ORIGIN, usePage } from './page.ts';
import { connect, FakeNode, GOOGLE, type RegisterOverrides, register, registerAs } from './support.ts';

const page = usePage();

describe('the Wallet Standard', () => {
  /** Keeps a list of wallets, as each copy of the standard's package does. */
  function createWalletList(window: EventTarget) {
    const list = new Set<unknown>();
    const api = {
      register: (...wallets: unknown[]) => {
        for (const wallet of wallets) list.add(wallet);
        return () => {
          for (const wallet of wallets) list.delete(wallet);
        };
      },
    };
    window.addEventListener('wallet-standard:register-wallet', (event) => {
      if ('detail' in event && typeof event.detail === 'function') event.detail(api);
    });
    window.dispatchEvent(new CustomEvent('wallet-standard:app-ready', { detail: api }));
    return list;
  }

  test('adds the wallets to every list, created before or after the registration', () => {
    const before = createWalletList(page.current.window);
    const { wallets, unregister } = register({
      providers: [GOOGLE, { provider: PROVIDERS.twitch, clientId: 'x' }],
    });
    const after = createWalletList(page.current.window);
    expect([[...before], [...after]]).toEqual([wallets, wallets]);
    unregister();
    expect([before.size, after.size, createWalletList(page.current.window).size]).toEqual([0, 0, 0]);
  });

  test('replaces only the wallet of the same provider and client id at another registration', () => {
    const list = createWalletList(page.current.window);
    const twitch = { provider: PROVIDERS.twitch, clientId: 'x' };
    const first = register({ providers: [GOOGLE, twitch] });
    const second = register({ providers: [GOOGLE] });
    const third = register({ providers: [{ ...GOOGLE, clientId: 'another' }] });
    expect([...list]).toEqual([first.wallets[1], second.wallet, third.wallet]);
    // The first wallet was replaced before. Its successor stays.
    first.unregister();
    expect([...list]).toEqual([second.wallet, third.wallet]);
    second.unregister();
    expect([...list]).toEqual([third.wallet]);
  });

  test('lists the wallets in its own package, and finds every feature that it requires', () => {
    const { wallets, unregister } = register();
    // The package's first call adds a listener to this page's window.
    const registeredWallets = getWallets().get();
    if (registeredWallets.length > 0) expect(registeredWallets).toEqual(wallets);
    for (const wallet of wallets) expect(isWalletWithRequiredFeatureSet(wallet)).toBe(true);
    unregister();
  });
});

test('a wallet names its provider and its chain, and says that its address is for this app only', () => {
  const icon = 'data:image/png;base64,AAAA';
  const { wallets } = register({
    providers: [GOOGLE, { provider: PROVIDERS.twitch, clientId: 'x', name: 'Games', icon }],
  });
  expect(wallets.map((wallet) => [wallet.version, wallet.name, wallet.chains])).toEqual([
    ['1.0.0', 'Google (this app only)', ['sui:localnet']],
    ['1.0.0', 'Games', ['sui:localnet']],
  ]);
  expect(wallets[0]?.id).toBe(`sui-enclave/wallet/https%3A%2F%2Faccounts.google.com/${CLIENT_ID}`);
  const [, svg = ''] = /^data:image\/svg\+xml;base64,(.*)$/.exec(wallets[0]?.icon ?? '') ?? [];
  expect(atob(svg)).toMatch(/^<svg .*<\/svg>$/);
  expect(wallets[1]?.icon).toBe(icon);
});

test('an option is read once, and the checked value is used', async () => {
  const redirectUris = [`${ORIGIN}/back`, 'https://attacker.example/back'];
  const clientIds = [CLIENT_ID, 'another'];
  const createGetter = (values: string[]) => ({ get: () => values.shift(), enumerable: true });
  const provider = Object.defineProperty({ ...GOOGLE }, 'clientId', createGetter(clientIds));
  const registerOptions = Object.defineProperty(
    { providers: [provider] },
    'redirectUri',
    createGetter(redirectUris),
  );
  // A spread would read the getter here, so the prototype is set instead.
  const { wallet } = registerAs((options) => Object.setPrototypeOf(registerOptions, options));
  connect(wallet).catch(() => {});
  const { url } = await vi.waitFor(
    () => page.current.latest.sentTo[0] ?? Promise.reject(new Error('blank')),
    60_000,
  );
  expect(url.searchParams.get('redirect_uri')).toBe(`${ORIGIN}/back`);
  expect(url.searchParams.get('client_id')).toBe(CLIENT_ID);
  expect([redirectUris, clientIds]).toEqual([['https://attacker.example/back'], ['another']]);
});

describe('registerZkLoginWallet refuses', () => {
  const createClient = (network: string) => Object.assign(Object.create(new FakeNode()), { network });

  test.each<[string, RegisterOverrides | Record<string, unknown>, RegExp]>([
    ['an unknown option', { storag: 1 }, /unknown option "storag"/],
    ['no provider', { providers: [] }, /providers/],
    ['providers that are not a list', { providers: undefined }, /providers/],
    ['an unknown property', { providers: [{ ...GOOGLE, scope: '' }] }, /unknown property .* "scope"/],
    ['a provider twice', { providers: [GOOGLE, { ...GOOGLE, name: 'x' }] }, /twice/],
    ['a name as a provider', { providers: [{ ...GOOGLE, provider: 'google' }] }, /PROVIDERS/],
    ['an empty client id', { providers: [{ ...GOOGLE, clientId: '' }] }, /clientId/],
    ['an empty name', { providers: [{ ...GOOGLE, name: '' }] }, /name/],
    [
      'an icon that is not a data URL',
      { providers: [{ ...GOOGLE, icon: 'https://x.example/i.png' }] },
      /icon/,
    ],
    ['a redirectUri of another origin', { redirectUri: 'https://other.example/back' }, /this origin/],
    ['a redirectUri with a fragment', { redirectUri: `${ORIGIN}/back#x` }, /fragment/],
    ['a relative redirectUri', { redirectUri: '/back' }, /redirectUri/],
    ['no client', { client: undefined }, /client/],
    ['a salt service over http', { salt: 'http://salt.example' }, /https/],
    ['no salt', { salt: undefined }, /salt/],
    ['a prover over http', { prover: 'http://prover.example' }, /https/],
    ['no prover', { prover: 1 }, /prover/],
    ['no legacyAddress', { legacyAddress: undefined }, /legacyAddress/],
    ['no confirm', { confirm: undefined }, /any script of the page can ask for a signature/],
    ['a sponsor that is neither a Signer nor a function', { sponsor: {} }, /sponsor/],
    ['epochs beyond the maximum', { validEpochs: 31 }, /epoch/],
    ['a fraction of an epoch', { validEpochs: 0.5 }, /validEpochs/],
    [
      'a provider that the network does not accept',
      { client: createClient('mainnet'), providers: [{ ...GOOGLE, provider: PROVIDERS.kakao }] },
      /not on mainnet/,
    ],
  ])('%s', (_, registerOptions, message) => {
    const expected = expect.objectContaining({
      code: 'ZKLOGIN_OPTION',
      message: expect.stringMatching(message),
    });
    expect(() => register(registerOptions)).toThrow(expected);
  });

  test('a storage that outlives the session', () => {
    expect(() => register({ storage: { persistent: true } as never })).toThrow(
      expect.objectContaining({ code: 'ZKLOGIN_STORAGE' }),
    );
  });

  test('a call in a frame of another page', () => {
    page.current.window.top = {};
    expect(() => register()).toThrow(
      expect.objectContaining({ code: 'ZKLOGIN_OPTION', message: expect.stringMatching(/frame/) }),
    );
  });

  test('a call without options, or outside of a page', () => {
    expect(() => registerZkLoginWallet(undefined as never)).toThrow(
      expect.objectContaining({ code: 'ZKLOGIN_OPTION' }),
    );
    vi.stubGlobal('window', undefined);
    expect(() => registerZkLoginWallet({} as never)).toThrow(/in a page/);
  });

  test('none of the valid options', () => {
    const devnetOnly = {
      client: createClient('devnet'),
      providers: [{ ...GOOGLE, provider: PROVIDERS.kakao }],
    };
    for (const registerOptions of [devnetOnly, { sponsor: new Ed25519Keypair() }, { validEpochs: 30 }]) {
      expect(() => register(registerOptions)).not.toThrow();
    }
  });
});
