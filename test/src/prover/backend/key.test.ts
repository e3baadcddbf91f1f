import { execFileSync } from 'node:child_process';
import { readFileSync, renameSync, truncateSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { approveKey, KeyFile } from '../../../../src/prover/backend/key.ts';
import { KNOWN_KEYS } from '../../../../src/prover/keys/known.ts';
import { LOADED } from '../fake_worker.ts';
import { keyFile, temporaryFolder } from './support.ts';

/** Hash of "abc" in RFC 7693, appendix A. */
const HASH_OF_ABC =
  'ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d17d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923';
const refusal = (message: string | RegExp) =>
  expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(message) });

function open(path: string): KeyFile {
  const file = new KeyFile(path);
  onTestFinished(() => file.close());
  return file;
}

describe("a key's file", () => {
  test('is hashed with BLAKE2b-512, in pieces', async () => {
    expect(await open(keyFile('abc')).hash()).toBe(HASH_OF_ABC);
    const path = keyFile('0123456789'.repeat(300_000));
    const [expected] = execFileSync('b2sum', [path], { encoding: 'utf8' }).split(' ');
    expect(await open(path).hash()).toBe(expected);
  });

  test('is used as it was opened, even if another file is renamed to its path', async () => {
    const path = keyFile('abc');
    const file = open(path);
    writeFileSync(`${path}.new`, 'another key');
    renameSync(`${path}.new`, path);
    expect(await file.hash()).toBe(HASH_OF_ABC);
    await file.requireSame();
    unlinkSync(path);
    await file.requireSame();
    expect(readFileSync(`/proc/self/fd/${file.descriptor}`, 'utf8')).toBe('abc');
  });

  test.each<[string, (path: string) => void]>([
    ['overwritten', (path) => writeFileSync(path, 'abd')],
    ['extended', (path) => writeFileSync(path, 'abcd')],
    ['truncated', (path) => truncateSync(path, 2)],
    [
      'overwritten with its old times',
      (path) => {
        writeFileSync(path, 'abd');
        utimesSync(path, 1, 1);
      },
    ],
  ])('is refused when it was %s after it was hashed', async (_, change) => {
    const path = keyFile('abc');
    utimesSync(path, 1, 1);
    const file = open(path);
    await file.hash();
    change(path);
    await expect(file.requireSame()).rejects.toThrow(refusal('was changed while in use'));
    // It is refused until it has its content again.
    await expect(file.requireSame()).rejects.toThrow(refusal('was changed while in use'));
    writeFileSync(path, 'abc');
    await file.requireSame();
  });

  test.each([
    ['a folder', temporaryFolderPath, /is not a regular file/],
    ['a device', () => '/dev/zero', /is not a regular file/],
    ['a path without a file', () => '/nonexistent', /can't be read: ENOENT/],
  ])('may not be %s', (_, path, message) => {
    expect(() => open(path())).toThrow(refusal(message));
  });
});

function temporaryFolderPath(): string {
  return temporaryFolder();
}

describe('a key is approved', () => {
  const production = { ...LOADED, development: false };
  const NONE = { pinned: undefined, allowDevelopment: false };

  test.each(KNOWN_KEYS)('if it is the published key $name, with its network', ({ blake2b, network }) => {
    expect(approveKey(blake2b, production, NONE)).toEqual({
      blake2b,
      network,
      development: false,
      publicInputs: 1,
    });
    expect(approveKey(blake2b, production, { ...NONE, pinned: blake2b }).network).toBe(network);
  });

  test('only if it is published or its hash is pinned; any other error contains the hash', () => {
    expect(() => approveKey(HASH_OF_ABC, production, NONE)).toThrow(refusal(`ZKEY_BLAKE2B=${HASH_OF_ABC}$`));
    expect(() => approveKey(HASH_OF_ABC, production, { ...NONE, allowDevelopment: true })).toThrow(
      refusal('ZKEY_BLAKE2B='),
    );
    const pinned = { ...NONE, pinned: HASH_OF_ABC };
    expect(approveKey(HASH_OF_ABC, production, pinned)).toMatchObject({
      network: 'unknown',
      development: false,
    });
  });

  test('only if no other key is pinned, even if it is published', () => {
    const pinned = { allowDevelopment: true, pinned: 'ab'.repeat(64) };
    for (const hash of [HASH_OF_ABC, ...KNOWN_KEYS.map(({ blake2b }) => blake2b)]) {
      expect(() => approveKey(hash, production, pinned)).toThrow(
        refusal(`is ${hash}, not the one that ZKEY_BLAKE2B requires`),
      );
    }
  });

  test('only with allowDevelopment if it is a development key, even if it is pinned', () => {
    expect(() => approveKey(HASH_OF_ABC, LOADED, NONE)).toThrow(refusal('ALLOW_INSECURE_DEV_KEY=1'));
    expect(() => approveKey(HASH_OF_ABC, LOADED, { ...NONE, pinned: HASH_OF_ABC })).toThrow(
      refusal('ALLOW_INSECURE_DEV_KEY=1'),
    );
    const allowed = { ...NONE, allowDevelopment: true };
    expect(approveKey(HASH_OF_ABC, LOADED, allowed)).toMatchObject({
      network: 'development',
      development: true,
    });
  });

  test.each([0, 2, 7])('not with %d public inputs', (count) => {
    const { blake2b = '' } = KNOWN_KEYS[0] ?? {};
    expect(() => approveKey(blake2b, { ...production, public: count }, NONE)).toThrow(
      refusal(`the key has ${count} public inputs: a key for zkLogin has exactly one`),
    );
  });
});
