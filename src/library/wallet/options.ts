/** The options of registerZkLoginWallet, and their checks. */
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { Signer } from '@mysten/sui/cryptography';
import type { WalletIcon } from '@mysten/wallet-standard';
import type { Network, Provider } from '../token/providers.ts';
import { checkClient, readMaxEpoch } from '../zklogin/begin.ts';
import { ZkLoginError } from '../zklogin/errors.ts';
import { serviceUrl } from '../zklogin/http.ts';
import type { BigNumber } from '../zklogin/numbers.ts';
import type { Proof, ProofRequest } from '../zklogin/services.ts';
import type { Sponsor } from '../zklogin/sponsor.ts';
import type { SessionStore } from '../zklogin/storage.ts';
import type { ConfirmRequest } from './confirm.ts';

/**
 * Options of a function that replaces the URL of a service. The signal ends the request if the login is
 * cancelled.
 */
interface ServiceCallOptions {
  readonly signal: AbortSignal;
}

/** A provider, and the dapp's client id there. Each entry becomes a separate wallet. */
export interface WalletProvider {
  /** The provider, from PROVIDERS or from discoverProvider. */
  readonly provider: Provider;
  /** Client id of the dapp at the provider. */
  readonly clientId: string;
  /**
   * Name in the list of wallets. Default: the provider's name, with a note that the address is for this app
   * only.
   */
  readonly name?: string;
  /** Icon as a data URL. Default: a key. */
  readonly icon?: WalletIcon;
}

/** Options of `registerZkLoginWallet`: providers, services and the user's confirmation. */
export interface RegisterOptions {
  /** Providers of the login: at least one, and each only once. */
  readonly providers: readonly WalletProvider[];
  /**
   * URL of the page that calls answerLogin. It has this page's origin, and is registered with each provider.
   */
  readonly redirectUri: string;
  /** Client that builds and sends transactions. The wallets sign for its network: `sui:<network>`. */
  readonly client: ClientWithCoreApi;
  /** The URL of the salt service, for getSalt, or a function that returns the salt for a token. */
  readonly salt: string | ((token: string, options: ServiceCallOptions) => Promise<BigNumber>);
  /** The URL of the proving service, for getProof, or a function that returns the proof. */
  readonly prover: string | ((request: ProofRequest, options: ServiceCallOptions) => Promise<Proof>);
  /** Whether the address is one of the few old ones: see `legacyAddress` of deriveAddress. */
  readonly legacyAddress: boolean;
  /**
   * Shows the user what is about to be signed, and resolves to true if the user allows it. If it
   * resolves to anything else or rejects, nothing is signed. It is called for one signature at a time, at the
   * earliest half a second after the previous answer, so that a double click can't answer two questions.
   */
  readonly confirm: (request: ConfirmRequest) => Promise<boolean>;
  /**
   * Called once when a session has expired, even if the user does not sign. The wallet then has no account. A
   * dapp can tell the user, who did not disconnect, why the account disappeared.
   */
  readonly onExpired?: (address: string) => void;
  /** Payer of the gas in signAndExecuteTransaction. Default: the user. */
  readonly sponsor?: Sponsor;
  /** The number of epochs after the current one in which a session can sign. Default: 2. */
  readonly validEpochs?: number;
  /**
   * Storage of the sessions. Default: the session storage of the browser. With another storage, a login
   * fails if the browser blocks its window, since the storage may not survive a redirect.
   */
  readonly storage?: SessionStore;
}

const OPTIONS: readonly string[] = [
  'providers',
  'redirectUri',
  'client',
  'salt',
  'prover',
  'legacyAddress',
  'confirm',
  'onExpired',
  'sponsor',
  'validEpochs',
  'storage',
];
const PROVIDER_PROPERTIES: readonly string[] = ['provider', 'clientId', 'name', 'icon'];
const ICON = /^data:image\/(svg\+xml|webp|png|gif);base64,/;

/**
 * Reads each option once, so that the checked values are the values that are used. @throws ZkLoginError:
 * ZKLOGIN_OPTION
 */
export function readRegisterOptions(source: RegisterOptions): RegisterOptions {
  refuseUnknown('option', source ?? {}, OPTIONS);
  const { providers, ...options } = copyProperties(source ?? {}, OPTIONS);
  const copy = { ...options, providers: Array.isArray(providers) ? Array.from(providers, readProvider) : [] };
  checkRegisterOptions(copy);
  return copy;
}

