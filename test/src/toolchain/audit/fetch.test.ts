/**
 * An audit gets an author's files in one way only: git fetches one commit, and the audit writes the commit to
 * a folder object by object.
 */

import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { UsageError } from '../../../../src/cli/command_line.ts';
import { printable } from '../../../../src/cli/printable.ts';
import { isPublic, sourceAddress } from '../../../../src/toolchain/audit/address.ts';
import {
  askNamedRepository,
  checkOnBranch,
  fetchCommit,
  openClone,
} from '../../../../src/toolchain/audit/fetch.ts';
import { LIMITS, type Limits } from '../../../../src/toolchain/audit/git.ts';
import { writeTree } from '../../../../src/toolchain/audit/tree.ts';
import { GitServer, TestRepository } from './git_server.ts';

let root: string;
let server: GitServer;
let count = 0;
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'audit-fetch-'));
  server = await GitServer.start(root);
});
afterAll(() => {
  server.close();
  rmSync(root, { recursive: true });
});

const createRepository = () => new TestRepository(join(root, `repository-${++count}.git`));

function createRequest(commit: string, limits?: Limits) {
  const work = join(root, `work-${++count}`);
  mkdirSync(work);
  const env = { PATH: process.env['PATH'], GIT_SSL_CAINFO: server.authority };
  return { commit, work, env, ...(limits && { limits }) };
}

/** Fetches and writes a commit, as an audit does. */
async function fetchAndWrite(from: TestRepository, commit: string, limits: Limits = LIMITS) {
  const request = createRequest(commit, limits);
  const fetched = await fetchCommit({ url: server.formatUrl(from), resolved: undefined }, request);
  const tree = await writeTree(fetched, commit, join(request.work, 'tree'), limits);
  return { ...tree, work: request.work };
}

const findCode = async (promise: Promise<unknown>) =>
  await promise.then(
    () => 'done',
    ({ code }: { code: string }) => code,
  );

describe('the address of a source', () => {
  const resolver = (addresses: string[]) => async () => addresses;

  test('is an https URL of a public host, and git connects to the addresses that were checked', async () => {
    const sourceUrl = 'https://code.example/team/oracle.git';
    const resolve = resolver(['93.184.216.34', '2606:2800:21f::1']);
    await expect(sourceAddress(sourceUrl, false, resolve)).resolves.toEqual({
      url: sourceUrl,
      resolved: 'code.example:443:93.184.216.34,[2606:2800:21f::1]',
    });
  });

  test.each([
    'http://code.example/a',
    'ext::sh -c touch% /tmp/pwned',
    'ssh://-oProxyCommand=touch/x',
    '-oProxyCommand=touch',
    '--upload-pack=touch',
    'git@code.example:a/b',
    'file:///etc',
    '/etc',
    'https://user@code.example/a',
    'https://user:word@code.example/a',
    'https://code.example:8443/a',
    'https://127.0.0.1/a',
    'https://2130706433/a',
    'https://0x7f.1/a',
    'https://[::1]/a',
    'https://localhost/a',
    'https://a.localhost/a',
    'https://intranet/a',
    'https://code.example/a?x=1',
    'https://code.example/a#x',
    'https://code.example/a\u001b[2J',
    'https://code.example\\@127.0.0.1/a',
    ' https://code.example/a',
    '',
  ])('is refused: %s', async (text) => {
    await expect(sourceAddress(text, false, resolver(['93.184.216.34']))).rejects.toMatchObject({
      code: 'SOURCE_REFUSED',
    });
  });

  test('is refused if any address of its host is in a private network', async () => {
    for (const privateAddress of [
      '127.0.0.1',
      '10.1.2.3',
      '169.254.169.254',
      '::1',
      'fd00::1',
      '::ffff:10.0.0.1',
    ]) {
      const resolve = resolver(['93.184.216.34', privateAddress]);
      await expect(
        sourceAddress('https://code.example/a', false, resolve),
        privateAddress,
      ).rejects.toMatchObject({
        code: 'SOURCE_REFUSED',
        message: expect.stringContaining(privateAddress),
      });
    }
    expect(
      ['100.64.0.1', '172.31.0.1', '192.168.1.1', '224.0.0.1', '64:ff9b::a00:1', '2002:a00:1::'].map(
        isPublic,
      ),
    ).toEqual(Array(6).fill(false));
    expect(['1.1.1.1', '172.32.0.1', '2a00:1450::1'].map(isPublic)).toEqual([true, true, true]);
  });

  test('may have a port and any host if the auditor named it, but must be https', async () => {
    await expect(sourceAddress('https://localhost:8443/a', true)).resolves.toMatchObject({
      resolved: undefined,
    });
    await expect(sourceAddress('http://localhost/a', true)).rejects.toBeInstanceOf(UsageError);
  });

  test('is not a difference if its host can not be resolved', async () => {
    expect(await findCode(sourceAddress('https://code.example/a', false, resolver([])))).toBe(
      'NOT_FULLY_CHECKED',
    );
  });
});

