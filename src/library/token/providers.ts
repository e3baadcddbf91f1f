/**
 * The OpenID providers that Sui's documentation describes, as data. The data come from the providers'
 * documentation and from Sui's (zkLogin, "OpenID providers"). Sui's table lists three more for every network,
 * each with its own issuers: AWS (by tenant), Karrier One and Credenza3. discoverProvider reads these
 * providers from their discovery documents.
 */
import { MICROSOFT_ISSUER } from './issuer.ts';

/** A network of Sui whose validators accept zkLogin signatures. */
export type Network = 'mainnet' | 'testnet' | 'devnet';

/** The data of an OpenID provider that a wallet needs. */
export interface Provider {
  /** Name of the provider that users see. */
  readonly name: string;
  /** URL of the provider's page on which users log in. */
  readonly authorizationUrl: string;
  /** Response type of the login: a token at once, or a code to exchange. */
  readonly responseType: 'id_token' | 'code' | 'code id_token';
  /** Scope of the token; null if the provider accepts none. */
  readonly scope: string | null;
  /**
   * Parameters that are sent with every login, besides client_id, redirect_uri, nonce, state, response_type
   * and scope.
   */
  readonly extraParameters: Readonly<Record<string, string>>;
  /**
   * Whether Sui's documentation lists only the auth flow. Whether a code must be exchanged depends on
   * `token`, not on this.
   */
  readonly authFlowOnly: boolean;
  /** URL and form of the exchange of a code for a token; null if the login itself returns the token. */
  readonly token: { readonly url: string; readonly variant: 'grant_type' | 'client_secret' } | null;
  /** URL of the provider's public keys (JWKS). */
  readonly jwksUrl: string;
  /** The exact `iss` of the tokens, or MICROSOFT_ISSUER. Google's `iss` may lack `https://`. */
  readonly issuer: string;
  /**
   * Networks whose validators accept the provider's tokens, as last documented. Empty if they are unknown, as
   * for a custom provider.
   */
  readonly networks: readonly Network[];
}

const EVERYWHERE: readonly Network[] = ['mainnet', 'testnet', 'devnet'];
const DEVNET: readonly Network[] = ['devnet'];

/** The OpenID providers that Sui's validators accept. */
export const PROVIDERS = {
  google: {
    name: 'Google',
    authorizationUrl: 'https://accounts.google.com/o/oauth2/v2/auth',
    responseType: 'id_token',
    scope: 'openid',
    extraParameters: {},
    authFlowOnly: true,
    token: null,
    jwksUrl: 'https://www.googleapis.com/oauth2/v3/certs',
    issuer: 'https://accounts.google.com',
    networks: EVERYWHERE,
  },
  facebook: {
    name: 'Facebook',
    authorizationUrl: 'https://www.facebook.com/v17.0/dialog/oauth',
    responseType: 'id_token',
    scope: 'openid',
    extraParameters: {},
    authFlowOnly: true,
    token: null,
    jwksUrl: 'https://www.facebook.com/.well-known/oauth/openid/jwks/',
    issuer: 'https://www.facebook.com',
    networks: EVERYWHERE,
  },
  twitch: {
    name: 'Twitch',
    authorizationUrl: 'https://id.twitch.tv/oauth2/authorize',
    responseType: 'id_token',
    scope: 'openid',
    extraParameters: { force_verify: 'true', lang: 'en', login_type: 'login' },
    authFlowOnly: true,
    token: null,
    jwksUrl: 'https://id.twitch.tv/oauth2/keys',
    issuer: 'https://id.twitch.tv/oauth2',
    networks: EVERYWHERE,
  },
  kakao: {
    name: 'Kakao',
    authorizationUrl: 'https://kauth.kakao.com/oauth/authorize',
    responseType: 'code',
    scope: null,
    extraParameters: {},
    authFlowOnly: false,
    token: { url: 'https://kauth.kakao.com/oauth/token', variant: 'grant_type' },
    jwksUrl: 'https://kauth.kakao.com/.well-known/jwks.json',
    issuer: 'https://kauth.kakao.com',
    networks: DEVNET,
  },
  apple: {
    name: 'Apple',
    authorizationUrl: 'https://appleid.apple.com/auth/authorize',
    responseType: 'code id_token',
    scope: 'email',
    extraParameters: { response_mode: 'form_post' },
    authFlowOnly: true,
    token: null,
    jwksUrl: 'https://appleid.apple.com/auth/keys',
    issuer: 'https://appleid.apple.com',
    networks: EVERYWHERE,
  },
  slack: {
    name: 'Slack',
    authorizationUrl: 'https://slack.com/openid/connect/authorize',
    responseType: 'code',
    scope: 'openid',
    extraParameters: {},
    authFlowOnly: true,
    token: { url: 'https://slack.com/api/openid.connect.token', variant: 'client_secret' },
    jwksUrl: 'https://slack.com/openid/connect/keys',
    issuer: 'https://slack.com',
    networks: DEVNET,
  },
  microsoft: {
    name: 'Microsoft',
    authorizationUrl: 'https://login.microsoftonline.com/common/oauth2/v2.0/authorize',
    responseType: 'id_token',
    scope: 'openid',
    extraParameters: {},
    authFlowOnly: true,
    token: null,
    jwksUrl: 'https://login.microsoftonline.com/common/discovery/v2.0/keys',
    issuer: MICROSOFT_ISSUER,
    networks: DEVNET,
  },
} as const satisfies Record<string, Provider>;

/** Returns whether at least one network is known to refuse the provider's tokens. */
export function isRefusedSomewhere({ networks }: Provider): boolean {
  return networks.length > 0 && !EVERYWHERE.every((network) => networks.includes(network));
}
