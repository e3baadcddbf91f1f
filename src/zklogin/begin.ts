import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { generateNonce, generateRandomness } from '@mysten/sui/zklogin';
import { SUI_V1, valueFault } from './claims.ts';
import { InvalidOptionError } from './errors.ts';
import { isTakenSomewhereOnly, type Network, PROVIDERS, type Provider } from './providers.ts';
import { type SessionStore, saveLogin, sessionStore } from './storage.ts';

export interface BeginOptions {
  /** One of PROVIDERS, or one from discoverProvider. */
  readonly provider: Provider;
  readonly clientId: string;
  /** As it is registered with the provider: the user comes back there. */
  readonly redirectUri: string;
  readonly currentEpoch: number | bigint | string;
  /** The last epoch in which the key pair can sign; or say `validEpochs`. */
  readonly maxEpoch?: number | bigint | string;
  /** How many epochs after the current one: 2 unless told. */
  readonly validEpochs?: number | bigint | string;
  /**
   * Where the wallet sends transactions: refused where its validators don't take the provider's tokens. Must be
   * said for a provider that some network does not take.
   */
  readonly network?: Network;
  /** The session storage of the browser unless told. */
  readonly storage?: SessionStore;
}

const OPTIONS: readonly string[] = [
  'provider',
  'clientId',
  'redirectUri',
  'currentEpoch',
  'maxEpoch',
  'validEpochs',
  'network',
  'storage',
];

const DEFAULT_VALID_EPOCHS = 2;
/** Validators refuse a maxEpoch that is further ahead (`zklogin_max_epoch_upper_bound_delta`). */
const MAX_VALID_EPOCHS = 30;

/**
 * Makes an ephemeral key pair, keeps it in the session's storage, and gives the URL to send the user to.
 * Another login that was begun and not finished is forgotten; an open session is kept.
 *
 * Exported from `sui-enclave/zklogin`.
 *
 * @throws InvalidOptionError, StorageError
 * @example
 * const { systemState } = await client.core.getCurrentSystemState();
 * location.assign(beginLogin({ provider: PROVIDERS.google, clientId, redirectUri, currentEpoch: systemState.epoch }));
 */
export function beginLogin(options: BeginOptions): string {
  const unknown = Object.keys(options ?? {}).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) {
    throw new InvalidOptionError(`there is no option "${unknown}"; there are: ${OPTIONS.join(', ')}`);
  }
  const { provider, clientId, redirectUri, network } = options ?? {};
  if (typeof provider?.authorizationUrl !== 'string' || !Array.isArray(provider.networks)) {
    throw new InvalidOptionError(
      `provider must be one of PROVIDERS (${Object.keys(PROVIDERS).join(', ')}) or come from discoverProvider`,
    );
  }
  const fault = typeof clientId === 'string' ? valueFault(clientId, SUI_V1.audience) : 'must be a text';
  if (fault !== null) throw new InvalidOptionError(`clientId ${fault}`);
  if (typeof redirectUri !== 'string' || !URL.canParse(redirectUri) || redirectUri.includes('#')) {
    throw new InvalidOptionError('redirectUri must be a URL without a fragment');
  }
  requireTaken(provider, network);
  const maxEpoch = readMaxEpoch(options);
  const store = sessionStore(options.storage);

  const keypair = new Ed25519Keypair();
  const randomness = generateRandomness();
  const nonce = generateNonce(keypair.getPublicKey(), maxEpoch, randomness);
  const state = randomState();
  const { name, issuer, token } = provider;
  saveLogin(store, {
    stage: 'begun',
    provider: { name, issuer, token },
    clientId,
    redirectUri,
    state,
    nonce,
    randomness,
    maxEpoch,
    secretKey: keypair.getSecretKey(),
  });
  return authorizationUrl(provider, { client_id: clientId, redirect_uri: redirectUri, nonce, state });
}

function requireTaken(provider: Provider, network: Network | undefined): void {
  const { name, networks } = provider;
  if (network === undefined && isTakenSomewhereOnly(provider)) {
    throw new InvalidOptionError(
      `${name} is taken on ${networks.join(', ')} only: say as network where the wallet sends transactions`,
    );
  }
  // An empty list is a provider of one's own, of which nobody has said where it is taken.
  if (network !== undefined && networks.length > 0 && !networks.includes(network)) {
    throw new InvalidOptionError(`${name} is taken on ${networks.join(', ')}, but not on ${network}`);
  }
}

function authorizationUrl(provider: Provider, own: Record<string, string>): string {
  const url = new URL(provider.authorizationUrl);
  const parameters = {
    ...own,
    response_type: provider.responseType,
    ...(provider.scope !== null && { scope: provider.scope }),
  };
  for (const [name, value] of Object.entries(provider.extraParameters)) {
    if (name in parameters)
      throw new InvalidOptionError(`the provider's extra parameter ${name} is the login's own`);
    url.searchParams.set(name, value);
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  // Spaces as %20: not every provider reads a plus.
  return url.href.replaceAll('+', '%20');
}

function readMaxEpoch({ currentEpoch, maxEpoch, validEpochs }: BeginOptions): number {
  const current = epochNumber('currentEpoch', currentEpoch);
  if (maxEpoch !== undefined && validEpochs !== undefined) {
    throw new InvalidOptionError('say maxEpoch or validEpochs, not both');
  }
  const last =
    maxEpoch === undefined
      ? current + epochNumber('validEpochs', validEpochs ?? DEFAULT_VALID_EPOCHS)
      : epochNumber('maxEpoch', maxEpoch);
  if (last < current || last > current + MAX_VALID_EPOCHS) {
    throw new InvalidOptionError(`the last epoch must be from the current one to ${MAX_VALID_EPOCHS} ahead`);
  }
  return last;
}

/** An epoch as a number. @throws InvalidOptionError */
export function epochNumber(name: string, value: number | bigint | string): number {
  const number =
    typeof value === 'number' || /^[0-9]{1,16}$/.test(String(value)) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(number) || number < 0)
    throw new InvalidOptionError(`${name} must be a whole number`);
  return number;
}

function randomState(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(32));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