describe('a commit', () => {
  test('is written unchanged, without its ancestors and other branches', async () => {
    const from = createRepository();
    const before = from.writeCommit({ 'app.ts': 'before', 'secret.txt': 'of before' });
    const files = {
      'app.ts': 'now\r\n',
      'lib/deep/a.ts': 'a',
      '.gitattributes': '* text eol=lf\n*.ts filter=x',
    };
    const commit = from.writeCommit(files, { parent: before });
    from.writeCommit({ 'other.ts': 'other' }, { branch: 'other' });
    const { folder, files: written, omitted } = await fetchAndWrite(from, commit);
    expect([written, omitted]).toEqual([3, []]);
    // No attribute has changed the line endings.
    expect(readFileSync(join(folder, 'app.ts'), 'utf8')).toBe('now\r\n');
    expect(readdirSync(folder, { recursive: true }).sort()).toEqual([
      '.gitattributes',
      'app.ts',
      'lib',
      'lib/deep',
      'lib/deep/a.ts',
    ]);
  });

  test('that the repository does not have is missing', async () => {
    const from = createRepository();
    from.writeCommit({ a: 'a' });
    expect(await findCode(fetchAndWrite(from, '1'.repeat(40)))).toBe('COMMIT_MISSING');
    const tree = from.writeTree({ a: 'a' });
    expect(await findCode(fetchAndWrite(from, tree))).toBe('COMMIT_MISSING');
  });

  test('must be on a branch: a commit that a branch has left is refused, even if the host still serves it', async () => {
    const from = createRepository();
    const address = { url: server.formatUrl(from), resolved: undefined };
    const first = from.writeCommit({ a: '1' });
    const second = from.writeCommit({ a: '2' }, { parent: first });
    for (const commit of [first, second]) await checkOnBranch(address, createRequest(commit));
    const replaced = from.writeCommit({ a: '3' }, { parent: first });
    await checkOnBranch(address, createRequest(replaced));
    expect(await findCode(checkOnBranch(address, createRequest(second)))).toBe('COMMIT_NOT_ON_BRANCH');
    // The host still serves the commit.
    expect((await fetchAndWrite(from, second)).files).toBe(1);
  });

  test('of a clone on this machine is read without its settings, and its objects must match their hashes', async () => {
    const from = createRepository();
    from.configure('core.fsmonitor', 'touch /tmp/never');
    from.configure('core.alternateRefsCommand', 'touch /tmp/never');
    const commit = from.writeCommit({ a: 'a' });
    const request = createRequest(commit);
    const opened = await openClone(from.folder, request);
    expect((await writeTree(opened, commit, join(request.work, 'tree'))).files).toBe(1);

    const otherRepository = createRepository();
    const blob = otherRepository.blob('honest');
    const lyingCommit = otherRepository.writeCommit({ a: { mode: '100644', id: blob } });
    rmSync(join(otherRepository.folder, 'objects', blob.slice(0, 2), blob.slice(2)));
    otherRepository.put(blob, Buffer.from('blob 6\0liar!!'));
    const otherRequest = createRequest(lyingCommit);
    const clone = await openClone(otherRepository.folder, otherRequest);
    expect(await findCode(writeTree(clone, lyingCommit, join(otherRequest.work, 'tree')))).toBe(
      'SOURCE_UNSAFE',
    );
    await expect(openClone(root, createRequest(lyingCommit))).rejects.toBeInstanceOf(UsageError);
  });
});

