/**
 * `npm run bench:prover -- [small] [full]`: measures a proof of a real token, from its input to its
 * verification. Compares our engine with the engine of gnark-crypto, with snarkjs, and with the rapidsnark
 * that RAPIDSNARK_BIN names. The engines take turns on the same key and witness, and each turn is a new
 * process that loads the key. PROVER_VECTORS forces a path of our engine. Fails if a warm verification takes
 * over 50 ms.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { command, EXIT, type Io, runAsProcess } from '../../../src/cli/command.ts';
import { circuitSize } from '../../../src/cli/values.ts';
import { ConfigError } from '../../../src/library/errors.ts';
import { buildInput } from '../../../src/prover/input.ts';
import { type CircuitSize, PROFILES } from '../../../src/prover/profile.ts';
import { type Groth16Proof, readVerifyingKey, verifyProof } from '../../../src/prover/verify.ts';
import {
  type Artifacts,
  builtArtifacts,
  CIRCUIT_SOURCES,
  ENGINE,
  locateGenerator,
  locateWasmGenerator,
} from '../../../src/toolchain/prover/artifacts.ts';
import { type Cost, measureProcess, median } from './measure.ts';
import { formatTable } from './table.ts';

const TURNS = 3;
const VERIFY_LIMIT_MS = 50;
const VECTORS = new URL('../../../test/vectors/zklogin-jwts.json', import.meta.url);
const SNARKJS = join(CIRCUIT_SOURCES, 'node_modules/snarkjs/build/cli.cjs');

/** Name of the real token that both sizes accept. */
const PROVIDER = 'Fantv';
/** Ephemeral key of all tokens in the vectors, as a decimal number: flag 0, then the public key. */
const EPHEMERAL_KEY = '84029355920633174015103288781128426107680789454168570548782290541079926444544';

interface Files {
  readonly input: string;
  readonly witness: string;
  readonly proof: string;
  readonly publicInputs: string;
}

export const main = command({
  name: 'bench_prover',
  program: 'npm run bench:prover --',
  purpose:
    'Measures a proof of a real token, from its input to its verification. Measures both sizes unless you name one.',
  arguments: { size: { schema: circuitSize, optional: true, repeated: true } },
  options: {},
  notes: `environment:
  RAPIDSNARK_BIN  a program of rapidsnark to compare with; its SHA-256 is printed
  PROVER_VECTORS  the path of the engine: avx512ifma, adx or portable (default: the fastest that the processor has)`,
  async run({ args: { size: sizeArguments } }, { env, io }) {
    const sizes = sizeArguments.length > 0 ? sizeArguments : circuitSize.options;
    const rapidsnark = env['RAPIDSNARK_BIN'];
    if (rapidsnark) io.log(`rapidsnark: ${rapidsnark}, SHA-256 ${readDigest(rapidsnark)}`);
    const benches: Bench[] = [];
    for (const size of sizes) benches.push(await benchSize(size, rapidsnark, io));
    const isFastEnough = benches.every(({ verification }) => verification.warmMs <= VERIFY_LIMIT_MS);
    return { exit: isFastEnough ? EXIT.done : EXIT.failed, json: { benches } };
  },
});

type Rows = Readonly<Record<string, object>>;

interface Bench {
  readonly size: CircuitSize;
  /** Code path that our own engine chose. */
  readonly path: string;
  readonly processes: Rows;
  readonly phases: Rows;
  readonly verification: { readonly warmMs: number; readonly firstMs: number };
}

function readDigest(program: string): string {
  try {
    return createHash('sha256').update(readFileSync(program)).digest('hex');
  } catch (error) {
    throw new ConfigError(
      `RAPIDSNARK_BIN: ${program} can't be read: ${(error as NodeJS.ErrnoException).code}`,
    );
  }
}

