import { fetchText, NoAnswerError } from '../fetch.ts';
import {
  InvalidOptionError,
  MalformedAnswerError,
  ServiceRefusedError,
  ServiceTimeoutError,
  ServiceUnreachableError,
} from './errors.ts';
import { isSecure } from './http.ts';
import type { Provider } from './providers.ts';

export interface DiscoveryOptions {
  readonly name: string;
  /** `id_token`, where the provider supports it, unless told. */
  readonly responseType?: Provider['responseType'];
  /** `openid` unless told. */
  readonly scope?: string;
  readonly extraParameters?: Readonly<Record<string, string>>;
  readonly tokenVariant?: 'grant_type' | 'client_secret';
  readonly networks?: Provider['networks'];
  readonly fetch?: typeof globalThis.fetch;
}

const SERVICE = 'discovery document';
const TIMEOUT_MS = 10_000;
const MAX_SIZE = 65_536;

/**
 * A provider of one's own, from its discovery document (OpenID Connect Discovery 1.0, section 4). Sui's
 * validators take its tokens only where they know the issuer.
 *
 * @param issuer exactly as its tokens name it
 * @throws the service errors of errors.ts; MalformedAnswerError for a document of another issuer
 */
export async function discoverProvider(issuer: string, options: DiscoveryOptions): Promise<Provider> {
  const {
    name,
    scope = 'openid',
    extraParameters = {},
    tokenVariant = 'grant_type',
    networks = [],
  } = options ?? {};
  if (typeof name !== 'string') throw new InvalidOptionError('name must be a text');
  requireSecure(issuer, 'the issuer', InvalidOptionError);
  const document = await fetchDocument(issuer, options.fetch);
  if (document['issuer'] !== issuer) {
    throw new MalformedAnswerError(`the ${SERVICE} is of another issuer than it was asked for`);
  }
  const supported = document['response_types_supported'];
  const types: unknown[] = Array.isArray(supported) ? supported : [];
  const responseType = options.responseType ?? (types.includes('id_token') ? 'id_token' : 'code');
  if (!types.includes(responseType)) {
    throw new InvalidOptionError(`the provider does not support the response type ${responseType}`);
  }
  const algorithms = document['id_token_signing_alg_values_supported'];
  if (!Array.isArray(algorithms) || !algorithms.includes('RS256')) {
    throw new InvalidOptionError('the provider does not sign with RS256, which zkLogin needs');
  }
  const url = (member: string) => requireSecure(document[member], `its ${member}`, MalformedAnswerError);
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
  fetch?: typeof globalThis.fetch,
): Promise<Record<string, unknown>> {
  const url = new URL(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  const bounds = { fetch, timeoutMs: TIMEOUT_MS, maxSize: MAX_SIZE };
  const { ok, status, text } = await fetchText(url, {}, bounds).catch((error: unknown) => {
    if (!(error instanceof NoAnswerError)) throw error;
    const { reason } = error;
    if (reason === 'timeout')
      throw new ServiceTimeoutError(`the ${SERVICE} did not come within ${TIMEOUT_MS} ms`);
    if (reason === 'too large')
      throw new MalformedAnswerError(`the ${SERVICE} is larger than ${MAX_SIZE} bytes`);
    throw new ServiceUnreachableError(`the ${SERVICE} can't be reached`);
  });
  if (!ok) throw new ServiceRefusedError(SERVICE, status, null);
  try {
    const document: unknown = JSON.parse(text);
    if (typeof document === 'object' && document !== null) return document as Record<string, unknown>;
  } catch {
    // Said below.
  }
  throw new MalformedAnswerError(`the ${SERVICE} is no JSON object`);
}

function requireSecure(value: unknown, what: string, Failure: new (message: string) => Error): string {
  if (typeof value === 'string' && URL.canParse(value) && isSecure(new URL(value))) return value;
  throw new Failure(`${what} must be an https URL`);
}
