/** Tests findGenerator with fakes of circom's generators. backend.prover.ts reads the real generators. */
import { chmodSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { findGenerator } from '../../../../src/prover/backend/generator.ts';
import { countSignals } from '../../../../src/prover/backend/signals.ts';
import { PROFILES } from '../../../../src/prover/profile.ts';
import { LOADED } from '../fake_worker.ts';
import { fakeGenerator, temporaryFolder } from './support.ts';

const refusal = (message: RegExp) =>
  expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(message) });
const small = countSignals(PROFILES.small);

describe('the generator in C++', () => {
  test.each(['small', 'full'] as const)(
    'of %s size is recognised by the signals in its .dat',
    async (size) => {
      const folder = fakeGenerator(undefined, { size });
      const generator = await findGenerator(folder);
      expect(generator).toMatchObject({ size, command: [join(folder, 'zkLogin')] });
      expect(generator.canMake(LOADED.wires)).toBe(true);
      expect(generator.canMake(LOADED.wires + 1)).toBe(false);
      expect(generator.canMake(LOADED.wires - 1)).toBe(false);
    },
  );

  test.each<[string, object, RegExp]>([
    ['another signal', { ...small, signature: undefined, signed: 32 }, /not for zkLogin's circuit/],
    ['an additional signal', { ...small, more: 1 }, /not for zkLogin's circuit/],
    ['a signal of another size', { ...small, ext_aud: 161 }, /not for zkLogin's circuit/],
    ['no signals', {}, /not for zkLogin's circuit/],
  ])('with %s belongs to another circuit', async (_, signals, message) => {
    const definedSignals = Object.fromEntries(
      Object.entries(signals).filter(([, count]) => count !== undefined),
    );
    await expect(findGenerator(fakeGenerator(undefined, { signals: definedSignals }))).rejects.toThrow(
      refusal(message),
    );
  });

  test.each<[string, (folder: string) => void, RegExp]>([
    ['has no .dat', (folder) => rmSync(join(folder, 'zkLogin.dat')), /zkLogin\.dat can't be read: ENOENT/],
    [
      'has a damaged .dat',
      (folder) => truncateSync(join(folder, 'zkLogin.dat'), 6000),
      /zkLogin\.dat is damaged/,
    ],
    [
      'is a program for another machine',
      (folder) => writeFileSync(join(folder, 'zkLogin'), Buffer.from('\x7fELF\x02\x02\x02', 'latin1')),
      /trial run of the generator in .+ failed: .+ could not be run/,
    ],
    [
      'lacks a library',
      (folder) => writeFileSync(join(folder, 'zkLogin'), '#!/bin/sh\nexit 127\n'),
      /trial run of the generator in .+ failed: .+ could not be run/,
    ],
    [
      'is another program',
      (folder) => writeFileSync(join(folder, 'zkLogin'), '#!/bin/sh\nexit 0\n'),
      /trial run of the generator in .+ failed: .+ wrote no witness/,
    ],
    [
      'makes a witness from any input',
      (folder) => writeFileSync(join(folder, 'zkLogin'), '#!/bin/sh\ncat "$1"; printf wtns > "$2"\n'),
      /(wrote no witness|made a witness for an empty input)/,
    ],
  ])('stops the start if it %s', async (_, change, message) => {
    const folder = fakeGenerator();
    change(folder);
    await expect(findGenerator(folder)).rejects.toThrow(refusal(message));
  });

  test.skipIf(process.getuid?.() === 0)('stops the start if it is not executable', async () => {
    const folder = fakeGenerator();
    chmodSync(join(folder, 'zkLogin'), 0o644);
    await expect(findGenerator(folder)).rejects.toThrow(refusal(/is not executable: chmod \+x it/));
  });
});

describe('a folder stops the start if', () => {
  test.each<[string, (folder: string) => string]>([
    ['it does not exist', (folder) => join(folder, 'nothing')],
    ['it is empty', (folder) => folder],
    [
      'it is a file',
      (folder) => {
        writeFileSync(join(folder, 'file'), '');
        return join(folder, 'file');
      },
    ],
    [
      'its program is a folder',
      (folder) => {
        symlinkSync('/', join(folder, 'zkLogin'));
        return folder;
      },
    ],
  ])('%s, and the error names the files that it must contain', async (_, make) => {
    await expect(findGenerator(make(temporaryFolder()))).rejects.toThrow(
      refusal(/does not exist: the folder must hold zkLogin and zkLogin\.dat, or .* circuit\.wasm/),
    );
  });

  test.each<[string, Uint8Array]>([
    ['is damaged', Buffer.from('\0asm garbage', 'latin1')],
    ['is another module', Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)],
  ])('its WebAssembly %s', async (_, wasm) => {
    const folder = temporaryFolder();
    for (const file of ['generate_witness.js', 'witness_calculator.js'])
      writeFileSync(join(folder, file), '');
    writeFileSync(join(folder, 'circuit.wasm'), wasm);
    await expect(findGenerator(folder)).rejects.toThrow(
      refusal(/circuit\.wasm is damaged, or not a witness generator/),
    );
  });
});
