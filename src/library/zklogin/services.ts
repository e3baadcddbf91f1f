/** Requests salts from the salt service, and proofs from the proving service. */
import type { ZkLoginSignatureInputs } from '@mysten/sui/zklogin';
import type { EnclaveClientOptions } from '../client/options.ts';
import { SUI_V1, valueFault } from '../token/claims.ts';
import { ZkLoginError } from './errors.ts';
import {
  type PrivateServiceOptions,
  parseAnswer,
  postJson,
  type ServiceOptions,
  serviceUrl,
} from './http.ts';
import { checkKeyClaim } from './jwt.ts';
import {
  type BigNumber,
  EXTENDED_KEY_SIZES,
  isNumber,
  type NumberEncoding,
  readNumber,
  SALT_SIZE,
  writeNumber,
} from './numbers.ts';

const SALT_TIMEOUT_MS = 10_000;
/**
 * Time limit for a proof. It is well above the 15 seconds that this repository's proving service gives its
 * backend by default (`PROVER_TIMEOUT`).
 */
const PROOF_TIMEOUT_MS = 60_000;

/** The order of BN254's base field. Coordinates are less than this number. */
const FIELD = 21888242871839275222246405745257275088696311157297823662689037894645226208583n;

/** A request to the proving service, as Login.proofRequest returns it. */
export interface ProofRequest {
  /** The token of the provider. */
  readonly jwt: string;
  /** Scheme flag and public key: 33 bytes for ed25519, 34 for the ECDSA schemes. */
  readonly extendedEphemeralPublicKey: BigNumber;
  /** Last epoch in which the ephemeral key can sign. */
  readonly maxEpoch: number | string;
  /** The randomness in the token's nonce, 16 bytes. */
  readonly jwtRandomness: BigNumber;
  /** The user's salt, 16 bytes. */
  readonly salt: BigNumber;
  /** Name of the claim that identifies the user, such as `sub`. */
  readonly keyClaimName: string;
}

/** The proving service's answer: the inputs of a signature without the address seed. */
export type Proof = Omit<ZkLoginSignatureInputs, 'addressSeed'>;

/** Options of `getProof`, which requests a proof. */
export interface ProofOptions extends PrivateServiceOptions {
  /** The encoding of the three big numbers. Default: decimal. */
  readonly encoding?: NumberEncoding;
}

export interface SaltOptions extends PrivateServiceOptions {
  /**
   * The policy that the enclave of the salt service must meet. With a policy, token and salt are sealed, and
   * neither the host nor a proxy can read them. Without a policy, the TLS proxy and the enclave's parent
   * instance can read them.
   */
  readonly policy?: EnclaveClientOptions['policy'];
  /** DER of the roots to trust instead of AWS's, together with `policy`, for development. */
  readonly roots?: EnclaveClientOptions['roots'];
}

/**
 * Gets the user's salt by `POST {url}/get_salt`. The request is sealed if there is a policy.
 *
 * Exported from `sui-enclave/zklogin`.
 *
 * @param url the service's URL, to which `/get_salt` is appended; getProof appends nothing
 * @returns the salt in decimal, less than 2^128
 * @throws ZkLoginError: ZKLOGIN_OPTION, ZKLOGIN_UNREACHABLE, ZKLOGIN_TIMEOUT, ZKLOGIN_REFUSED,
 *   ZKLOGIN_MALFORMED_ANSWER. With `policy` also ZKLOGIN_LOAD, and the ClientError or AttestationError that
 *   says why the service or its answer can't be trusted
 * @example
 * const salt = await getSalt('https://salt.wallet.example', login.token, { policy: { images: [image] } });
 */
