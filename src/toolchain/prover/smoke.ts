/** `sui-enclave prover_smoke`: checks a running proving service from outside. */
import { ConfigError, isEnclaveError } from 'sui-enclave/errors';
import {
  fetchText,
  NoAnswerError,
  serverCode,
  type TextAnswer,
  UNREACHABLE,
  unreachableReason,
} from 'sui-enclave/fetch';
import { PROVIDERS, type Provider } from 'sui-enclave/token/providers';
import { quantity } from 'sui-enclave/wording';
import { ServiceRefusedError } from 'sui-enclave/zklogin';
import { getProof, type ProofRequest } from 'sui-enclave/zklogin/services';
import { command, EXIT, runAsProcess } from 'sui-enclave-cli/command';
import { circuitSize, integer, path, secureUrl, text } from 'sui-enclave-cli/values';
import { PROVER_ERRORS } from 'sui-enclave-prover/errors';
import { readKeys } from 'sui-enclave-prover/frontend/keys';
import { type BuiltInput, buildInput } from 'sui-enclave-prover/input';
import { PROFILES } from 'sui-enclave-prover/profile';
import { readProofRequest } from 'sui-enclave-prover/request';
import { verifyToken } from 'sui-enclave-prover/token';
import { verifyProof } from 'sui-enclave-prover/verify';
import { SERVER_ERRORS } from 'sui-enclave-service/errors';
import { parseJson, readJson } from './json_file.ts';

const NOT_FULLY_CHECKED = 3;
/** Time limit for answers without a proof, in milliseconds. */
const TIMEOUT_MS = 10_000;
const PROOF_TIMEOUT_MS = 120_000;
const MAX_ANSWER_BYTES = 65_536;

/** A check and its result. */
interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** Text of the finding, without any part of a request or a proof. */
  readonly found: string;
  readonly ms: number;
}

export const main = command({
  name: 'prover_smoke',
  purpose: `Checks a running proving service: whether it answers, what it refuses, and with --request whether its proofs verify
under the network's key, and how long they take. Request and proof are private, and are not printed.`,
  example: 'https://prover.example --request request.json',
  arguments: { url: { schema: secureUrl } },
  options: {
    request: {
      value: '<file>',
      help: 'a request for a proof of your own login, in the format of prove',
      schema: path,
    },
    jwks: {
      value: '<file>',
      help: "the issuer's keys (default: fetched from a known provider)",
      schema: path,
    },
    key: {
      value: '<key>',
      help: "the key under which proofs must verify: main, test, or a file with snarkjs' vkey.json",
      schema: text,
      default: 'main',
    },
    size: { value: '<size>', help: "the circuit's size", schema: circuitSize, default: 'full' },
    times: {
      value: '<n>',
      help: 'number of proofs to request, one after another',
      schema: integer(1, 20),
      default: '1',
    },
  },
  notes: `exit codes: 0 all checks passed; 1 a check failed; 2 invalid command line or file; 3 no check failed, but no proof was checked`,
  handlesSecrets: true,
  // All files are read before the first request.
  chooseExit: () => EXIT.notTried,
  report: (_error, failure) =>
    failure && { ...failure, text: failure.text.replaceAll('VERIFYING_KEY', '--key') },
  async run({ args: { url: base }, options }) {
    const url = new URL(base.endsWith('/') ? base : `${base}/`);
    const login = options.request === undefined ? undefined : await readLogin(options.request, options);
    const checks = [await ping(url), ...(await checkRefusals(url, login?.request))];
    if (login !== undefined) {
      for (let time = 1; time <= options.times; time += 1) checks.push(await checkProof(url, login));
    }
    const failed = checks.filter(({ ok }) => !ok).length;
    const exit = failed > 0 ? EXIT.failed : login === undefined ? NOT_FULLY_CHECKED : EXIT.done;
    const verdict = { [EXIT.done]: 'ok', [EXIT.failed]: 'failed', [NOT_FULLY_CHECKED]: 'not fully checked' }[
      exit
    ];
    return {
      exit,
      json: { verdict, checks },
      text: `${formatLine(exit, failed, checks)}\n\n${formatTable(checks)}`,
    };
  },
});

