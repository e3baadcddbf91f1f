import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { makeBase } from '../../../../src/toolchain/image/base.ts';
import { formatLock } from '../../../../src/toolchain/image/lock.ts';
import { makeDeb, makeTar } from './packages.ts';

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'base-'));
});
afterEach(() => {
  delete process.env['DEBIAN_MIRROR'];
  rmSync(dir, { recursive: true });
});

/** Starts a mirror on loopback, and writes a lock file of its packages. @returns the path of the lock file */
async function createLock(
  packages: Readonly<Record<string, Readonly<Record<string, string>>>>,
): Promise<string> {
  const debs = new Map(
    Object.entries(packages).map(([name, files]) => [
      `pool/${name}.deb`,
      makeDeb({ 'data.tar': makeTar(files) }),
    ]),
  );
  const server = createServer((request, response) => {
    response.end(debs.get((request.url ?? '').slice('/debian/'.length)));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
  });
  process.env['DEBIAN_MIRROR'] = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const path = join(dir, 'lock.json');
  writeFileSync(
    path,
    formatLock({
      suite: 'trixie',
      archive_time: '20260101T000000Z',
      wanted: [],
      wanted_sources: [],
      packages: [...debs].map(([file, deb]) => ({
        name: file.slice('pool/'.length, -'.deb'.length),
        version: '1',
        archive: 'debian',
        path: file,
        size: deb.length,
        sha256: createHash('sha256').update(deb).digest('hex'),
      })),
      sources: [],
    }),
  );
  return path;
}

function list(tar: string): string[] {
  return execFileSync('tar', ['-tf', tar], { encoding: 'utf8' }).trim().split('\n');
}

describe('the base archive', () => {
  test('contains the files of base-files first, then those of the other packages, and overlays last', async () => {
    const lock = await createLock({
      aaa: { './usr/bin/aaa': 'a' },
      'base-files': { './etc/debian_version': '13' },
      zzz: { './usr/bin/zzz': 'z' },
    });
    const overlay = join(dir, 'overlay.tar');
    writeFileSync(overlay, makeTar({ 'etc/ld.so.preload': 'x' }));
    const out = join(dir, 'base.tar');
    await makeBase([lock], out, join(dir, 'cache'), { overlays: [overlay] });
    expect(list(out)).toEqual([
      './etc/debian_version',
      './usr/bin/aaa',
      './usr/bin/zzz',
      'etc/ld.so.preload',
    ]);
  });

  test.each(['./bin/sh', './lib/x', 'lib64/x', './usr/../bin/sh'])(
    'refuses a package with %s',
    async (path) => {
      const lock = await createLock({ odd: { [path]: 'x' } });
      await expect(makeBase([lock], join(dir, 'base.tar'), join(dir, 'cache'))).rejects.toMatchObject({
        code: 'ARCHIVE_INVALID',
      });
    },
  );
});