async function benchSize(size: CircuitSize, rapidsnark: string | undefined, io: Io): Promise<Bench> {
  const artifacts = builtArtifacts(size);
  const folder = mkdtempSync(join(tmpdir(), 'bench-prover-'));
  const at = (name: string) => join(folder, name);
  const files: Files = {
    input: at('input.json'),
    witness: at('witness.wtns'),
    proof: at('proof.json'),
    publicInputs: at('public.json'),
  };
  try {
    const publicInput = writeInput(size, files.input);
    io.log(`\n${size}: witness, then proof with the loading of the key; medians of ${TURNS}`);
    const processes = await measureTurns({
      ...generators(artifacts, files),
      ...provers(artifacts, files, rapidsnark),
    });
    io.log(formatTable(processes));
    const { path, phases } = benchPhases(artifacts, files);
    io.log(`own engine: ${path}, on ${cpus()[0]?.model ?? 'an unknown processor'}`);
    io.log(`warm, seconds; the phases in CPU time\n${formatTable(phases)}`);
    const verification = benchVerification(artifacts, files, publicInput);
    const { warmMs, firstMs } = verification;
    io.log(
      `verification: ${warmMs.toFixed(1)} ms warm (limit ${VERIFY_LIMIT_MS}), ${firstMs.toFixed(1)} ms the first time`,
    );
    return { size, path, processes, phases, verification };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function writeInput(size: CircuitSize, file: string): bigint {
  const { common, jwts } = JSON.parse(readFileSync(VECTORS, 'utf8'));
  const { jwt, n } = jwts.find(({ provider }: { provider: string }) => provider === PROVIDER);
  const { jwtRandomness, maxEpoch } = common;
  const request = { jwt, jwtRandomness, maxEpoch, salt: '1', keyClaimName: 'sub' };
  const key = { kty: 'RSA', n, e: 'AQAB' } as const;
  const built = buildInput({ ...request, extendedEphemeralPublicKey: EPHEMERAL_KEY }, key, PROFILES[size]);
  writeFileSync(file, JSON.stringify(built.circuit));
  return built.publicInput;
}

type Command = readonly string[];

function generators(artifacts: Artifacts, { input, witness }: Files): Record<string, Command> {
  const native = locateGenerator(artifacts);
  const wasm = locateWasmGenerator(artifacts);
  return {
    'witness, WebAssembly': [...wasm, input, witness],
    ...(native[0] !== wasm[0] && { 'witness, C++': [...native, input, witness] }),
  };
}

function provers(
  { zkey }: Artifacts,
  { witness, proof, publicInputs }: Files,
  rapidsnark: string | undefined,
): Record<string, Command> {
  const files = ['--zkey', zkey, '--wtns', witness, '--proof', proof, '--public', publicInputs];
  const paths = [zkey, witness, proof, publicInputs];
  return {
    snarkjs: [process.execPath, SNARKJS, 'groth16', 'prove', ...paths],
    ...(rapidsnark && { rapidsnark: [rapidsnark, ...paths] }),
    "the library's engine": [ENGINE, 'prove', '--engine', 'gnark', ...files],
    // Our engine comes last, so that the file has its proof, which is then verified.
    ours: [ENGINE, 'prove', '--engine', 'own', ...files],
  };
}

/** Measures the commands in alternating turns, since a machine's speed drifts. */
async function measureTurns(commands: Record<string, Command>): Promise<Record<string, object>> {
  const costs = new Map<string, Cost[]>(Object.keys(commands).map((name) => [name, []]));
  for (let turn = 0; turn < TURNS; turn++) {
    for (const [name, [program = '', ...args]] of Object.entries(commands)) {
      costs.get(name)?.push(await measureProcess(program, args));
    }
  }
  return Object.fromEntries(
    [...costs].map(([name, runs]) => [
      name,
      {
        'wall s': median(runs.map(({ wallSeconds }) => wallSeconds)).toFixed(2),
        'CPU s': median(runs.map(({ cpuSeconds }) => cpuSeconds)).toFixed(2),
        'peak MB': Math.round(median(runs.map(({ peakMegabytes }) => peakMegabytes))),
      },
    ]),
  );
}

/** Times in seconds that `prover bench` prints. */
interface EngineTime {
  readonly wall: number;
  readonly cpu: number;
}

interface EngineProof extends EngineTime {
  readonly phases: Readonly<Record<string, EngineTime>>;
}

interface EngineBench {
  readonly path: string;
  readonly keyLoad: EngineTime;
  readonly proofs: readonly EngineProof[];
  readonly peakMB: number;
}

/** Measures both engines with the key already loaded, as it is in a service. */
function benchPhases(
  { zkey }: Artifacts,
  { witness }: Files,
): { readonly path: string; readonly phases: Rows } {
  const phases: Record<string, object> = {};
  let enginePath = '';
  for (const engine of ['gnark', 'own']) {
    const args = ['bench', '--zkey', zkey, '--wtns', witness, '--engine', engine, '--repeat', String(TURNS)];
    const { stdout, stderr, status } = spawnSync(ENGINE, args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`the engine ended with ${status}: ${stderr.trim()}`);
    const { path, keyLoad, proofs, peakMB }: EngineBench = JSON.parse(stdout);
    const warm = proofs.toSorted((a, b) => a.wall - b.wall)[proofs.length >> 1] as EngineProof;
    const seconds = (value: number) => value.toFixed(3);
    enginePath = path;
    phases[engine] = {
      'key load': seconds(keyLoad.wall),
      'warm wall': seconds(warm.wall),
      'warm CPU': seconds(warm.cpu),
      'peak MB': Math.round(peakMB),
      ...Object.fromEntries(Object.entries(warm.phases).map(([name, { cpu }]) => [name, seconds(cpu)])),
    };
  }
  return { path: enginePath, phases };
}

function benchVerification(artifacts: Artifacts, files: Files, publicInput: bigint): Bench['verification'] {
  const key = readVerifyingKey(JSON.parse(readFileSync(artifacts.verifyingKey, 'utf8')));
  const { pi_a, pi_b, pi_c } = JSON.parse(readFileSync(files.proof, 'utf8'));
  const proof: Groth16Proof = { a: pi_a, b: pi_b, c: pi_c };
  // A verification runs in one thread. Other programs delay it, but hardly change its CPU time.
  const times = Array.from({ length: 30 }, () => {
    const start = process.cpuUsage();
    if (!verifyProof(key, proof, [publicInput])) throw new Error('the proof does not verify');
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1000;
  });
  const [firstMs = 0, ...laterTimes] = times;
  return { firstMs, warmMs: median(laterTimes.slice(9)) };
}

if (import.meta.main) await runAsProcess(main);