describe('a hostile repository', () => {
  test('can not write links and submodules', async () => {
    const from = createRepository();
    const commit = from.writeCommit({
      'app.ts': 'app',
      out: { mode: '120000', id: from.blob('/etc') },
      'lib/passwd': { mode: '120000', id: from.blob('../../../../../etc/passwd') },
      module: { mode: '160000', id: '2'.repeat(40) },
      device: { mode: '20000', id: from.blob('') },
      '.gitmodules': '[submodule "module"]\n\tpath = module\n\turl = ext::sh -c "touch /tmp/never"\n',
    });
    const { omitted, folder } = await fetchAndWrite(from, commit);
    expect(omitted).toEqual([
      { path: 'device', kind: 'of an unknown kind' },
      { path: 'lib/passwd', kind: 'a link' },
      { path: 'module', kind: 'a submodule' },
      { path: 'out', kind: 'a link' },
    ]);
    expect(readdirSync(folder).sort()).toEqual(['.gitmodules', 'app.ts', 'lib']);
  });

  test.each(['..', '.', '.git', '.GIT', 'a\u001b[2J', 'a\nb', 'a/../../b', '\xff\xfe'])(
    'can not write a file with the name %j',
    async (name) => {
      const from = createRepository();
      const entry = Buffer.concat([
        Buffer.from(`100644 `),
        Buffer.from(name, name.startsWith('\xff') ? 'latin1' : 'utf8'),
        Buffer.from([0]),
        Buffer.from(from.blob('x'), 'hex'),
      ]);
      const commit = from.commit(from.object('tree', entry));
      // git itself refuses some of these names.
      expect(['SOURCE_UNSAFE', 'NOT_FULLY_CHECKED']).toContain(await findCode(fetchAndWrite(from, commit)));
      expect(existsSync(join(root, 'b'))).toBe(false);
    },
  );

  test('is refused if a tree lists a file twice, or is cut off', async () => {
    const from = createRepository();
    const id = from.blob('x');
    const twice = from.commit(
      from.tree([
        ['100644', 'a', id],
        ['100644', 'a', id],
      ]),
    );
    expect(await findCode(fetchAndWrite(from, twice))).toBe('SOURCE_UNSAFE');
    const cut = createRepository();
    const request = createRequest(cut.commit(cut.object('tree', Buffer.from('100644 a\0short'))));
    const opened = await openClone(cut.folder, request);
    expect(await findCode(writeTree(opened, request.commit, join(request.work, 'tree')))).toBe(
      'SOURCE_UNSAFE',
    );
  });

  test('is read up to a limit of bytes, both packed and unpacked', async () => {
    const limits = { ...LIMITS, bytes: 1_000_000 };
    const large = createRepository();
    expect(
      await findCode(fetchAndWrite(large, large.writeCommit({ a: randomBytes(5_000_000) }), limits)),
    ).toBe('SOURCE_TOO_LARGE');
    const bomb = createRepository();
    const commit = bomb.writeCommit({ a: Buffer.alloc(60_000_000) });
    expect(await findCode(fetchAndWrite(bomb, commit, limits))).toBe('SOURCE_TOO_LARGE');
  });

  test('is read up to a limit of files, even if a few trees contain each other many times', async () => {
    const many = createRepository();
    const id = many.blob('x');
    const entries = Array.from({ length: 1_001 }, (_, index) => ['100644', `f${index}`, id] as const);
    const sorted = [...entries].sort(([, a], [, b]) => (a < b ? -1 : 1));
    expect(
      await findCode(fetchAndWrite(many, many.commit(many.tree(sorted)), { ...LIMITS, files: 1_000 })),
    ).toBe('SOURCE_TOO_LARGE');
    const bomb = createRepository();
    let tree = bomb.writeTree({ a: 'x' });
    for (let depth = 0; depth < 12; depth += 1) {
      tree = bomb.tree([...'0123456789'].map((name) => ['40000', name, tree] as const));
    }
    const commit = bomb.commit(tree);
    const request = createRequest(commit);
    const opened = await openClone(bomb.folder, request);
    expect(await findCode(writeTree(opened, commit, join(request.work, 'tree')))).toBe('SOURCE_TOO_LARGE');
  });

  test('has a time limit, and its redirects are not followed', async () => {
    const from = createRepository();
    const commit = from.writeCommit({ a: 'a' });
    server.answer = () => true;
    expect(await findCode(fetchAndWrite(from, commit, { ...LIMITS, ms: 300 }))).toBe('SOURCE_TOO_LARGE');
    const before = server.requests.length;
    server.answer = (_request, response) => {
      response.writeHead(302, { location: `${server.formatUrl(from)}/elsewhere` }).end();
      return true;
    };
    expect(await findCode(fetchAndWrite(from, commit))).toBe('NOT_FULLY_CHECKED');
    expect(server.requests.slice(before).filter((line) => line.includes('elsewhere'))).toEqual([]);
    server.answer = undefined;
  });

  test('gets no credentials or settings of this machine, and starts no helper', async () => {
    const from = createRepository();
    const commit = from.writeCommit({ a: 'a' });
    const home = join(root, 'home');
    mkdirSync(home);
    writeFileSync(join(home, '.gitconfig'), `[credential]\n\thelper = "!touch ${join(root, 'helped')}"\n`);
    writeFileSync(join(home, '.netrc'), 'machine localhost login me password word\n');
    let sentAuthorization: string | undefined = '';
    server.answer = (request, response) => {
      sentAuthorization = request.headers.authorization;
      response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
      return true;
    };
    const request = createRequest(commit);
    const env = { ...request.env, HOME: home, GIT_ASKPASS: '/bin/true', GIT_CONFIG_COUNT: '1' };
    const fetched = fetchCommit({ url: server.formatUrl(from), resolved: undefined }, { ...request, env });
    expect(await findCode(fetched)).toBe('NOT_FULLY_CHECKED');
    expect([sentAuthorization, existsSync(join(root, 'helped'))]).toEqual([undefined, false]);
    server.answer = undefined;
  });
});

