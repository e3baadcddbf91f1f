/** The salt service and the proving service. */
import type { ZkLoginSignatureInputs } from '@mysten/sui/zklogin';
import { SUI_V1, valueFault } from './claims.ts';
import { InvalidOptionError, MalformedAnswerError } from './errors.ts';
import { jsonOf, type PrivateServiceOptions, post, serviceUrl } from './http.ts';
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
/** A self-run prover gives itself 15 seconds unless told; a queue comes before it. */
const PROOF_TIMEOUT_MS = 60_000;

/** The order of BN254's base field: coordinates are below it. */
const FIELD = 21888242871839275222246405745257275088696311157297823662689037894645226208583n;

/** What the proving service takes (spec section 2.5). */
export interface ProofRequest {
  readonly jwt: string;
  readonly extendedEphemeralPublicKey: BigNumber;
  readonly maxEpoch: number | string;
  readonly jwtRandomness: BigNumber;
  readonly salt: BigNumber;
  readonly keyClaimName: string;
}

/** What it answers (section 2.6): a signature's inputs without the address seed. */
export type Proof = Omit<ZkLoginSignatureInputs, 'addressSeed'>;

export interface ProofOptions extends PrivateServiceOptions {
  /** How the three big numbers are sent: decimal unless told. */
  readonly encoding?: NumberEncoding;
}

/**
 * `POST {url}/get_salt`.
 *
 * Exported from `sui-enclave/zklogin`.
 *
 * @param url of the service, to which `/get_salt` is added (getProof's is taken whole)
 * @returns decimal, below 2^128
 * @throws the service errors of errors.ts, InvalidOptionError
 * @example
 * const salt = await getSalt('https://salt.wallet.example', login.token);
 */
export async function getSalt(
  url: string | URL,
  token: string,
  { timeoutMs = SALT_TIMEOUT_MS, allowHttp = false, ...options }: PrivateServiceOptions = {},
): Promise<string> {
  const service = 'salt service';
  if (typeof token !== 'string') throw new InvalidOptionError('token must be a text: see Login.token');
  const base = serviceUrl(service, url, allowHttp);
  if (/\/get_salt\/?$/.test(base.pathname)) {
    throw new InvalidOptionError(
      'the URL of the salt service must end before /get_salt, which is added to it',
    );
  }
  base.pathname = `${base.pathname.replace(/\/$/, '')}/get_salt`;
  const answer = await post({
    ...options,
    timeoutMs,
    service,
    url: base,
    contentType: 'application/json',
    body: JSON.stringify({ token }),
    repeatable: true,
  });
  const { salt } = members(service, jsonOf(service, answer));
  if (typeof salt !== 'string') throw new MalformedAnswerError('the salt service answered with no salt');
  // Decimal alone (spec section 2.4), though readNumber takes more.
  if (!/^[0-9]+$/.test(salt) || !isNumber(salt, SALT_SIZE)) {
    throw new MalformedAnswerError(
      'the salt service answered with a salt that is no decimal number below 2^128',
    );
  }
  return BigInt(salt).toString();
}

/**
 * `POST {url}`.
 *
 * Exported from `sui-enclave/zklogin`.
 *
 * @param url whole, with its path: nothing is added to it (getSalt's is)
 * @throws the service errors of errors.ts, InvalidOptionError; MalformedTokenError and ClaimError when the token
 *   lacks the claim that keyClaimName names, or has it as no proof takes it
 * @example
 * const proof = await getProof('https://prover.wallet.example/v1', login.proofRequest(salt));
 */
export async function getProof(
  url: string | URL,
  request: ProofRequest,
  options: ProofOptions = {},
): Promise<Proof> {
  const { encoding = 'decimal', allowHttp = false, timeoutMs = PROOF_TIMEOUT_MS, ...rest } = options;
  const service = 'proving service';
  const answer = await post({
    ...rest,
    timeoutMs,
    service,
    url: serviceUrl(service, url, allowHttp),
    contentType: 'application/json',
    body: JSON.stringify(writeRequest(request, encoding)),
    repeatable: true,
  });
  return readProof(jsonOf(service, answer));
}

function writeRequest(request: ProofRequest, encoding: NumberEncoding) {
  if (encoding !== 'decimal' && encoding !== 'base64') {
    throw new InvalidOptionError('encoding must be decimal or base64');
  }
  if (typeof request?.jwt !== 'string') {
    throw new InvalidOptionError('the request for a proof must be what Login.proofRequest gives');
  }
  requireKeyClaim(request);
  const number = (name: 'jwtRandomness' | 'salt') =>
    writeNumber(readNumber(name, request[name], SALT_SIZE), encoding, SALT_SIZE);
  const maxEpoch = String(request.maxEpoch);
  if (!/^(0|[1-9][0-9]{0,19})$/.test(maxEpoch))
    throw new InvalidOptionError('maxEpoch must be an epoch number');
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
  if (typeof keyClaimName !== 'string') throw new InvalidOptionError('keyClaimName must be a text');
  const fault = valueFault(keyClaimName, SUI_V1.keyClaimName);
  if (fault !== null) throw new InvalidOptionError(`keyClaimName ${fault}`);
  checkKeyClaim(jwt, keyClaimName);
}

function writeKey(key: BigNumber, encoding: NumberEncoding): string {
  const [usual, longer] = EXTENDED_KEY_SIZES;
  const number = readNumber('extendedEphemeralPublicKey', key, usual, longer);
  return writeNumber(number, encoding, isNumber(key, usual) ? usual : longer);
}

/** Only what the spec names is taken over. @throws MalformedAnswerError */
export function readProof(answer: unknown): Proof {
  const proof = members('proving service', answer);
  const points = members('proving service', proof['proofPoints']);
  const details = members('proving service', proof['issBase64Details']);
  const { value, indexMod4 } = details;
  const { headerBase64 } = proof;
  const b = points['b'];
  if (
    !isPoint(points['a'], 3) ||
    !isPoint(points['c'], 3) ||
    !isList(b, 3) ||
    !b.every((each) => isPoint(each, 2))
  ) {
    throw new MalformedAnswerError('the proving service answered with proofPoints that are none');
  }
  const isIssuer = isBase64url(value) && value.length <= SUI_V1.issuerBase64;
  if (!isIssuer || (indexMod4 !== 0 && indexMod4 !== 1 && indexMod4 !== 2)) {
    throw new MalformedAnswerError('the proving service answered with issBase64Details that are none');
  }
  if (!isBase64url(headerBase64) || headerBase64.length > SUI_V1.header) {
    throw new MalformedAnswerError('the proving service answered with a headerBase64 that is none');
  }
  const { a, c } = points as { a: string[]; c: string[] };
  return {
    proofPoints: { a: [...a], b: (b as string[][]).map((each) => [...each]), c: [...c] },
    issBase64Details: { value, indexMod4 },
    headerBase64,
  };
}

function members(service: string, value: unknown): Record<string, unknown> {
  if (typeof value !== 'object' || value === null) {
    throw new MalformedAnswerError(`the ${service} answered with JSON of another shape`);
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
      (each) => typeof each === 'string' && /^(0|[1-9][0-9]{0,76})$/.test(each) && BigInt(each) < FIELD,
    )
  );
}

function isBase64url(value: unknown): value is string {
  return typeof value === 'string' && /^[\w-]+$/.test(value);
}
