import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { main } from '../../../../src/cli/main.ts';
import { call } from '../../cli/run.ts';
import { createTar, type Image, type Member, ociArchive } from './tar.ts';

const NAME = 'prover_extract_generator';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'extract-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const PROGRAM = { path: 'app/binaries/zkLogin', content: 'program' };
const DATA = { path: 'app/binaries/zkLogin.dat', content: 'data' };
const WHOLE: Member[] = [
  { path: './', type: 'Directory' },
  { path: 'app/', type: 'Directory' },
  { path: 'app/binaries/', type: 'Directory' },
  PROGRAM,
  DATA,
  { path: 'etc/passwd', content: 'root' },
  { path: 'lib', type: 'SymbolicLink', linkpath: 'usr/lib' },
];

async function extract(archive: Buffer | Image) {
  const file = join(folder, 'image.tar');
  writeFileSync(file, Buffer.isBuffer(archive) ? archive : ociArchive(archive));
  return await run(file);
}

async function run(file: string) {
  const out = join(folder, 'witness');
  const { status, stdout, stderr } = await call(main, [NAME, '--archive', file, '--out', out, '--json']);
  const files = existsSync(out)
    ? Object.fromEntries(readdirSync(out).map((name) => [name, readFileSync(join(out, name), 'utf8')]))
    : undefined;
  expect(stderr).toBe('');
  return { ...JSON.parse(stdout), exit: status, written: files };
}

const BOTH = { zkLogin: 'program', 'zkLogin.dat': 'data' };

test.each(['tar', 'gzip', 'zstd'] as const)(
  'prover_extract_generator extracts the two files from layers as %s',
  async (compression) => {
    const { exit, written, ...json } = await extract({ layers: [WHOLE], compression });
    expect(written).toMatchObject({ zkLogin: 'program', 'zkLogin.dat': 'data' });
    expect(exit).toBe(0);
    expect(json.image).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(json.files[0]).toEqual({
      name: 'zkLogin',
      bytes: 7,
      sha256: createHash('sha256').update('program').digest('hex'),
    });
    expect(statSync(join(folder, 'witness/zkLogin')).mode & 0o777).toBe(0o755);
    expect(readdirSync(folder).sort()).toEqual(['image.tar', 'witness']);
  },
);

test('prover_extract_generator extracts the files for amd64 if the image has several platforms', async () => {
  expect((await extract({ layers: [WHOLE], platforms: true })).written).toEqual(BOTH);
});

describe('in an image of several layers', () => {
  test.each<[string, Member[][], object]>([
    [
      'the topmost version of a file is extracted',
      [WHOLE, [{ ...DATA, content: 'new' }]],
      { ...BOTH, 'zkLogin.dat': 'new' },
    ],
    [
      'a file that a later layer adds again is extracted',
      [WHOLE, [{ path: 'app/.wh.binaries' }], [PROGRAM, DATA]],
      BOTH,
    ],
    [
      'a file of a layer that hides lower layers is extracted',
      [WHOLE, [{ path: 'app/binaries/.wh..wh..opq' }, PROGRAM, DATA]],
      BOTH,
    ],
  ])('%s', async (_, layers, expected) => {
    expect((await extract({ layers })).written).toEqual(expected);
  });

  test.each([
    'app/binaries/.wh.zkLogin.dat',
    'app/binaries/.wh..wh..opq',
    'app/.wh..wh..opq',
    'app/.wh.binaries',
    '.wh.app',
  ])('%s removes a file', async (path) => {
    const { exit, code, written } = await extract({ layers: [WHOLE, [{ path }]] });
    expect([exit, code, written]).toEqual([1, 'GENERATOR_MISSING', undefined]);
  });
});

const changeMembers = (replace: (member: Member) => Member[]): Image => ({
  layers: [WHOLE],
  change: (members) => members.flatMap(replace),
});
const isBlob = ({ path }: Member) => path.startsWith('blobs/sha256/');
const isLayer = ({ path, content }: Member) => isBlob({ path }) && Buffer.from(content ?? '')[0] === 0x1f;

