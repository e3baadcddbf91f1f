/**
 * Runs the witness generator, and finds in its message the template that refused an input. Users never see
 * this message.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { CircuitInput } from '../../../../src/prover/input.ts';
import {
  type Artifacts,
  builtArtifacts,
  locateGenerator,
} from '../../../../src/toolchain/prover/artifacts.ts';

export const artifacts = builtArtifacts('small');

export interface Outcome {
  readonly witness: Buffer | null;
  /** Template whose constraint the input breaks, or the output that names none; null if none is broken. */
  readonly refusedBy: string | null;
}

export function run(input: CircuitInput, circuitArtifacts: Artifacts = artifacts): Outcome {
  const [program = '', ...args] = locateGenerator(circuitArtifacts);
  const folder = mkdtempSync(join(tmpdir(), 'prover-test-'));
  try {
    const [file, out] = [join(folder, 'input.json'), join(folder, 'out.wtns')];
    writeFileSync(file, JSON.stringify(input));
    const { status, stdout, stderr } = spawnSync(program, [...args, file, out], { encoding: 'utf8' });
    if (status === 0) return { witness: readFileSync(out), refusedBy: null };
    const output = stdout + stderr;
    return {
      witness: null,
      refusedBy: /in template(?:\/function)? (\w+?)(?:_\d+)? line/.exec(output)?.[1] ?? output,
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
