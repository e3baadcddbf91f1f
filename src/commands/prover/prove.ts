/**
 * `npm run prove -- request.json --jwks keys.json --at TIME`: makes the proof for one request, without a server.
 *
 * Exit codes: 0 done; 1 refused or failed; 2 invalid command line.
 */
import { existsSync, readFileSync } from 'node:fs';
import { ConfigError } from 'sui-enclave/errors';
import type { BuiltInput } from 'sui-enclave-prover/input';
import { PROFILES } from 'sui-enclave-prover/profile';
import {
  command,
  commandFailure,
  type Failure,
  INTERNAL_FAILURE,
  type Io,
  runAsProcess,
  UsageError,
} from '../command.ts';
import { type Artifacts, builtArtifacts, ENGINE, generatorOf, isSize } from './artifacts.ts';

const USAGE = `usage: npm run --silent prove -- <request.json> --jwks <keys.json> [options]

  <request.json>  {"jwt", "extendedEphemeralPublicKey", "maxEpoch", "jwtRandomness", "salt", "keyClaimName"}
  --jwks <file>   the issuer's keys, as it publishes them
  --at <time>     verify the token at this time instead of now: ISO 8601 or milliseconds since 1970
  --size <size>   full (the default) or small, as built by make prover-dev
  --input-only    print the input of the witness generator without a proof: needs no circuit
  --json          print an error as JSON; the output is JSON anyway
  --help          print this

The output is private: with it and the ephemeral key anyone can sign for the user. The proof is made with the
development key, which no validator accepts.

exit codes: 0 done; 1 refused or failed; 2 invalid command line`;

export const main = command({
  usage: USAGE,
  options: {
    jwks: { type: 'string' },
    at: { type: 'string' },
    size: { type: 'string', default: 'full' },
    'input-only': { type: 'boolean', default: false },
  },
  positionals: ['request.json'],
  async run({ values, positionals: [file = ''] }, { io }) {
    const { jwks, size } = values;
    if (jwks === undefined) throw new UsageError('--jwks is missing', USAGE);
    if (!isSize(size)) throw new UsageError('--size must be small or full', USAGE);
    const at = timeOf(values.at);
    const { buildInput } = await import('sui-enclave-prover/input');
    const { readProofRequest } = await import('sui-enclave-prover/request');
    const { verifyToken } = await import('sui-enclave-prover/token');
    const request = readProofRequest(readJson(file));
    const key = await verifyToken(request.jwt, readJson(jwks), at);
    const input = buildInput(request, key, PROFILES[size]);
    io.error('The output is PRIVATE: keep it out of logs and tickets.');
    const output = values['input-only'] ? input.circuit : await prove(input, builtArtifacts(size), io);
    return { json: output, text: JSON.stringify(output, null, 2) };
  },
  report,
});

/** Reports unexpected errors without their message, which may contain a part of the token. */
function report(error: unknown): Failure {
  return commandFailure(error) ?? INTERNAL_FAILURE;
}

/** Returns the answer of a proving service, and the address seed, which a signature needs too. */
async function prove(input: BuiltInput, artifacts: Artifacts, io: Io): Promise<object> {
  if (!existsSync(ENGINE)) {
    throw new ConfigError(`the engine ${ENGINE} does not exist: build it with make prover-dev`);
  }
  const { proveOnce } = await import('sui-enclave-prover/engine');
  const { ProverError } = await import('sui-enclave-prover/errors');
  const { readVerifyingKey, verifyProof } = await import('sui-enclave-prover/verify');
  const { generateWitness } = await import('sui-enclave-prover/witness');
  const start = performance.now();
  const witness = await generateWitness(generatorOf(artifacts), input.circuit);
  const computed = performance.now();
  const proof = await proveOnce(ENGINE, artifacts.zkey, witness).finally(() => witness.fill(0));
  const proved = performance.now();
  const verifyingKey = readVerifyingKey(readJson(artifacts.verifyingKey));
  if (!verifyProof(verifyingKey, proof, [input.publicInput])) {
    throw new ProverError('PROVER_ENGINE', 'the proof does not verify');
  }
  const seconds = (from: number, to: number) => ((to - from) / 1000).toFixed(2);
  io.error(`witness ${seconds(start, computed)} s, proof ${seconds(computed, proved)} s, verified`);
  const { issBase64Details, headerBase64, addressSeed } = input;
  return { proofPoints: proof, issBase64Details, headerBase64, addressSeed: String(addressSeed) };
}

function readJson(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError(`${file} can't be read: ${(error as NodeJS.ErrnoException).code}`);
  }
  try {
    return JSON.parse(text);
  } catch {
    // The parser's message quotes its input.
    throw new ConfigError(`${file} is not JSON`);
  }
}

function timeOf(text: string | undefined): Date {
  const at = text === undefined ? new Date() : new Date(/^\d+$/.test(text) ? Number(text) : text);
  if (Number.isNaN(at.getTime())) {
    throw new UsageError('--at must be a time: ISO 8601 or milliseconds since 1970', USAGE);
  }
  return at;
}

if (import.meta.main) await runAsProcess(main);
