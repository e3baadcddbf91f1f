import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { fetchAll } from '../../../../src/toolchain/image/fetch.ts';
import type { LockedFile } from '../../../../src/toolchain/image/lock.ts';
import { findMirrors, OFFLINE } from '../../../../src/toolchain/image/mirrors.ts';

const CONTENT = 'the package';
const FILE: LockedFile = {
  name: 'g++',
  version: '14.2',
  archive: 'debian',
  path: 'pool/main/g/gcc/g++_14.2_amd64.deb',
  size: CONTENT.length,
  sha256: createHash('sha256').update(CONTENT).digest('hex'),
};
const LOCK = { archive_time: '20260102T030405Z' };
let cache: string;

beforeEach(() => {
  cache = mkdtempSync(join(tmpdir(), 'packages-'));
});
afterEach(() => rmSync(cache, { recursive: true }));

/** Serves an archive over HTTP. @returns also the paths of the requests */
async function serve(
  files: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<{ address: string; requestedPaths: string[] }> {
  const requestedPaths: string[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '');
    requestedPaths.push(path);
    if (path in files) response.writeHead('location' in headers ? 302 : 200, headers).end(files[path]);
    else response.writeHead(404).end();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => {
    server.close();
  });
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requestedPaths };
}

const noApt = () => '';

describe('a locked package', () => {
  test('comes from the mirror, and the next time from the cache', async () => {
    const { address, requestedPaths } = await serve({ [`/debian/${FILE.path}`]: CONTENT });
    const mirrors = findMirrors({ DEBIAN_MIRROR: `${address}/` }, noApt);
    const [path] = await fetchAll([FILE], LOCK, mirrors, cache);
    expect(readFileSync(path as string, 'utf8')).toBe(CONTENT);
    await fetchAll([FILE], LOCK, mirrors, cache);
    expect(requestedPaths).toEqual([`/debian/${FILE.path}`]);
  });

  test("comes from the target of a mirror's redirect, after at most 20 redirects", async () => {
    const source = `/debian/${FILE.path}`;
    const otherMirror = await serve({ [source]: CONTENT });
    const first = await serve({ [source]: 'elsewhere' }, { location: `${otherMirror.address}${source}` });
    const [path] = await fetchAll([FILE], LOCK, findMirrors({ DEBIAN_MIRROR: first.address }, noApt), cache);
    expect(readFileSync(path as string, 'utf8')).toBe(CONTENT);
    rmSync(path as string);
    const looping = await serve({ [source]: 'here' }, { location: source });
    const download = fetchAll([FILE], LOCK, findMirrors({ DEBIAN_MIRROR: looping.address }, noApt), cache);
    await expect(download).rejects.toMatchObject({ code: 'INPUTS_GONE' });
    expect(looping.requestedPaths).toHaveLength(21);
  });

  test('is never decoded, so a mirror that sends it with a content encoding is not used', async () => {
    const headers = { 'content-encoding': 'gzip' };
    const { address } = await serve(
      { [`/debian/${FILE.path}`]: gzipSync(CONTENT).toString('latin1') },
      headers,
    );
    const download = fetchAll([FILE], LOCK, findMirrors({ DEBIAN_MIRROR: address }, noApt), cache);
    await expect(download).rejects.toMatchObject({
      code: 'INPUTS_GONE',
      message: expect.stringContaining('no answer'),
    });
  });

  test('is fetched again if its file in the cache is damaged', async () => {
    const { address } = await serve({ [`/debian/${FILE.path}`]: CONTENT });
    const mirrors = findMirrors({ DEBIAN_MIRROR: address }, noApt);
    writeFileSync(join(cache, FILE.sha256), 'other');
    const [path] = await fetchAll([FILE], LOCK, mirrors, cache);
    expect(readFileSync(path as string, 'utf8')).toBe(CONTENT);
  });

  test('that is gone from the mirror comes from the snapshot archive, at the time of the lock', async () => {
    const snapshot = `/archive/debian/20260102T030405Z/${FILE.path}`;
    const { address, requestedPaths } = await serve({ [snapshot]: CONTENT });
    const mirrors = findMirrors({ DEBIAN_MIRROR: address, DEBIAN_SNAPSHOT: address }, noApt);
    await fetchAll([FILE], LOCK, mirrors, cache);
    expect(requestedPaths).toEqual([`/debian/${FILE.path}`, snapshot]);
  });

  test.each([
    [
      true,
      /gone from every source[\s\S]*status 404[\s\S]*--inputs[\s\S]*npx --offline sui-enclave update_lock/,
    ],
    [false, /gone from every source[\s\S]*set DEBIAN_SNAPSHOT[\s\S]*npx --offline sui-enclave update_lock/],
  ])(
    'that is gone everywhere stops the build with advice (with a snapshot archive: %s)',
    async (hasSnapshot, message) => {
      const { address } = await serve({});
      const mirrors = findMirrors(
        { DEBIAN_MIRROR: address, ...(hasSnapshot && { DEBIAN_SNAPSHOT: address }) },
        noApt,
      );
      await expect(fetchAll([FILE], LOCK, mirrors, cache)).rejects.toMatchObject({
        code: 'INPUTS_GONE',
        message: expect.stringMatching(message),
      });
    },
  );

  test.each([
    ['other bytes', CONTENT.toUpperCase(), 'PACKAGE_CHANGED'],
    ['more bytes', `${CONTENT}!`, 'INPUTS_GONE'],
    ['fewer bytes', CONTENT.slice(1), 'INPUTS_GONE'],
  ])('that has %s is refused, and does not get into the cache', async (_what, content, code) => {
    const { address } = await serve({ [`/debian/${FILE.path}`]: content });
    const mirrors = findMirrors({ DEBIAN_MIRROR: address }, noApt);
    await expect(fetchAll([FILE], LOCK, mirrors, cache)).rejects.toMatchObject({ code });
    expect(readdirSync(cache)).toEqual([]);
  });

  test('is listed in the error with all others that are gone', async () => {
    const otherFile = { ...FILE, name: 'another', sha256: 'f'.repeat(64) };
    await expect(fetchAll([FILE, otherFile], LOCK, OFFLINE, cache)).rejects.toThrow(
      /these inputs are gone[\s\S]*another [\s\S]*The archive of inputs lacks them/,
    );
  });

  test('is reported as gone if no server listens', async () => {
    const mirrors = findMirrors({ DEBIAN_MIRROR: 'http://127.0.0.1:1' }, noApt);
    await expect(fetchAll([FILE], LOCK, mirrors, cache)).rejects.toMatchObject({ code: 'INPUTS_GONE' });
  });
});

describe('the mirrors', () => {
  test("are those of the machine's apt, without mirrors of other projects", () => {
    const apt = `Debian http://mirror.example/debian/
Debian http://mirror.example/debian/
Debian http://mirror.example/debian-security/
Other http://other.example/debian/
Debian file:/srv/debian/
`;
    expect(findMirrors({}, () => apt)).toEqual({
      archives: {
        debian: ['http://mirror.example/debian'],
        'debian-security': ['http://mirror.example/debian-security'],
      },
      snapshot: undefined,
    });
  });

  test.each([
    [{}, /DEBIAN_MIRROR/],
    [{ DEBIAN_MIRROR: 'mirror.example' }, /DEBIAN_MIRROR must be an address/],
    [{ DEBIAN_SNAPSHOT: 'file:///srv' }, /DEBIAN_SNAPSHOT must be an address/],
  ])(
    'cause an error that says what to set if none is named, or a setting is invalid (%o)',
    (env, message) => {
      expect(() => findMirrors(env, noApt)).toThrow(message);
    },
  );
});
