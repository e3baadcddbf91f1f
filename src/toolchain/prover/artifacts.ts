/** Paths of the compiled circuit and its development key, in folders named by a hash of their sources. */
import { createHash } from 'node:crypto';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ConfigError } from 'sui-enclave/errors';
import { type CircuitProfile, type CircuitSize, mainComponent, PROFILES } from 'sui-enclave-prover/profile';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
export const CIRCUIT_SOURCES = join(ROOT, 'src/prover/circuit');
/** A key of a tiny circuit. The engine's tests compare it byte for byte with the output of `prover setup`. */
const SETUP_SAMPLE = join(ROOT, 'src/prover/native/testdata');

/** The program that src/toolchain/prover/engine.ts builds, or the one that PROVER_ENGINE names. */
export const ENGINE = resolve(process.env['PROVER_ENGINE'] || join(ROOT, 'build/prover/prover'));

/** Anyone can make the same key from this seed, and forge proofs with the secrets that follow from it. */
export const DEVELOPMENT_SEED = 'sui-enclave development key: whoever knows this seed can forge';

export interface Artifacts {
  readonly size: CircuitSize;
  /** The folders of the circuit and of the key. Each is complete or absent. */
  readonly circuit: string;
  readonly key: string;
  readonly r1cs: string;
  /** The names of the witness' wires. */
  readonly symbols: string;
  readonly zkey: string;
  readonly verifyingKey: string;
}

export const isSize = (text: string): text is CircuitSize => text === 'small' || text === 'full';

/** Returns a folder beside the cached packages and the emulator, which also outlive a checkout. */
export function defaultCache(): string {
  const base = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache');
  return process.env['CACHE'] || join(base, 'sui-enclave');
}

export function locateArtifacts(size: CircuitSize, cache = defaultCache()): Artifacts {
  const circuitHash = computeCircuitHash(PROFILES[size]);
  const keyHash = computeHash(SETUP_SAMPLE, ['tiny.{zkey,vkey.json}'], circuitHash + DEVELOPMENT_SEED);
  const circuit = join(cache, 'prover', `circuit-${size}-${circuitHash}`);
  const key = join(cache, 'prover', `development-key-${size}-${keyHash}`);
  return {
    size,
    circuit,
    key,
    r1cs: join(circuit, 'circuit.r1cs'),
    symbols: join(circuit, 'circuit.sym'),
    zkey: join(key, 'development-only.zkey'),
    verifyingKey: join(key, 'development-only.vkey.json'),
  };
}

/** Returns what `make prover-dev` built. @throws ConfigError if it has not run */
export function builtArtifacts(size: CircuitSize): Artifacts {
  const artifacts = locateArtifacts(size);
  if (!existsSync(artifacts.key)) {
    throw new ConfigError(
      `the ${size} circuit and its development key are not built yet: run make prover-dev SIZE=${size}`,
    );
  }
  return artifacts;
}

/**
 * Returns the artifacts of a proving service on the development key; undefined if `make prover-dev` has not
 * built all of them.
 */
export function builtProver(size: CircuitSize): Artifacts | undefined {
  const artifacts = locateArtifacts(size);
  return existsSync(artifacts.key) && existsSync(ENGINE) ? artifacts : undefined;
}

/**
 * Returns the witness generator and its arguments: circom's in C++ if it was built, otherwise in WebAssembly.
 */
export function locateGenerator({ circuit }: Pick<Artifacts, 'circuit'>): string[] {
  const native = join(circuit, 'zkLogin');
  return existsSync(native) ? [native] : locateWasmGenerator({ circuit });
}

export function locateWasmGenerator({ circuit }: Pick<Artifacts, 'circuit'>): string[] {
  const folder = join(circuit, 'circuit_js');
  return [process.execPath, join(folder, 'generate_witness.js'), join(folder, 'circuit.wasm')];
}

/** Hashes the sources of a profile's circuit. */
export function computeCircuitHash(profile: CircuitProfile): string {
  return computeHash(CIRCUIT_SOURCES, ['*.circom', 'package-lock.json'], mainComponent(profile));
}

function computeHash(folder: string, patterns: readonly string[], more: string): string {
  const hash = createHash('sha256').update(more);
  for (const file of globSync([...patterns], { cwd: folder }).sort()) {
    const content = readFileSync(join(folder, file));
    hash.update(`\n${file} ${content.length}\n`).update(content);
  }
  return hash.digest('hex').slice(0, 16);
}
