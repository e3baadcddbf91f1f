/**
 * Finds the operator's witness generator in WITNESS_BINARIES, finds its size, and tests it with one run.
 */
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import { type CircuitSize, PROFILES } from '../profile.ts';
import { generateWitness, WitnessRefusal } from '../witness.ts';
import { countSignals, type Signals } from './signals.ts';

export interface Generator {
  /** Program and arguments, to which the names of input and output are appended. */
  readonly command: readonly string[];
  readonly size: CircuitSize;
  /** Returns whether the generator's witnesses have this number of wires, according to its files. */
  canMake(wires: number): boolean;
}

/** A generator, as its files describe it. */
interface GeneratorFiles extends Omit<Generator, 'size'> {
  /** Returns the number of elements of an input signal; 0 if the circuit has no such signal. */
  sizeOf(signal: string): number;
  /** Total number of elements of all input signals. */
  readonly inputs: number;
}

/**
 * Finds the generator, and runs it on an empty input, which it must refuse.
 *
 * @param folder path of a folder that has either `zkLogin` and `zkLogin.dat` (C++), or `generate_witness.js`,
 *   `witness_calculator.js` and `circuit.wasm`, as circom writes them
 * @throws ConfigError
 */
export async function findGenerator(folder: string): Promise<Generator> {
  const generator = isFile(join(folder, 'zkLogin')) ? findNative(folder) : await findWasm(folder);
  const size = (['small', 'full'] as const).find((name) => fits(generator, countSignals(PROFILES[name])));
  if (size === undefined) {
    throw new ConfigError(
      `WITNESS_BINARIES: the generator in ${folder} is not for zkLogin's circuit ${PROFILES.full.name}: its input has other signals or sizes`,
    );
  }
  await tryOut(generator.command, folder);
  return { command: generator.command, canMake: generator.canMake, size };
}

function fits({ sizeOf, inputs }: GeneratorFiles, signals: Signals): boolean {
  const counts = Object.entries(signals);
  return (
    inputs === counts.reduce((sum, [, count]) => sum + count, 0) &&
    counts.every(([name, count]) => sizeOf(name) === count)
  );
}

async function tryOut(command: readonly string[], folder: string): Promise<void> {
  try {
    await generateWitness(command, {});
  } catch (error) {
    if (error instanceof WitnessRefusal) return;
    const { message } = error as Error;
    throw new ConfigError(
      `WITNESS_BINARIES: a trial run of the generator in ${folder} failed: ${message}. Run it by hand`,
      {
        cause: error,
      },
    );
  }
  throw new ConfigError(`WITNESS_BINARIES: the generator in ${folder} made a witness for an empty input`);
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}

function read(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new ConfigError(`WITNESS_BINARIES: ${path} can't be read: ${code}`, { cause });
  }
}

// --- circom's generator in C++ ---

/**
 * Number of entries in circom's table of input signals. An entry has hash, id and size (u64 each,
 * little-endian). Unused entries are zero.
 */
const ENTRIES = 256;
const ENTRY_SIZE = 24;

function findNative(folder: string): GeneratorFiles {
  const program = join(folder, 'zkLogin');
  try {
    accessSync(program, constants.X_OK);
  } catch (cause) {
    throw new ConfigError(`WITNESS_BINARIES: ${program} is not executable: chmod +x it`, { cause });
  }
  const dat = read(`${program}.dat`);
  if (dat.length < ENTRIES * ENTRY_SIZE) {
    throw new ConfigError(`WITNESS_BINARIES: ${program}.dat is damaged: it ends within its table of signals`);
  }
  const sizes = new Map<bigint, number>();
  for (let offset = 0; offset < ENTRIES * ENTRY_SIZE; offset += ENTRY_SIZE) {
    const count = Number(dat.readBigUInt64LE(offset + 16));
    if (count > 0) sizes.set(dat.readBigUInt64LE(offset), count);
  }
  return {
    command: [program],
    canMake: (wires) => wires === countWires(dat),
    sizeOf: (signal) => sizes.get(fnv1a(signal)) ?? 0,
    inputs: [...sizes.values()].reduce((sum, count) => sum + count, 0),
  };
}

/**
 * Counts the wires. After the table, the file lists a signal's number (u64, below 2^32) for each wire.
 * Constants follow. The upper 32 bits of a constant's first u64 have its type, which is not 0.
 */
function countWires(dat: Buffer): number {
  const start = ENTRIES * ENTRY_SIZE;
  let end = start;
  while (end + 8 <= dat.length && dat.readUInt32LE(end + 4) === 0) end += 8;
  return (end - start) / 8;
}

/** Computes the FNV-1a hash of 64 bits, by which circom finds signals. */
function fnv1a(text: string): bigint {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  return hash;
}

// --- circom's generator in WebAssembly ---

/** Exports of circom's module that describe its inputs and its witnesses. */
interface CircomExports {
  getWitnessSize(): number;
  getInputSize(): number;
  /** Returns the size of a signal; negative or 0 for an unknown signal. */
  getInputSignalSize(hashHigh: number, hashLow: number): number;
}

async function findWasm(folder: string): Promise<GeneratorFiles> {
  const script = join(folder, 'generate_witness.js');
  const wasm = join(folder, 'circuit.wasm');
  for (const file of [script, join(folder, 'witness_calculator.js'), wasm]) {
    if (isFile(file)) continue;
    throw new ConfigError(
      `WITNESS_BINARIES: ${file} does not exist: the folder must hold zkLogin and zkLogin.dat, or circom's generate_witness.js, witness_calculator.js and circuit.wasm`,
    );
  }
  const { getWitnessSize, getInputSize, getInputSignalSize } = await loadExports(wasm);
  const witnessSize = getWitnessSize();
  return {
    command: [process.execPath, script, wasm],
    canMake: (wires) => wires === witnessSize,
    sizeOf(signal) {
      const hash = fnv1a(signal);
      return getInputSignalSize(Number(hash >> 32n), Number(hash & 0xffffffffn));
    },
    inputs: getInputSize(),
  };
}

async function loadExports(wasm: string): Promise<CircomExports> {
  const ignore = () => {};
  const runtime = {
    exceptionHandler: ignore,
    printErrorMessage: ignore,
    writeBufferMessage: ignore,
    showSharedRWMemory: ignore,
  };
  try {
    const { instance } = await WebAssembly.instantiate(new Uint8Array(read(wasm)), { runtime });
    const exports = instance.exports as unknown as CircomExports;
    if (exports.getWitnessSize() > 0) return exports;
  } catch (error) {
    if (error instanceof ConfigError) throw error;
  }
  throw new ConfigError(`WITNESS_BINARIES: ${wasm} is damaged, or not a witness generator by circom 2`);
}