function formatLine(exit: number, failed: number, checks: readonly Check[]): string {
  if (exit === EXIT.failed) return `NOT OK: ${failed} of ${quantity(checks.length, 'check')} failed.`;
  if (exit === EXIT.done) return `OK: all ${checks.length} checks passed.`;
  return `NOT FULLY CHECKED: ${checks.length} checks passed, but no proof was requested: pass --request.`;
}

function formatTable(checks: readonly Check[]): string {
  const width = Math.max(...checks.map(({ name }) => name.length));
  return checks
    .map(
      ({ name, ok, found: detail, ms }) =>
        `${ok ? 'ok    ' : 'FAILED'}  ${name.padEnd(width)}  ${detail} (${ms} ms)`,
    )
    .join('\n');
}

// --- The checks ---

async function timed(name: string, check: () => Promise<[ok: boolean, found: string]>): Promise<Check> {
  const start = performance.now();
  const [ok, detail] = await check();
  return { name, ok, found: detail, ms: Math.round(performance.now() - start) };
}

async function ask(url: URL, path: string, init: RequestInit): Promise<TextAnswer | string> {
  try {
    return await fetchText(new URL(path, url), init, { timeoutMs: TIMEOUT_MS, maxSize: MAX_ANSWER_BYTES });
  } catch (error) {
    if (!(error instanceof NoAnswerError)) throw error;
    return error.reason === 'too large' ? 'the answer is too large' : UNREACHABLE[unreachableReason(error)];
  }
}

async function ping(url: URL): Promise<Check> {
  return await timed('GET /ping', async () => {
    const answer = await ask(url, 'ping', {});
    if (typeof answer === 'string') return [false, answer];
    return [answer.ok && answer.text === 'pong', `status ${answer.status}`];
  });
}

/** Checks an answer that must have one of the statuses, and an error code in the service's usual format. */
async function checkRefusal(
  url: URL,
  name: string,
  body: string | undefined,
  statuses: readonly number[],
): Promise<Check> {
  return await timed(name, async () => {
    const init =
      body === undefined ? {} : { method: 'POST', headers: { 'content-type': 'application/json' }, body };
    const answer = await ask(url, 'v1', init);
    if (typeof answer === 'string') return [false, answer];
    const code = serverCode(answer.text);
    return [
      statuses.includes(answer.status) && code !== null,
      `status ${answer.status}, code ${formatName(code)}`,
    ];
  });
}

/** Returns the code if it is known. A hostile server could put part of the request into any other code. */
function formatName(code: string | null): string {
  if (code === null) return 'none';
  return Object.hasOwn({ ...PROVER_ERRORS, ...SERVER_ERRORS }, code) ? code : 'unknown';
}

/** A token without a valid signature, from an issuer that does not exist. */
const UNSIGNED = ['{"alg":"RS256","kid":"1"}', '{"iss":"https://issuer.invalid","aud":"a","sub":"1"}', 'x']
  .map((part) => Buffer.from(part).toString('base64url'))
  .join('.');
const UNSIGNED_REQUEST = {
  jwt: UNSIGNED,
  extendedEphemeralPublicKey: '1',
  maxEpoch: 1,
  jwtRandomness: '1',
  salt: '1',
  keyClaimName: 'sub',
};

async function checkRefusals(url: URL, request: ProofRequest | undefined): Promise<Check[]> {
  const checks = [
    await checkRefusal(url, 'GET /v1 is refused', undefined, [405]),
    await checkRefusal(url, 'a body that is not JSON is refused', '{', [400]),
    await checkRefusal(url, 'a request without a token is refused', '{}', [400]),
    await checkRefusal(url, 'a body of 1 MiB is refused', `"${'x'.repeat(1024 ** 2)}"`, [413]),
    await checkRefusal(
      url,
      'a token of an unknown issuer is refused',
      JSON.stringify(UNSIGNED_REQUEST),
      [400, 401, 403, 422],
    ),
  ];
  if (request === undefined) return checks;
  const json = (overrides: object) =>
    JSON.stringify({ ...request, ...overrides }, (_name, value) =>
      typeof value === 'bigint' ? String(value) : value,
    );
  return [
    ...checks,
    await checkRefusal(
      url,
      'a changed token is refused',
      json({ jwt: changeSignature(request.jwt) }),
      [400, 401],
    ),
    await checkRefusal(
      url,
      "an epoch other than the nonce's is refused",
      json({ maxEpoch: Number(request.maxEpoch) + 1 }),
      [422],
    ),
  ];
}

