import { fetchText, NoAnswerError } from '../fetch.ts';
import type { Provider } from '../token/providers.ts';
import { isSecureUrl } from '../url.ts';
import { ServiceRefusedError, type ZkLoginCode, ZkLoginError } from './errors.ts';
import { createServiceError } from './http.ts';

/** Options of `discoverProvider`, for a provider that is not in `PROVIDERS`. */
export interface DiscoveryOptions {
  /** Name of the provider that users see. */
  readonly name: string;
  /** Response type of the login. Default: `id_token` if the provider supports it, else `code`. */
  readonly responseType?: Provider['responseType'];
  /** Scope of the token. Default: `openid`. */
  readonly scope?: string;
  /** Further parameters of the authorization URL. */
  readonly extraParameters?: Readonly<Record<string, string>>;
  /** Form in which the token URL expects the exchange of a code. */
  readonly tokenVariant?: 'grant_type' | 'client_secret';
  /** Networks whose validators accept the provider. */
  readonly networks?: Provider['networks'];
  /** Function that sends the request. Default: the platform's `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  /** Signal that ends the request, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

const SERVICE = 'discovery document';
const TIMEOUT_MS = 10_000;
const MAX_SIZE = 65_536;

/**
 * Returns a custom provider, from its discovery document (OpenID Connect Discovery 1.0, section 4). Sui's
 * validators accept its tokens only if they know the issuer.
 *
 * @param issuer the issuer exactly as in the provider's tokens
 * @throws ZkLoginError: ZKLOGIN_OPTION, ZKLOGIN_UNREACHABLE, ZKLOGIN_TIMEOUT, ZKLOGIN_REFUSED,
 *   ZKLOGIN_MALFORMED_ANSWER, also for a document of another issuer
 */
export async function discoverProvider(issuer: string, options: DiscoveryOptions): Promise<Provider> {
  const {
    name,
    scope = 'openid',
    extraParameters = {},
    tokenVariant = 'grant_type',
    networks = [],
  } = options ?? {};
  if (typeof name !== 'string') throw new ZkLoginError('ZKLOGIN_OPTION', 'name must be a string');
  requireSecure(issuer, 'the issuer', 'ZKLOGIN_OPTION');
  const document = await fetchDocument(issuer, options);
  if (document['issuer'] !== issuer) {
    throw new ZkLoginError('ZKLOGIN_MALFORMED_ANSWER', `the ${SERVICE} is from another issuer`);
  }
  const supported = document['response_types_supported'];
  const types: unknown[] = Array.isArray(supported) ? supported : [];
  const responseType = options.responseType ?? (types.includes('id_token') ? 'id_token' : 'code');
  if (!types.includes(responseType)) {
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      `the provider does not support the response type ${responseType}`,
    );
  }
  const algorithms = document['id_token_signing_alg_values_supported'];
  if (!Array.isArray(algorithms) || !algorithms.includes('RS256')) {
    throw new ZkLoginError('ZKLOGIN_OPTION', 'the provider does not sign with RS256, which zkLogin requires');
  }
  const url = (name: string) =>
    requireSecure(document[name], `the ${name} in the ${SERVICE}`, 'ZKLOGIN_MALFORMED_ANSWER');
  const needsExchange = responseType === 'code';
  return {
    name,
    authorizationUrl: url('authorization_endpoint'),
    responseType,
    scope,
    extraParameters,
    authFlowOnly: !needsExchange,
    token: needsExchange ? { url: url('token_endpoint'), variant: tokenVariant } : null,
    jwksUrl: url('jwks_uri'),
    issuer,
    networks,
  };
}

async function fetchDocument(
  issuer: string,
  { fetch, signal }: Pick<DiscoveryOptions, 'fetch' | 'signal'>,
): Promise<Record<string, unknown>> {
  const url = new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  const bounds = { fetch, timeoutMs: TIMEOUT_MS, maxSize: MAX_SIZE, signal };
  const {
    ok,
    status,
    text,
    retryAfterSeconds = null,
  } = await fetchText(url, {}, bounds).catch((error: unknown) => {
    if (!(error instanceof NoAnswerError)) throw error;
    throw createServiceError(error, { ...bounds, service: SERVICE });
  });
  if (!ok) throw new ServiceRefusedError(SERVICE, { status, serverCode: null, retryAfterSeconds });
  try {
    const document: unknown = JSON.parse(text);
    if (typeof document === 'object' && document !== null) return document as Record<string, unknown>;
  } catch {
    // The error below covers this case.
  }
  throw new ZkLoginError('ZKLOGIN_MALFORMED_ANSWER', `the ${SERVICE} is not a JSON object`);
}

function requireSecure(value: unknown, label: string, code: ZkLoginCode): string {
  if (typeof value === 'string' && URL.canParse(value) && isSecureUrl(new URL(value))) return value;
  throw new ZkLoginError(code, `${label} must be an https URL`);
}
