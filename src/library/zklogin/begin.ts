import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { generateNonce, generateRandomness } from '@mysten/sui/zklogin';
import { SUI_V1, valueFault } from '../token/claims.ts';
import { isRefusedSomewhere, type Network, PROVIDERS, type Provider } from '../token/providers.ts';
import { ZkLoginError } from './errors.ts';
import { type SessionStore, saveLogin, sessionStore } from './storage.ts';

/** Options of `beginLogin`: provider, client and lifetime of the session. */
export interface BeginOptions {
  /** The provider, from PROVIDERS or from discoverProvider. */
  readonly provider: Provider;
  /** Client id of your application at the provider. */
  readonly clientId: string;
  /** URL to which the provider redirects the user. It must be registered with the provider. */
  readonly redirectUri: string;
  /** The present epoch of the network. */
  readonly currentEpoch: number | bigint | string;
  /** The last epoch in which the key pair can sign. Alternative to `validEpochs`. */
  readonly maxEpoch?: number | bigint | string;
  /** Number of epochs after the current one in which the key pair can sign. Default: 2. */
  readonly validEpochs?: number | bigint | string;
  /**
   * The network of the wallet's transactions. Its validators must accept the provider's tokens.
   * Required for a provider that not every network accepts.
   */
  readonly network?: Network;
  /** Storage of the login. Default: the session storage of the browser. */
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
/**
 * Maximum number of epochs ahead: validators refuse a later maxEpoch (`zklogin_max_epoch_upper_bound_delta`).
 */
const MAX_VALID_EPOCHS = 30;

/**
 * Creates an ephemeral key pair, stores it in the session storage, and returns the URL of the provider's
 * login, to which the page then sends the user. Discards a login that was begun but not finished. Keeps an
 * open session.
 *
 * Exported from `sui-enclave/zklogin`.
 *
 * @throws ZkLoginError: ZKLOGIN_OPTION, ZKLOGIN_STORAGE
 * @example
 * const { systemState } = await client.core.getCurrentSystemState();
 * const { epoch: currentEpoch } = systemState;
 * location.assign(beginLogin({ provider: PROVIDERS.google, clientId, redirectUri, currentEpoch }));
 */
export function beginLogin(options: BeginOptions): string {
  const unknown = Object.keys(options ?? {}).find((name) => !OPTIONS.includes(name));
  if (unknown !== undefined) {
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      `unknown option "${unknown}"; known ones: ${OPTIONS.join(', ')}`,
    );
  }
  // Each option is read once, so that the checked values are the values that are used.
  const {
    clientId,
    redirectUri,
    network,
    currentEpoch,
    maxEpoch: last,
    validEpochs,
    storage,
  } = options ?? {};
  const provider = { ...options?.provider };
  checkClient({ provider, clientId, redirectUri, ...(network !== undefined && { network }) });
  const maxEpoch = readMaxEpoch({
    currentEpoch,
    ...(last !== undefined && { maxEpoch: last }),
    ...(validEpochs !== undefined && { validEpochs }),
  });
  const store = sessionStore(storage);

  const keypair = new Ed25519Keypair();
  const randomness = generateRandomness();
  const nonce = generateNonce(keypair.getPublicKey(), maxEpoch, randomness);
  const state = createState();
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
  return createAuthorizationUrl(provider, { client_id: clientId, redirect_uri: redirectUri, nonce, state });
}

/** Checks provider, client id, redirect URI and network. @throws ZkLoginError: ZKLOGIN_OPTION */
export function checkClient(
  options: Pick<BeginOptions, 'provider' | 'clientId' | 'redirectUri' | 'network'>,
): void {
  const { provider, clientId, redirectUri, network } = options ?? {};
  if (typeof provider?.authorizationUrl !== 'string' || !Array.isArray(provider.networks)) {
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      `provider must be one of PROVIDERS (${Object.keys(PROVIDERS).join(', ')}) or come from discoverProvider`,
    );
  }
  const fault = typeof clientId === 'string' ? valueFault(clientId, SUI_V1.audience) : 'must be a string';
  if (fault !== null) throw new ZkLoginError('ZKLOGIN_OPTION', `clientId ${fault}`);
  if (typeof redirectUri !== 'string' || !URL.canParse(redirectUri) || redirectUri.includes('#')) {
    throw new ZkLoginError('ZKLOGIN_OPTION', 'redirectUri must be a URL without a fragment');
  }
  requireAccepted(provider, network);
}

function requireAccepted(provider: Provider, network: Network | undefined): void {
  const { name, networks } = provider;
  if (network === undefined && isRefusedSomewhere(provider)) {
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      `${name} is accepted on ${networks.join(', ')} only: set the option network to the network of the wallet's transactions`,
    );
  }
  // The list of a custom provider may be empty, since the networks that accept it are not known.
  if (network !== undefined && networks.length > 0 && !networks.includes(network)) {
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      `${name} is accepted on ${networks.join(', ')}, but not on ${network}`,
    );
  }
}

function createAuthorizationUrl(provider: Provider, loginParameters: Record<string, string>): string {
  const url = new URL(provider.authorizationUrl);
  const parameters = {
    ...loginParameters,
    response_type: provider.responseType,
    ...(provider.scope !== null && { scope: provider.scope }),
  };
  for (const [name, value] of Object.entries(provider.extraParameters)) {
    if (name in parameters)
      throw new ZkLoginError(
        'ZKLOGIN_OPTION',
        `the provider's extra parameter ${name} is reserved for the login`,
      );
    url.searchParams.set(name, value);
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  // Encode spaces as %20: not every provider accepts a plus.
  return url.href.replaceAll('+', '%20');
}

/** Returns the last epoch in which the key pair can sign. @throws ZkLoginError: ZKLOGIN_OPTION */
export function readMaxEpoch({
  currentEpoch,
  maxEpoch,
  validEpochs,
}: Pick<BeginOptions, 'currentEpoch' | 'maxEpoch' | 'validEpochs'>): number {
  const current = readEpoch('currentEpoch', currentEpoch);
  if (maxEpoch !== undefined && validEpochs !== undefined) {
    throw new ZkLoginError('ZKLOGIN_OPTION', 'pass either maxEpoch or validEpochs, not both');
  }
  const last =
    maxEpoch === undefined
      ? current + readEpoch('validEpochs', validEpochs ?? DEFAULT_VALID_EPOCHS)
      : readEpoch('maxEpoch', maxEpoch);
  if (last < current || last > current + MAX_VALID_EPOCHS) {
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      `the last epoch must be the current one or up to ${MAX_VALID_EPOCHS} epochs later`,
    );
  }
  return last;
}

/** Returns an epoch as a number. @throws ZkLoginError: ZKLOGIN_OPTION */
export function readEpoch(name: string, value: number | bigint | string): number {
  const number =
    typeof value === 'number' || /^[0-9]{1,16}$/.test(String(value)) ? Number(value) : Number.NaN;
  if (!Number.isSafeInteger(number) || number < 0)
    throw new ZkLoginError('ZKLOGIN_OPTION', `${name} must be an integer, 0 or greater`);
  return number;
}

function createState(): string {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(32));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