describe('prover_extract_generator refuses', () => {
  test.each<[string, string, Image]>([
    [
      'a link in place of the program',
      'ARCHIVE_UNSAFE',
      { layers: [[{ ...PROGRAM, type: 'SymbolicLink', linkpath: '/bin/sh', content: '' }]] },
    ],
    [
      'a hard link',
      'ARCHIVE_UNSAFE',
      { layers: [[{ ...PROGRAM, type: 'Link', linkpath: 'etc/shadow', content: '' }]] },
    ],
    [
      'a link in place of the folder',
      'ARCHIVE_UNSAFE',
      { layers: [[{ path: 'app/binaries', type: 'SymbolicLink', linkpath: '../tmp' }, PROGRAM, DATA]] },
    ],
    [
      'a link in place of a parent',
      'ARCHIVE_UNSAFE',
      { layers: [WHOLE, [{ path: 'app', type: 'SymbolicLink', linkpath: '/' }]] },
    ],
    ['a device', 'ARCHIVE_UNSAFE', { layers: [[{ ...PROGRAM, type: 'CharacterDevice', content: '' }]] }],
    [
      'a path outside of the image',
      'ARCHIVE_UNSAFE',
      { layers: [[{ path: 'app/../../zkLogin', content: 'x' }]] },
    ],
    [
      'a path with an empty part',
      'ARCHIVE_UNSAFE',
      { layers: [[{ path: 'app//binaries/zkLogin', content: 'x' }]] },
    ],
    [
      'a path outside of the archive',
      'ARCHIVE_UNSAFE',
      changeMembers((member) => [member, { path: '../x' }]),
    ],
    [
      'a link in the archive',
      'ARCHIVE_UNSAFE',
      changeMembers((member) =>
        member.path === 'oci-layout'
          ? [{ path: 'x', type: 'SymbolicLink', linkpath: '/etc/shadow' }]
          : [member],
      ),
    ],
    [
      'a program of 300 MB',
      'ARCHIVE_TOO_LARGE',
      { layers: [[{ ...PROGRAM, size: 300 * 1024 ** 2 }]], compression: 'tar' },
    ],
    [
      'a changed layer',
      'ARCHIVE_INVALID',
      changeMembers((member) =>
        isLayer(member)
          ? [{ ...member, content: gzipSync(createTar([PROGRAM, { ...DATA, content: 'evil' }])) }]
          : [member],
      ),
    ],
    [
      'a changed manifest',
      'ARCHIVE_INVALID',
      changeMembers((member) =>
        isBlob(member) && !isLayer(member) ? [{ ...member, content: `${member.content} ` }] : [member],
      ),
    ],
    ['a missing layer', 'ARCHIVE_INVALID', changeMembers((member) => (isLayer(member) ? [] : [member]))],
    [
      'no index',
      'ARCHIVE_INVALID',
      changeMembers((member) => (member.path === 'index.json' ? [] : [member])),
    ],
    [
      'two indexes',
      'ARCHIVE_INVALID',
      changeMembers((member) => (member.path === 'index.json' ? [member, member] : [member])),
    ],
    [
      'an index of another form',
      'ARCHIVE_INVALID',
      changeMembers((member) => (member.path === 'index.json' ? [{ ...member, content: '[]' }] : [member])),
    ],
    [
      'an image without a generator',
      'GENERATOR_MISSING',
      { layers: [[{ path: 'app/binaries/zkLogin.bak', content: 'x' }]] },
    ],
  ])('%s', async (_, code, image) => {
    expect(await extract(image)).toMatchObject({ exit: 1, code, written: undefined });
    expect(readdirSync(folder)).toEqual(['image.tar']);
  });

  test('a file that is not an archive, and a truncated archive', async () => {
    expect(await extract(Buffer.from('PK not a tar'.repeat(100)))).toMatchObject({ code: 'ARCHIVE_INVALID' });
    const whole = ociArchive({ layers: [WHOLE], compression: 'tar' });
    for (const part of [0.1, 0.4, 0.7]) {
      const { exit, code } = await extract(whole.subarray(0, Math.floor(whole.length * part)));
      expect([exit, code]).toEqual([1, 'ARCHIVE_INVALID']);
    }
  });

  test('a layer that is compressed twice', async () => {
    const blob = gzipSync(gzipSync(createTar(WHOLE)));
    const digest = createHash('sha256').update(blob).digest('hex');
    const mediaType = 'application/vnd.oci.image.layer.v1.tar+gzip';
    const manifest = Buffer.from(JSON.stringify({ layers: [{ mediaType, digest: `sha256:${digest}` }] }));
    const name = createHash('sha256').update(manifest).digest('hex');
    const index = {
      manifests: [{ mediaType: 'application/vnd.oci.image.manifest.v1+json', digest: `sha256:${name}` }],
    };
    const members = [
      { path: `blobs/sha256/${digest}`, content: blob },
      { path: `blobs/sha256/${name}`, content: manifest },
      { path: 'index.json', content: JSON.stringify(index) },
    ];
    expect(await extract(createTar(members))).toMatchObject({ exit: 1, code: 'ARCHIVE_INVALID' });
  });

  test('an archive of 10 GB, before it reads any of it', async () => {
    const file = join(folder, 'image.tar');
    writeFileSync(file, '');
    truncateSync(file, 10 * 1024 ** 3);
    expect(await run(file)).toMatchObject({ exit: 1, code: 'ARCHIVE_TOO_LARGE' });
  });

  test('an output folder that exists, and an archive that does not', async () => {
    expect((await extract({ layers: [WHOLE] })).exit).toBe(0);
    expect(await extract({ layers: [WHOLE] })).toMatchObject({ exit: 1, code: 'FOLDER_EXISTS' });
    rmSync(join(folder, 'witness'), { recursive: true });
    expect(await run(join(folder, 'none.tar'))).toMatchObject({ exit: 2, code: 'UNREADABLE_FILE' });
  });
});