test('a hostile text becomes one line of printable characters', () => {
  expect(printable('\u001b[2J\nGREEN\u202e')).toBe('\\u{1b}[2J\\u{a}GREEN\\u{202e}');
  expect(printable('a'.repeat(300))).toHaveLength(201);
});

describe('for a commit from elsewhere, the repository that the config names', () => {
  const ask = (url: string, commit: string) =>
    askNamedRepository(url, createRequest(commit), async () => ({ url, resolved: undefined }));

  test('is reported to have the commit or to lack it', async () => {
    const namedRepository = createRepository();
    const commit = namedRepository.writeCommit({ 'app.ts': 'here' });
    const url = server.formatUrl(namedRepository);
    expect(await ask(url, commit)).toMatch(/, has the commit on a branch or a tag$/);
    const foreignCommit = createRepository().writeCommit({ 'app.ts': 'elsewhere' });
    expect(await ask(url, foreignCommit)).toMatch(/, LACKS the commit: no branch and no tag contains it/);
  });

  test('is not asked if an audit would refuse its address; the report says this, or that it does not answer', async () => {
    const namedRepository = createRepository();
    const commit = namedRepository.writeCommit({ 'app.ts': 'here' });
    const before = server.requests.length;
    const text = await askNamedRepository(server.formatUrl(namedRepository), createRequest(commit));
    expect(text).toMatch(/^It is not known whether .* has the commit: .* names a port/);
    expect(server.requests.length).toBe(before);
    expect(await ask('https://localhost:9/a', commit)).toMatch(
      /^It is not known whether .* has the commit: /,
    );
  });
});
