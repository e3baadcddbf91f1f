import {
  InvalidOptionError,
  MalformedAnswerError,
  NoLoginError,
  ProviderRefusedError,
  RedirectError,
  StateMismatchError,
} from './errors.ts';
import { jsonOf, post, type ServiceOptions, serviceUrl } from './http.ts';
import { isIssuedBy, MICROSOFT_ISSUER } from './issuer.ts';
import { checkToken } from './jwt.ts';
import { Login } from './login.ts';
import { holdsAnswer, type Redirect, readParameters } from './redirect.ts';
import { type BegunLogin, loadLogin, loginStore, type SessionStore, saveLogin } from './storage.ts';

export interface CompleteOptions extends ServiceOptions {
  /** For a provider whose token URL demands it; outside browsers only. A page has its backend add it. */
  readonly clientSecret?: string;
  /** The session storage of the browser unless told. */
  readonly storage?: SessionStore;
  /** The clock, in milliseconds since 1970. */
  readonly now?: () => number;
}

const EXCHANGE_TIMEOUT_MS = 10_000;

/**
 * Takes what the provider sent the user back with, and checks that it belongs to the login that this session
 * began. Where the provider gives a code, it is exchanged for the token.
 *
 * @param redirect the URL that the user came back to (its query or fragment will do), or the body of a form_post:
 *   see loginStage for whether it has an answer at all
 * @throws ZkLoginError
 */
export async function completeLogin(redirect: Redirect, options: CompleteOptions = {}): Promise<Login> {
  const store = loginStore(options.storage);
  const login = loadLogin(store);
  // Its answer was taken already: this one is a copy, or another's.
  if (login.stage !== 'begun')
    throw new NoLoginError('the login is complete already: call resumeLogin, or begin again');
  if (!holdsAnswer(redirect, login.redirectUri)) {
    throw new RedirectError(
      "there is no answer of a provider here: call completeLogin only where loginStage says 'answered'",
    );
  }
  const parameters = readParameters(redirect, login.redirectUri);
  const state = parameters.get('state');
  if (state !== login.state) throw new StateMismatchError();
  const error = parameters.get('error');
  if (error !== undefined) throw new ProviderRefusedError(isReason(error) ? error : null);
  // RFC 9207: who answers says so, if it knows how to. Microsoft's tenant is told by the token.
  const iss = parameters.get('iss');
  const { issuer } = login.provider;
  if (iss !== undefined && issuer !== MICROSOFT_ISSUER && !isIssuedBy(issuer, { iss })) {
    throw new RedirectError('the answer is of another issuer than the login was begun with');
  }
  const jwt = await tokenOf(parameters, login, options);
  checkToken(jwt, { issuer, clientId: login.clientId, nonce: login.nonce }, (options.now ?? Date.now)());
  const { provider, clientId, nonce, randomness, maxEpoch, secretKey } = login;
  saveLogin(store, { stage: 'complete', provider, clientId, nonce, randomness, maxEpoch, secretKey, jwt });
  return new Login(store);
}

async function tokenOf(
  parameters: ReadonlyMap<string, string>,
  login: BegunLogin,
  options: CompleteOptions,
): Promise<string> {
  if (login.provider.token !== null) {
    const code = parameters.get('code');
    if (code === undefined) throw new RedirectError('the answer has no code');
    return await exchange(code, login, login.provider.token, options);
  }
  const token = parameters.get('id_token');
  if (token === undefined) throw new RedirectError('the answer has no id_token');
  return token;
}

/** Spec section 4.1, point 3. A code works once, so that the request is never repeated. */
async function exchange(
  code: string,
  { clientId, redirectUri }: BegunLogin,
  { url, variant }: { url: string; variant: 'grant_type' | 'client_secret' },
  { clientSecret, headers, timeoutMs = EXCHANGE_TIMEOUT_MS, fetch }: CompleteOptions,
): Promise<string> {
  const service = 'token URL';
  const answer = await post({
    service,
    url: serviceUrl(service, url),
    contentType: 'application/x-www-form-urlencoded',
    body: new URLSearchParams(
      variant === 'grant_type'
        ? { grant_type: 'authorization_code', client_id: clientId, redirect_uri: redirectUri, code }
        : {
            code,
            client_id: clientId,
            redirect_uri: redirectUri,
            client_secret: requireSecret(clientSecret),
          },
    ).toString(),
    timeoutMs,
    repeatable: false,
    ...(headers && { headers }),
    ...(fetch && { fetch }),
  });
  const reason = reasonOf(answer.text);
  if (reason !== null) throw new ProviderRefusedError(reason);
  const token = (jsonOf(service, answer) as { id_token?: unknown } | null)?.id_token;
  if (typeof token !== 'string') throw new MalformedAnswerError('the token URL answered with no id_token');
  return token;
}

/** The `error` of a token URL's answer: RFC 6749, section 5.2, has it with status 400, Slack with 200. */
function reasonOf(text: string): string | null {
  try {
    const error: unknown = JSON.parse(text)?.error;
    return isReason(error) ? error : null;
  } catch {
    return null;
  }
}

/** Nothing else of a foreign text is passed on. */
function isReason(value: unknown): value is string {
  return typeof value === 'string' && /^[a-z_]{1,64}$/.test(value);
}

function requireSecret(clientSecret: string | undefined): string {
  if ('document' in globalThis || 'importScripts' in globalThis) {
    throw new InvalidOptionError(
      "this provider wants a client secret for the code, which no page may have: give the provider a token URL of your own backend, with the variant grant_type; the backend adds the secret and passes the provider's id_token on",
    );
  }
  if (!clientSecret)
    throw new InvalidOptionError('this provider wants a client secret for the code: give clientSecret');
  return clientSecret;
}
