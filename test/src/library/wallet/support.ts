/** Registers wallets whose services answer immediately, and creates a provider's answers. */
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { onTestFinished } from 'vitest';
import { channelName } from '../../../../src/library/wallet/handover.ts';
import {
  type ConfirmRequest,
  type RegisteredWallet,
  type RegisterOptions,
  registerZkLoginWallet,
} from '../../../../src/library/wallet/index.ts';
import { PROVIDERS, type Proof, type ProofRequest } from '../../../../src/library/zklogin/index.ts';
import { CLIENT_ID, createJwt, issuerDetails, SUBJECT, vector } from '../zklogin/support.ts';
import { ORIGIN } from './page.ts';

export const [{ partialInputs: POINTS }] = vector('proofs');
export const GOOGLE = { provider: PROVIDERS.google, clientId: CLIENT_ID };
export const SALT = '129390038577185583942388216820280642146';

/** Fake of a node that answers only requests for the epoch. */
export class FakeNode {
  readonly network = 'localnet';
  epoch = 100;
  /** Number of requests for the epoch. */
  epochRequests = 0;
  isDown = false;
  /** A request is answered once the promise that is here when it arrives is fulfilled. */
  ready: Promise<void> = Promise.resolve();
  readonly core = {
    getCurrentSystemState: async () => {
      this.epochRequests++;
      await this.ready;
      if (this.isDown) throw new TypeError('fetch failed');
      return { systemState: { epoch: String(this.epoch) } };
    },
  };

  get client(): ClientWithCoreApi {
    return this as never;
  }
}

/** Returns a proof of another statement, with the header and issuer of this token. */
export async function createProof({ jwt }: ProofRequest): Promise<Proof> {
  const [headerBase64 = '', payload = ''] = jwt.split('.');
  const [claim = ''] = /"iss":"[^"]*"[,}]/.exec(Buffer.from(payload, 'base64url').toString()) ?? [];
  return { ...POINTS, headerBase64, issBase64Details: issuerDetails(jwt, claim) };
}

export type RegisterOverrides = Partial<Omit<RegisterOptions, 'client'>> & { readonly client?: unknown };

export interface Registered {
  readonly wallet: RegisteredWallet;
  readonly wallets: readonly RegisteredWallet[];
  /** Questions that the wallet asked the user. */
  readonly requests: ConfirmRequest[];
  /** Addresses after each change. */
  readonly changes: string[][];
  unregister(): void;
}

export function register(overrides: RegisterOverrides = {}): Registered {
  return registerAs((options) => ({ ...options, ...overrides }) as RegisterOptions);
}

/** Registers wallets. @param change gets the default options, and returns the options to use */
export function registerAs(change: (options: RegisterOptions) => RegisterOptions): Registered {
  const requests: ConfirmRequest[] = [];
  const changes: string[][] = [];
  const options = {
    providers: [GOOGLE],
    redirectUri: `${ORIGIN}/back`,
    client: new FakeNode().client,
    salt: async () => SALT,
    prover: createProof,
    legacyAddress: false,
    confirm: async (request: ConfirmRequest) => {
      requests.push(request);
      return true;
    },
  };
  const { wallets, unregister } = registerZkLoginWallet(change(options));
  onTestFinished(unregister);
  const [wallet] = wallets;
  if (wallet === undefined) throw new Error('no wallet');
  wallet.features['standard:events'].on('change', ({ accounts = [] }) => {
    changes.push(accounts.map(({ address }) => address));
  });
  return { wallet, wallets, requests, changes, unregister };
}

export const connect = (wallet: RegisteredWallet) => wallet.features['standard:connect'].connect();
export const connectSilently = async (wallet: RegisteredWallet) => {
  const { accounts } = await wallet.features['standard:connect'].connect({ silent: true });
  return accounts.map(({ address }) => address);
};
export const disconnect = (wallet: RegisteredWallet) => wallet.features['standard:disconnect'].disconnect();

/**
 * Returns the URL to which a provider redirects a user who has logged in.
 *
 * @param sent URL of the login there
 */
export function createRedirect(sent: URL, changed: Record<string, string> = {}, claims: object = {}): string {
  const readParameter = (name: string) => sent.searchParams.get(name) ?? '';
  const iat = Math.floor(Date.now() / 1000);
  const token = createJwt({
    iss: 'https://accounts.google.com',
    aud: readParameter('client_id'),
    sub: SUBJECT,
    nonce: readParameter('nonce'),
    iat,
    exp: iat + 3600,
    ...claims,
  });
  const parameters = new URLSearchParams({ state: readParameter('state'), id_token: token, ...changed });
  return `${readParameter('redirect_uri')}#${parameters}`;
}

/** Posts to the channel of a login. @returns whether a page acknowledged the message */
export async function post(state: string, message: unknown, { within = 100 } = {}): Promise<boolean> {
  const channel = new BroadcastChannel(channelName(state));
  try {
    return await new Promise((resolve) => {
      const timer = setTimeout(resolve, within, false);
      channel.addEventListener('message', ({ data }) => {
        if (data.kind !== 'taken') return;
        clearTimeout(timer);
        resolve(true);
      });
      channel.postMessage(message);
    });
  } finally {
    channel.close();
  }
}

/** Posts the message of the redirect page. @returns whether a page acknowledged it */
export async function handOver(answer: string): Promise<boolean> {
  const state = new URLSearchParams(new URL(answer).hash.slice(1)).get('state') ?? '';
  return await post(state, { kind: 'answer', answer }, { within: 2000 });
}
