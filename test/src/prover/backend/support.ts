/** Makes fakes of the backend's parts: a key's file, a witness generator, and a log that is recorded. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { countSignals, type Signals } from '../../../../src/prover/backend/signals.ts';
import { buildInput, type CircuitInput } from '../../../../src/prover/input.ts';
import { type CircuitSize, PROFILES } from '../../../../src/prover/profile.ts';
import { createLog } from '../../../../src/service/log.ts';
import { LOADED, WITNESS_BYTES } from '../fake_worker.ts';
import { OUR_KEY, requestWith } from '../support.ts';

/** Makes a folder that is removed after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'backend-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export function keyFile(content = 'a key'): string {
  const path = join(temporaryFolder(), 'k.zkey');
  writeFileSync(path, content);
  return path;
}

/** Computes FNV-1a of 64 bits (draft-eastlake-fnv), in halves of 32 bits. */
function fnv1a(text: string): [low: number, high: number] {
  let hash = 14_695_981_039_346_656_037n;
  for (const char of text) {
    hash ^= BigInt(char.charCodeAt(0));
    hash = (hash * 1_099_511_628_211n) & 0xffff_ffff_ffff_ffffn;
  }
  return [Number(hash & 0xffff_ffffn), Number(hash >> 32n)];
}

/** Writes the beginning of a `.dat` file of circom: a table of 256 input signals, placed by their hash. */
export function signalTable(signals: Signals, wires = LOADED.wires): Buffer {
  // After the table come a u64 for each wire, and a constant: its value, its type and four words.
  const dat = Buffer.alloc(256 * 24 + 8 * wires + 40);
  dat.writeUInt32LE(0x40000000, 256 * 24 + 8 * wires + 4);
  let id = 1;
  for (const [name, count] of Object.entries(signals)) {
    const [low, high] = fnv1a(name);
    let slot = low % 256;
    while (dat.readUInt32LE(24 * slot + 16) !== 0) slot = (slot + 1) % 256;
    dat.writeUInt32LE(low, 24 * slot);
    dat.writeUInt32LE(high, 24 * slot + 4);
    dat.writeUInt32LE(id, 24 * slot + 8);
    dat.writeUInt32LE(count, 24 * slot + 16);
    id += count;
  }
  return dat;
}

/**
 * Shell script that writes a witness of the size that the fake engine expects, with the public input in it.
 */
export const WITNESS_SCRIPT = `
  public=$(printf %s "$input" | sed 's/.*"all_inputs_hash":"\\([0-9]*\\)".*/\\1/')
  { printf 'wtns%-80s' "$public"; head -c ${WITNESS_BYTES - 84} /dev/zero; } > "$2"`;

/**
 * Makes a witness generator in shell, with the names of circom's files in C++. It refuses an empty input.
 *
 * @param script shell that has the input in `$input` and the folder in `$folder`, and writes to "$2"
 * @returns the generator's folder
 */
export function fakeGenerator(
  script = WITNESS_SCRIPT,
  { size = 'small' as CircuitSize, signals = countSignals(PROFILES[size]) } = {},
): string {
  const folder = temporaryFolder();
  const program = `#!/bin/sh
input=$(cat "$1")
folder='${folder}'
[ "$input" = '{}' ] && kill -ABRT $$
${script}
`;
  writeFileSync(join(folder, 'zkLogin'), program, { mode: 0o755 });
  writeFileSync(join(folder, 'zkLogin.dat'), signalTable(signals));
  return folder;
}

/** Makes an input of a circuit. Each salt gives a different public input. */
export function createInput(
  salt: number | string,
  size: CircuitSize = 'small',
): { circuit: CircuitInput; publicInput: string } {
  const { circuit, publicInput } = buildInput(
    requestWith({}, { salt: String(salt) }),
    OUR_KEY,
    PROFILES[size],
  );
  return { circuit, publicInput: String(publicInput) };
}

export function recordedLog(level = 'trace') {
  let printed = '';
  const log = createLog(level, {
    write(line) {
      printed += line;
    },
  });
  return { log, printed: () => printed };
}
