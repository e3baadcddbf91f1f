/** `sui-enclave prove`: makes the proof for one request, without a server. */
import { existsSync } from 'node:fs';
import { ConfigError } from 'sui-enclave/errors';
import { command, type Io, runAsProcess } from 'sui-enclave-cli/command';
import { circuitSize, path, time } from 'sui-enclave-cli/values';
import { proveOnce } from 'sui-enclave-prover/engine';
import { ProverError } from 'sui-enclave-prover/errors';
import { type BuiltInput, buildInput } from 'sui-enclave-prover/input';
import { PROFILES } from 'sui-enclave-prover/profile';
import { readProofRequest } from 'sui-enclave-prover/request';
import { verifyToken } from 'sui-enclave-prover/token';
import { readVerifyingKey, verifyProof } from 'sui-enclave-prover/verify';
import { generateWitness } from 'sui-enclave-prover/witness';
import { type Artifacts, builtArtifacts, ENGINE, locateGenerator } from './artifacts.ts';
import { readJson } from './json_file.ts';

export const main = command({
  name: 'prove',
  purpose: `Makes the proof for one request, a file with
{"jwt", "extendedEphemeralPublicKey", "maxEpoch", "jwtRandomness", "salt", "keyClaimName"}.`,
  example: 'request.json --jwks keys.json',
  arguments: { 'request.json': { schema: path } },
  options: {
    jwks: {
      value: '<file>',
      help: "the issuer's keys (JWKS), as the issuer publishes them",
      schema: path,
      required: true,
    },
    at: {
      value: '<time>',
      help: 'verify the token at this time instead of now: ISO 8601 or milliseconds since 1970',
      schema: time,
    },
    size: {
      value: '<size>',
      help: 'full or small, as built by make prover-dev',
      schema: circuitSize,
      default: 'full',
    },
    'input-only': { help: 'print only the input of the witness generator, which needs no circuit' },
  },
  notes: `The output is JSON in any case, and private: with it and the ephemeral key anyone can sign for the user. The proof is
made with the development key, which no validator accepts.

exit codes: 0 done; 1 refused or failed; 2 invalid command line`,
  // A message may contain part of the token.
  handlesSecrets: true,
  async run({ args: { 'request.json': file }, options: { jwks, at, size, ...options } }, { io }) {
    const request = readProofRequest(readJson(file));
    const key = await verifyToken(request.jwt, readJson(jwks), new Date(at ?? Date.now()));
    const input = buildInput(request, key, PROFILES[size]);
    io.error('The output is PRIVATE: keep it out of logs and tickets.');
    const output = options['input-only'] ? input.circuit : await prove(input, builtArtifacts(size), io);
    return { json: output, text: JSON.stringify(output, null, 2) };
  },
});

/**
 * Returns the answer that a proving service would give, and the address seed, which a signature needs too.
 */
async function prove(input: BuiltInput, artifacts: Artifacts, io: Io): Promise<object> {
  if (!existsSync(ENGINE)) {
    throw new ConfigError(`the engine ${ENGINE} does not exist: build it with make prover-dev`);
  }
  const start = performance.now();
  const witness = await generateWitness(locateGenerator(artifacts), input.circuit);
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

if (import.meta.main) await runAsProcess(main);