function readProvider(source: WalletProvider): WalletProvider {
  refuseUnknown('property of a provider', source ?? {}, PROVIDER_PROPERTIES);
  const provider = copyProperties(source ?? {}, PROVIDER_PROPERTIES);
  return { ...provider, provider: { ...provider.provider } };
}

/** Copies the properties with these names, including inherited properties. */
function copyProperties<Source extends object>(source: Source, names: readonly string[]): Source {
  return Object.fromEntries(
    names.filter((name) => name in source).map((name) => [name, Reflect.get(source, name)]),
  ) as Source;
}

function checkRegisterOptions(options: RegisterOptions): void {
  const {
    providers,
    redirectUri,
    client,
    salt,
    prover,
    legacyAddress,
    confirm,
    onExpired,
    sponsor,
    validEpochs,
  } = options;
  if (providers.length === 0) throw invalid('providers must be a list of at least one provider');
  if (typeof client?.core?.getCurrentSystemState !== 'function' || typeof client.network !== 'string') {
    throw invalid('client must be a client of @mysten/sui, such as SuiGrpcClient, with a network');
  }
  for (const provider of providers) checkProvider(provider, options);
  const ids = providers.map(walletId);
  if (new Set(ids).size < ids.length)
    throw invalid('providers contains the same provider and clientId twice');
  if (new URL(redirectUri).origin !== location.origin) {
    throw invalid(`redirectUri must be a page of this origin, ${location.origin}, which calls answerLogin`);
  }
  checkService('salt', salt);
  checkService('prover', prover);
  if (typeof legacyAddress !== 'boolean') {
    throw invalid('legacyAddress must be true or false: the wrong value leads to another address');
  }
  if (typeof confirm !== 'function') {
    throw invalid(
      'confirm must be a function that shows the user what is about to be signed, and resolves to true if the user allows it: this wallet has no window of its own, and any script of the page can ask for a signature',
    );
  }
  if (onExpired !== undefined && typeof onExpired !== 'function') {
    throw invalid('onExpired must be a function');
  }
  if (sponsor !== undefined && typeof sponsor !== 'function' && !(sponsor instanceof Signer)) {
    throw invalid('sponsor must be a Signer or a function');
  }
  if (validEpochs !== undefined) readMaxEpoch({ currentEpoch: 0, validEpochs });
}

function checkProvider(entry: WalletProvider, { redirectUri, client }: RegisterOptions): void {
  const { provider, clientId, name, icon } = entry;
  checkClient({ provider, clientId, redirectUri, ...findNetwork(client) });
  if (name !== undefined && (typeof name !== 'string' || name === '')) {
    throw invalid('the name of a provider must be a string that is not empty');
  }
  if (icon !== undefined && !(typeof icon === 'string' && ICON.test(icon))) {
    throw invalid('the icon of a provider must be a data URL of an SVG, WebP, PNG or GIF image, in base64');
  }
}

const NETWORKS: readonly Network[] = ['mainnet', 'testnet', 'devnet'];

/**
 * Returns the option `network` of beginLogin, which then checks whether the network's validators accept the
 * provider. Leaves it out if this library doesn't know the client's network.
 */
export function findNetwork({ network }: ClientWithCoreApi): { readonly network?: Network } {
  const networkName = NETWORKS.find((name) => name === network);
  return networkName === undefined ? {} : { network: networkName };
}

/**
 * Returns an id that is unique among the wallets of a page and the same at each load. It has no colon, since
 * dapp-kit can't store one in an id.
 */
export function walletId({ provider, clientId }: WalletProvider): string {
  return `sui-enclave/wallet/${encodeURIComponent(provider.issuer)}/${encodeURIComponent(clientId)}`;
}

function checkService(name: string, value: unknown): void {
  if (typeof value === 'function') return;
  if (typeof value !== 'string') throw invalid(`${name} must be a URL or a function`);
  serviceUrl(name, value);
}

function refuseUnknown(optionName: string, options: object, optionNames: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !optionNames.includes(name));
  if (unknown !== undefined)
    throw invalid(`unknown ${optionName} "${unknown}"; known ones: ${optionNames.join(', ')}`);
}

function invalid(message: string): ZkLoginError {
  return new ZkLoginError('ZKLOGIN_OPTION', message);
}