export async function getSalt(
  url: string | URL,
  token: string,
  saltOptions: SaltOptions = {},
): Promise<string> {
  const { timeoutMs = SALT_TIMEOUT_MS, allowHttp = false, policy, roots, ...options } = saltOptions;
  const service = 'salt service';
  if (typeof token !== 'string')
    throw new ZkLoginError('ZKLOGIN_OPTION', 'token must be a string: see Login.token');
  const base = serviceUrl(service, url, allowHttp);
  if (/\/get_salt\/?$/.test(base.pathname)) {
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      'the URL of the salt service must not include /get_salt, which is appended to it',
    );
  }
  // The caller's configuration may lack the policy. In this case, the token must not be sent unsealed.
  if ('policy' in saltOptions && policy === undefined) {
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      'policy is undefined: pass a policy, or leave the option out to send the token unsealed',
    );
  }
  if (policy === undefined && roots !== undefined) {
    throw new ZkLoginError('ZKLOGIN_OPTION', 'roots have no effect without policy: pass both');
  }
  let answer: unknown;
  if (policy === undefined) {
    answer = await askUnsealed(service, base, { token }, { ...options, timeoutMs });
  } else {
    const { askSealed } = await loadSealed();
    answer = await askSealed(service, base, '/get_salt', { token }, { ...options, timeoutMs, policy, roots });
  }
  const { salt } = readProperties(service, answer);
  if (typeof salt !== 'string')
    throw new ZkLoginError('ZKLOGIN_MALFORMED_ANSWER', 'the answer of the salt service has no salt');
  // Accept only decimal, although readNumber accepts more, since the salt service's protocol has no other
  // form.
  if (!/^[0-9]+$/.test(salt) || !isNumber(salt, SALT_SIZE)) {
    throw new ZkLoginError(
      'ZKLOGIN_MALFORMED_ANSWER',
      'the salt in the answer of the salt service is not a decimal number below 2^128',
    );
  }
  return BigInt(salt).toString();
}

/**
 * Loads the client, which adds 60 KB (gzipped) to a page's code, so a wallet without a policy doesn't load
 * it. A failure is not cached: the next call tries again.
 */
async function loadSealed(): Promise<typeof import('./sealed.ts')> {
  try {
    return await import('./sealed.ts');
  } catch (cause) {
    const message =
      'the code that seals the request of getSalt could not be loaded: the page is offline, or its files were replaced; if another call fails too, reload the page';
    throw new ZkLoginError('ZKLOGIN_LOAD', message, { cause });
  }
}

