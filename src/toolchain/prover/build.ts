/**
 * `make prover-dev`: compiles the circuit, builds its witness generators, and makes the development key.
 * Results are cached by a hash of their sources.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import { command, type Io, runAsProcess } from 'sui-enclave-cli/command';
import { circuitSize, path } from 'sui-enclave-cli/values';
import { type CircuitSize, mainComponent, PROFILES } from 'sui-enclave-prover/profile';
import {
  type Artifacts,
  DEVELOPMENT_SEED,
  defaultCache,
  ENGINE,
  locateArtifacts,
  locateGenerator,
} from './artifacts.ts';
import { buildWhole, compileCircuit, removeOlder, runTool } from './compile.ts';

const NOTICE = `DEVELOPMENT ONLY: anyone who knows the seed can forge proofs for this key, and the seed is public.
No validator accepts its proofs. seed: ${DEVELOPMENT_SEED}
`;

export const main = command({
  name: 'build_circuit',
  purpose: "Compiles zkLogin's circuit, builds its witness generators, and makes the development key.",
  example: '--size small',
  arguments: {},
  options: {
    size: { value: '<size>', help: 'small, for tests, or full', schema: circuitSize, default: 'full' },
    cache: {
      value: '<folder>',
      help: 'the folder for the files that it builds',
      schema: path,
      default: defaultCache(),
    },
    'circuit-only': { help: "don't make a key, which needs the engine" },
    'no-native': {
      help: "don't build the witness generator in C++, which takes as long as everything else",
    },
  },
  run({ options }, { io }) {
    const artifacts = locateArtifacts(options.size, options.cache);
    const steps = new Steps(options.size, io);
    buildWhole(artifacts.circuit, (folder) => steps.run('circuit', () => compile(folder, artifacts)));
    if (!options['no-native']) buildNativeGenerator(artifacts, steps, io);
    const { circuit, zkey } = artifacts;
    const generator = locateGenerator(artifacts)[0] === process.execPath ? 'WebAssembly' : 'C++';
    io.log(`circuit: ${circuit}\nwitness generator: ${generator}`);
    removeOlder(artifacts.circuit);
    if (options['circuit-only']) return { json: { circuit, generator } };
    buildWhole(artifacts.key, (folder) => steps.run('key', () => makeKey(folder, artifacts)));
    removeOlder(artifacts.key);
    const text = `development key: ${zkey}\n${NOTICE.split('\n')[0]}`;
    return { json: { circuit, generator, developmentKey: zkey }, text };
  },
});

/** Seconds that slow steps take on two idle cores. */
const STEPS = {
  circuit: { title: 'compiling the circuit', seconds: { small: 60, full: 150 } },
  generator: { title: 'building the witness generator in C++', seconds: { small: 60, full: 120 } },
  key: { title: 'making the development key', seconds: { small: 10, full: 20 } },
} as const;

/**
 * Logs the start and the duration of each step, since the programs of a step print nothing until they have
 * finished.
 */
class Steps {
  readonly #size: CircuitSize;
  readonly #io: Io;

  constructor(size: CircuitSize, io: Io) {
    this.#size = size;
    this.#io = io;
  }

  run(name: keyof typeof STEPS, work: () => void): void {
    const { title, seconds } = STEPS[name];
    const number = Object.keys(STEPS).indexOf(name) + 1;
    const step = `step ${number} of ${Object.keys(STEPS).length}`;
    this.#io.log(
      `${step}: ${title}, ${this.#size} size: about ${seconds[this.#size]} s, more on a busy machine`,
    );
    const start = performance.now();
    work();
    this.#io.log(`${step}: took ${Math.round((performance.now() - start) / 1000)} s`);
  }
}

function compile(folder: string, { size }: Artifacts): void {
  // The generated JavaScript is CommonJS, whatever the package that contains the cache's folder.
  writeFileSync(join(folder, 'package.json'), '{"type": "commonjs"}\n');
  compileCircuit(folder, mainComponent(PROFILES[size]), ['--r1cs', '--sym', '--wasm', '--c', '--O2']);
}

/**
 * Builds circom's generator in C++, under the name of the generator in production. It is optional, and six
 * times as fast as the generator in WebAssembly.
 */
function buildNativeGenerator({ circuit, size }: Artifacts, steps: Steps, io: Io): void {
  if (existsSync(join(circuit, 'zkLogin'))) return;
  const folder = join(circuit, 'circuit_cpp');
  const missing = ['nasm', 'g++'].filter((program) => spawnSync(program, ['--version']).error);
  if (missing.length > 0) {
    io.log(`no generator in C++ without ${missing.join(' and ')}: see src/prover/circuit/README.md`);
    return;
  }
  try {
    steps.run('generator', () => compileGenerator(folder, size));
  } catch {
    io.log(
      'no generator in C++: it needs libgmp-dev and nlohmann-json3-dev, see src/prover/circuit/README.md',
    );
    return;
  }
  renameSync(join(folder, 'circuit.dat'), join(circuit, 'zkLogin.dat'));
  renameSync(join(folder, 'zkLogin'), join(circuit, 'zkLogin'));
}

function compileGenerator(folder: string, size: CircuitSize): void {
  runTool('nasm', ['-felf64', 'fr.asm', '-o', 'fr_asm.o'], folder);
  const sources = ['main.cpp', 'calcwit.cpp', 'fr.cpp', 'circuit.cpp', 'fr_asm.o'];
  // Optimisation doubles the compile time, which is worthwhile only for the full size. -O2 and -O3
  // compile two and three times as long as -O1, but the witness takes 0.16 to 0.17 s of CPU with each, at the
  // small size.
  const level = size === 'full' ? '-O1' : '-O0';
  runTool(
    'g++',
    ['-std=c++11', level, '-w', '-I.', '-o', 'zkLogin', ...sources, '-lgmp', '-Wl,-z,noexecstack'],
    folder,
  );
}

function makeKey(folder: string, { r1cs }: Artifacts): void {
  if (!existsSync(ENGINE)) {
    throw new ConfigError(
      `the engine ${ENGINE} does not exist: build it with make prover-dev, or set PROVER_ENGINE`,
    );
  }
  const out = join(folder, 'development-only.zkey');
  runTool(ENGINE, ['setup', '--r1cs', r1cs, '--seed', DEVELOPMENT_SEED, '--out', out], folder);
  writeFileSync(join(folder, 'NOTICE'), NOTICE);
}

if (import.meta.main) await runAsProcess(main);