/** Changes the first character of a token's signature, which has no unused bits. */
function changeSignature(jwt: string): string {
  const at = jwt.lastIndexOf('.') + 1;
  return `${jwt.slice(0, at)}${jwt[at] === 'A' ? 'B' : 'A'}${jwt.slice(at + 1)}`;
}

// --- The proof ---

/** A login, and the values that its proof must match. */
interface Login {
  readonly request: ProofRequest;
  readonly input: BuiltInput;
  readonly keys: ReturnType<typeof readKeys>;
}

async function checkProof(url: URL, { request, input, keys }: Login): Promise<Check> {
  return await timed('a proof verifies', async () => {
    try {
      const { proofPoints, issBase64Details, headerBase64 } = await getProof(new URL('v1', url), request, {
        timeoutMs: PROOF_TIMEOUT_MS,
      });
      const { value, indexMod4 } = input.issBase64Details;
      const isIssuer = issBase64Details.value === value && issBase64Details.indexMod4 === indexMod4;
      // Both values are part of a signature, and wallets accept only those of their own token.
      if (!isIssuer || headerBase64 !== input.headerBase64) {
        return [false, "the answer's header or issuer differs from the token's"];
      }
      const { a, b, c } = proofPoints;
      const isValid = (verifyingKey: typeof keys.own.verifyingKey) =>
        verifyProof(verifyingKey, { a: [...a], b: [...b].map((pair) => [...pair]), c: [...c] }, [
          input.publicInput,
        ]);
      if (isValid(keys.own.verifyingKey)) return [true, `under the key of ${keys.own.network}`];
      const otherKey = keys.others.find(({ verifyingKey }) => isValid(verifyingKey));
      return [
        false,
        otherKey === undefined
          ? `it is not valid under the key of ${keys.own.network}`
          : `it is valid under the key of ${otherKey.network} only, not under the key of ${keys.own.network}`,
      ];
    } catch (error) {
      if (error instanceof ServiceRefusedError) {
        return [false, `status ${error.status}, code ${formatName(error.serverCode)}`];
      }
      if (!isEnclaveError(error)) throw error;
      return [false, `${error.code}: ${error.message}`];
    }
  });
}

async function readLogin(
  file: string,
  options: { readonly jwks: string | undefined; readonly key: string; readonly size: 'small' | 'full' },
): Promise<Login> {
  const request = readProofRequest(readJson(file));
  const keySet = options.jwks === undefined ? await fetchKeys(request.jwt) : readJson(options.jwks);
  const key = await verifyToken(request.jwt, keySet, new Date());
  const input = buildInput(request, key, PROFILES[options.size]);
  return { request, input, keys: readKeys(options.key, true) };
}

async function fetchKeys(jwt: string): Promise<unknown> {
  const issuer = readIssuer(jwt);
  const provider = (Object.values(PROVIDERS) as readonly Provider[]).find(
    (candidate) => candidate.issuer === issuer,
  );
  if (provider === undefined) {
    throw new ConfigError("the address of the issuer's keys is not known: pass the keys as --jwks");
  }
  const url = new URL(provider.jwksUrl);
  const answer = await ask(url, url.pathname, {});
  if (typeof answer === 'string' || !answer.ok) {
    throw new ConfigError(`the issuer's keys can't be fetched from ${provider.jwksUrl}: pass them as --jwks`);
  }
  return parseJson(answer.text, provider.jwksUrl);
}

/** Reads the issuer from an unverified token only to find the keys with which the token is then verified. */
function readIssuer(jwt: string): unknown {
  try {
    return JSON.parse(Buffer.from(jwt.split('.')[1] ?? '', 'base64url').toString())?.iss;
  } catch {
    return undefined;
  }
}

if (import.meta.main) await runAsProcess(main);