async function askUnsealed(
  service: string,
  base: URL,
  body: object,
  options: ServiceOptions & { readonly timeoutMs: number },
): Promise<unknown> {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/get_salt`;
  const contentType = 'application/json';
  const request = { ...options, service, url, contentType, body: JSON.stringify(body), repeatable: true };
  return parseAnswer(service, await postJson(request));
}

/**
 * Gets a proof by `POST {url}`.
 *
 * Exported from `sui-enclave/zklogin`.
 *
 * @param url the service's complete URL with its path: nothing is appended, unlike in getSalt
 * @throws ZkLoginError: ZKLOGIN_OPTION, ZKLOGIN_UNREACHABLE, ZKLOGIN_TIMEOUT, ZKLOGIN_REFUSED,
 *   ZKLOGIN_MALFORMED_ANSWER; ZKLOGIN_TOKEN, or ClaimError if the token lacks the claim that keyClaimName
 *   names, or if the circuit can't process the claim
 * @example
 * const proof = await getProof('https://prover.wallet.example/v1', login.proofRequest(salt));
 */
export async function getProof(
  url: string | URL,
  request: ProofRequest,
  options: ProofOptions = {},
): Promise<Proof> {
  const {
    encoding = 'decimal',
    allowHttp = false,
    timeoutMs = PROOF_TIMEOUT_MS,
    ...requestOptions
  } = options;
  const service = 'proving service';
  const answer = await postJson({
    ...requestOptions,
    timeoutMs,
    service,
    url: serviceUrl(service, url, allowHttp),
    contentType: 'application/json',
    body: JSON.stringify(writeRequest(request, encoding)),
    repeatable: true,
  });
  return readProof(parseAnswer(service, answer));
}

function writeRequest(request: ProofRequest, encoding: NumberEncoding) {
  if (encoding !== 'decimal' && encoding !== 'base64') {
    throw new ZkLoginError('ZKLOGIN_OPTION', 'encoding must be decimal or base64');
  }
  if (typeof request?.jwt !== 'string') {
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      'the request must have the form that Login.proofRequest returns',
    );
  }
  requireKeyClaim(request);
  const number = (name: 'jwtRandomness' | 'salt') =>
    writeNumber(readNumber(name, request[name], SALT_SIZE), encoding, SALT_SIZE);
  const maxEpoch = String(request.maxEpoch);
  if (!/^(0|[1-9][0-9]{0,19})$/.test(maxEpoch))
    throw new ZkLoginError('ZKLOGIN_OPTION', 'maxEpoch must be an epoch number');
  return {
    jwt: request.jwt,
    extendedEphemeralPublicKey: writeKey(request.extendedEphemeralPublicKey, encoding),
    maxEpoch,
    jwtRandomness: number('jwtRandomness'),
    salt: number('salt'),
    keyClaimName: request.keyClaimName,
  };
}

function requireKeyClaim({ jwt, keyClaimName }: ProofRequest): void {
  if (typeof keyClaimName !== 'string')
    throw new ZkLoginError('ZKLOGIN_OPTION', 'keyClaimName must be a string');
  const fault = valueFault(keyClaimName, SUI_V1.keyClaimName);
  if (fault !== null) throw new ZkLoginError('ZKLOGIN_OPTION', `keyClaimName ${fault}`);
  checkKeyClaim(jwt, keyClaimName);
}

function writeKey(key: BigNumber, encoding: NumberEncoding): string {
  const number = readNumber('extendedEphemeralPublicKey', key, ...EXTENDED_KEY_SIZES);
  const [, usual, longer] = EXTENDED_KEY_SIZES;
  return writeNumber(number, encoding, number < 1n << BigInt(8 * usual) ? usual : longer);
}

/** Copies only the documented properties. @throws ZkLoginError: ZKLOGIN_MALFORMED_ANSWER */
export function readProof(answer: unknown): Proof {
  const proof = readProperties('proving service', answer);
  const points = readProperties('proving service', proof['proofPoints']);
  const details = readProperties('proving service', proof['issBase64Details']);
  const { value, indexMod4 } = details;
  const { headerBase64 } = proof;
  const b = points['b'];
  if (
    !isPoint(points['a'], 3) ||
    !isPoint(points['c'], 3) ||
    !isList(b, 3) ||
    !b.every((pair) => isPoint(pair, 2))
  ) {
    throw new ZkLoginError(
      'ZKLOGIN_MALFORMED_ANSWER',
      'the proofPoints in the answer of the proving service are invalid',
    );
  }
  const isIssuer = isBase64url(value) && value.length <= SUI_V1.issuerBase64;
  if (!isIssuer || (indexMod4 !== 0 && indexMod4 !== 1 && indexMod4 !== 2)) {
    throw new ZkLoginError(
      'ZKLOGIN_MALFORMED_ANSWER',
      'the issBase64Details in the answer of the proving service are invalid',
    );
  }
  if (!isBase64url(headerBase64) || headerBase64.length > SUI_V1.header) {
    throw new ZkLoginError(
      'ZKLOGIN_MALFORMED_ANSWER',
      'the headerBase64 in the answer of the proving service is invalid',
    );
  }
  const { a, c } = points as { a: string[]; c: string[] };
  return {
    proofPoints: { a: [...a], b: (b as string[][]).map((pair) => [...pair]), c: [...c] },
    issBase64Details: { value, indexMod4 },
    headerBase64,
  };
}

function readProperties(service: string, value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) {
    throw new ZkLoginError(
      'ZKLOGIN_MALFORMED_ANSWER',
      `the answer of the ${service} is not of the expected form`,
    );
  }
  return value as Record<string, unknown>;
}

function isList(value: unknown, length: number): value is unknown[] {
  return Array.isArray(value) && value.length === length;
}

function isPoint(value: unknown, length: number): value is string[] {
  return (
    isList(value, length) &&
    value.every(
      (number) =>
        typeof number === 'string' && /^(0|[1-9][0-9]{0,76})$/.test(number) && BigInt(number) < FIELD,
    )
  );
}

function isBase64url(value: unknown): value is string {
  return typeof value === 'string' && /^[\w-]+$/.test(value);
}
