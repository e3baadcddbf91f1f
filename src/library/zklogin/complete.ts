import { isIssuedBy, MICROSOFT_ISSUER } from '../token/issuer.ts';
import { ProviderRefusedError, ZkLoginError } from './errors.ts';
import { parseAnswer, postJson, type ServiceOptions, serviceUrl } from './http.ts';
import { checkToken } from './jwt.ts';
import { Login } from './login.ts';
import { holdsAnswer, type Redirect, readParameters } from './redirect.ts';
import {
  type BegunLogin,
  findLogin,
  loadLogin,
  loginStore,
  type SessionStore,
  saveLogin,
} from './storage.ts';

/** Options of `completeLogin`, which takes the provider's answer. */
export interface CompleteOptions extends ServiceOptions {
  /**
   * Client secret for a provider whose token URL requires it. Pass it only outside browsers: a page must
   * leave it to its backend to add the secret.
   */
  readonly clientSecret?: string;
  /** Storage of the login. Default: the session storage of the browser. */
  readonly storage?: SessionStore;
  /** The current time in milliseconds since 1970. Default: Date.now. */
  readonly now?: () => number;
}

const EXCHANGE_TIMEOUT_MS = 10_000;

/**
 * Reads the provider's answer from the redirect, and checks that it belongs to the login that this session
 * began. If the answer is a code, exchanges it for the token.
 *
 * @param redirect the URL to which the user came back (or only its query or fragment), or the body of a
 *   form_post. `loginStage` returns whether the redirect has an answer
 * @throws ZkLoginError, ZKLOGIN_NO_LOGIN also if the login was cancelled, replaced or completed while the
 *   code was exchanged; the signal's reason
 */
export async function completeLogin(redirect: Redirect, options: CompleteOptions = {}): Promise<Login> {
  const store = loginStore(options.storage);
  const login = loadLogin(store);
  // The login already has its answer. This answer is a copy, or belongs to another login.
  if (login.stage !== 'begun')
    throw new ZkLoginError(
      'ZKLOGIN_NO_LOGIN',
      'the login is already complete: call resumeLogin, or begin again',
    );
  if (!holdsAnswer(redirect, login.redirectUri)) {
    throw new ZkLoginError(
      'ZKLOGIN_REDIRECT',
      "the redirect does not contain a provider's answer: call completeLogin only when loginStage returns 'answered'",
    );
  }
  const parameters = readParameters(redirect, login.redirectUri);
  const state = parameters.get('state');
  if (state !== login.state) {
    const message = "the answer does not have the state of this session's login: begin again";
    throw new ZkLoginError('ZKLOGIN_STATE', message);
  }
  const error = parameters.get('error');
  if (error !== undefined) throw new ProviderRefusedError(isReason(error) ? error : null);
  // RFC 9207: the answer may name its issuer. Microsoft's tenant is checked in the token.
  const iss = parameters.get('iss');
  const { issuer } = login.provider;
  if (iss !== undefined && issuer !== MICROSOFT_ISSUER && !isIssuedBy(issuer, { iss })) {
    throw new ZkLoginError('ZKLOGIN_REDIRECT', 'the issuer of the answer is not the provider of the login');
  }
  const jwt = await findToken(parameters, login, options);
  checkToken(jwt, { issuer, clientId: login.clientId, nonce: login.nonce }, (options.now ?? Date.now)());
  // The exchange takes time, in which the storage may have changed.
  const stored = findLogin(store);
  if (stored?.stage !== 'begun' || stored.state !== state) {
    throw new ZkLoginError(
      'ZKLOGIN_NO_LOGIN',
      'the login was cancelled, replaced or completed while its code was exchanged',
    );
  }
  const { provider, clientId, nonce, randomness, maxEpoch, secretKey } = login;
  saveLogin(store, { stage: 'complete', provider, clientId, nonce, randomness, maxEpoch, secretKey, jwt });
  return new Login(store);
}

async function findToken(
  parameters: ReadonlyMap<string, string>,
  login: BegunLogin,
  options: CompleteOptions,
): Promise<string> {
  if (login.provider.token !== null) {
    const code = parameters.get('code');
    if (code === undefined) throw new ZkLoginError('ZKLOGIN_REDIRECT', 'the answer has no code');
    return await exchange(code, login, login.provider.token, options);
  }
  const token = parameters.get('id_token');
  if (token === undefined) throw new ZkLoginError('ZKLOGIN_REDIRECT', 'the answer has no id_token');
  return token;
}

/**
 * Exchanges a code for the token at the provider's token URL. A code works only once, so the request is
 * never repeated.
 */
async function exchange(
  code: string,
  { clientId, redirectUri }: BegunLogin,
  { url, variant }: { url: string; variant: 'grant_type' | 'client_secret' },
  { clientSecret, headers, timeoutMs = EXCHANGE_TIMEOUT_MS, fetch, signal }: CompleteOptions,
): Promise<string> {
  const service = 'token URL';
  const answer = await postJson({
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
    ...(signal && { signal }),
  });
  const reason = readReason(answer.text);
  if (reason !== null) throw new ProviderRefusedError(reason);
  const token = (parseAnswer(service, answer) as { id_token?: unknown } | null)?.id_token;
  if (typeof token !== 'string')
    throw new ZkLoginError('ZKLOGIN_MALFORMED_ANSWER', 'the answer of the token URL has no id_token');
  return token;
}

/**
 * Returns the `error` in a token URL's answer, which has status 400 in RFC 6749, section 5.2, and 200 at
 * Slack.
 */
function readReason(text: string): string | null {
  try {
    const error: unknown = JSON.parse(text)?.error;
    return isReason(error) ? error : null;
  } catch {
    return null;
  }
}

/** Returns whether a value has the form of an error code. Errors contain nothing else from the provider. */
function isReason(value: unknown): value is string {
  return typeof value === 'string' && /^[a-z_]{1,64}$/.test(value);
}

function requireSecret(clientSecret: string | undefined): string {
  if ('document' in globalThis || 'importScripts' in globalThis) {
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      "this provider exchanges the code only with a client secret, which a page must not have: give the provider a token URL of your own backend, with the variant grant_type; the backend adds the secret and passes on the provider's id_token",
    );
  }
  if (!clientSecret)
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      'this provider exchanges the code only with a client secret: pass clientSecret',
    );
  return clientSecret;
}
