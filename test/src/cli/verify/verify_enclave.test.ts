/** Tests the exit codes, standard output and standard error, which monitors read. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findFreePort } from '../../../../scripts/check/bench/ports.ts';
import { main as releaseCommand } from '../../../../src/cli/releases/release.ts';
import { main } from '../../../../src/cli/verify/verify_enclave.ts';
import { realCases, WEATHER_IMAGE } from '../../library/attestation/cases/real.ts';
import { FakeEnclave } from '../../library/client/fake_enclave.ts';
import { FIXTURE_APPS, startServer } from '../../server/support.ts';
import { readOptions, signOptions, writeRelease } from '../releases/release_fixture.ts';
import { call, spawnScript } from '../run.ts';

const VECTORS = fileURLToPath(new URL('../../../vectors/', import.meta.url));
const WEATHER = join(VECTORS, 'nautilus-weather.hex');
const AT = '2025-04-15T02:25:23.696Z';

interface Result {
  exit: number | null;
  out: string;
  err: string;
}

async function verify(...args: string[]): Promise<Result> {
  const { status, stdout, stderr } = await call(main, args);
  return { exit: status, out: stdout, err: stderr };
}

let dir: string;
let enclave: FakeEnclave;
const file = (name: string) => join(dir, name);

function pcrs(pcr0: string, pcr1: string, pcr2: string): string {
  return `${pcr0} PCR0\n${pcr1} PCR1\n${pcr2} PCR2\n`;
}

beforeAll(async () => {
  enclave = await FakeEnclave.start();
  dir = mkdtempSync(join(tmpdir(), 'verify-'));
  const hex = readFileSync(WEATHER, 'utf8').trim();
  writeFileSync(file('weather.pcrs'), pcrs(WEATHER_IMAGE.pcr0, WEATHER_IMAGE.pcr1, WEATHER_IMAGE.pcr2));
  writeFileSync(file('zero.pcrs'), pcrs('0'.repeat(96), '0'.repeat(96), '0'.repeat(96)));
  writeFileSync(file('dev.pcrs'), enclave.nsm.pcrsFile());
  writeFileSync(file('dev-root.pem'), enclave.nsm.rootPem());
  writeFileSync(file('weather.bin'), Buffer.from(hex, 'hex'));
  writeFileSync(file('weather.json'), JSON.stringify({ attestation: hex }));
  writeFileSync(file('other.json'), JSON.stringify({ document: hex }));
  writeFileSync(file('garbage'), 'garbage');
  writeFileSync(file('empty'), '');
});
afterAll(() => {
  enclave.close();
  rmSync(dir, { recursive: true });
});

describe('a release in place of registers', () => {
  test('is trusted if its signer vouches for the image, and the report says so', async () => {
    const release = await writeRelease(dir, WEATHER_IMAGE);
    const { exit, out } = await verify('--file', WEATHER, ...release, '--at', AT);
    expect([exit, out]).toEqual([0, expect.stringContaining('The signer of the release v1.2.0 states that')]);
    const { out: json } = await verify('--file', WEATHER, ...release, '--at', AT, '--json');
    expect(JSON.parse(json)).toMatchObject({ verdict: 'trusted', release: { version: 'v1.2.0' } });
  });

  test('is refused for another image, and is a usage error with --pcrs', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'verify-release-'));
    const release = await writeRelease(folder);
    expect((await verify('--file', WEATHER, ...release, '--at', AT)).exit).toBe(1);
    expect((await verify('--file', WEATHER, ...release, '--pcrs', file('weather.pcrs'))).exit).toBe(2);
    expect((await verify('--file', WEATHER, '--release', join(folder, 'out/release.json'))).exit).toBe(2);
    // Without --release, nothing would be verified.
    const ignored = await verify('--file', WEATHER, '--pcrs', file('weather.pcrs'), ...readOptions(folder));
    expect([ignored.exit, ignored.err]).toEqual([2, expect.stringContaining('is for --release <file>')]);
    rmSync(folder, { recursive: true });
  });

  test('is refused once it is withdrawn, and an invalid signer file gives no verdict', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'verify-release-'));
    const release = await writeRelease(folder, WEATHER_IMAGE);
    await call(releaseCommand, ['withdraw', 'v1.2.0', ...signOptions(folder)]);
    const withdrawn = await verify('--file', WEATHER, ...release, '--at', AT);
    expect([withdrawn.exit, withdrawn.err]).toEqual([
      1,
      expect.stringMatching(/^REFUSED \(RELEASE_WITHDRAWN\)/),
    ]);
    const identity = { issuer: 'x', repositoryId: '1', ownerId: '1', workflow: 'x' };
    writeFileSync(join(folder, 'signer.json'), JSON.stringify({ identity, trustedRoot: 'signer.json' }));
    expect((await verify('--file', WEATHER, ...release, '--at', AT)).exit).toBe(2);
    rmSync(folder, { recursive: true });
  });
});

describe('verify_enclave ends with 0, trusted, for', () => {
  test.each(['binary', 'hexadecimal', 'JSON'])('a saved real document, %s', async (form) => {
    const document = { binary: file('weather.bin'), hexadecimal: WEATHER, JSON: file('weather.json') }[form];
    const { exit, out } = await verify(
      '--file',
      document as string,
      '--pcrs',
      file('weather.pcrs'),
      '--at',
      AT,
    );
    expect(exit).toBe(0);
    expect(out).toContain('module    i-06e4b98c6549ff803-enc0196373b195fb723');
    expect(out).toContain('641a0321a3e244efe456463195d606317ed7cdcc3c1756e09893f3c68f79bb5b');
    expect(out.match(/PCR[0-2] .* matches/g)).toHaveLength(3);
    expect(out).toMatch(/TRUSTED, until 2025-04-15T05:17:50\.000Z\n$/);
  });

  test('a time in milliseconds and the expected key', async () => {
    const key = realCases[0]?.policy.publicKey as string;
    const at = String(Date.parse(AT));
    const args = ['--file', WEATHER, '--pcrs', file('weather.pcrs'), '--at', at, '--pk', key, '--json'];
    const { exit, out } = await verify(...args);
    expect(exit).toBe(0);
    const report = JSON.parse(out);
    expect(report).toMatchObject({
      verdict: 'trusted',
      code: null,
      at: AT,
      validUntil: '2025-04-15T05:17:50.000Z',
      document: { publicKey: key, moduleId: 'i-06e4b98c6549ff803-enc0196373b195fb723' },
      registration: { accepted: true, abort: null, until: '2025-04-15T05:17:50.000Z' },
    });
    expect(report.document.chain).toHaveLength(5);
    expect(report.document.registers[0]).toEqual({
      index: 0,
      expected: WEATHER_IMAGE.pcr0,
      found: WEATHER_IMAGE.pcr0,
    });
  });

  test('a running enclave under a development root, asked with a fresh nonce', async () => {
    const { exit, out } = await verify(
      enclave.url,
      '--pcrs',
      file('dev.pcrs'),
      '--root',
      file('dev-root.pem'),
    );
    expect(out).toMatch(/^ {2}TRUSTED under a development root, which proves nothing, until /m);
    expect(exit).toBe(0);
    expect(enclave.requests.at(-1)).toMatch(/^\/get_attestation\?nonce=[0-9a-f]{64}$/);
    expect(out).not.toContain('sealing key');
  });

  test('an enclave whose user data describes its server', async () => {
    const { url } = await startServer({ apps: FIXTURE_APPS, env: { APP: 'dice' }, nsm: enclave.nsm });
    const trust = ['--pcrs', file('dev.pcrs'), '--root', file('dev-root.pem')];
    const { out } = await verify(url, ...trust);
    expect(out).toMatch(/^ {4}application dice, version development\n {4}sealing key [0-9a-f]{64}$/m);
    const { document } = JSON.parse((await verify(url, ...trust, '--json')).out);
    expect(document.enclave).toMatchObject({ application: 'dice', version: 'development' });
    expect(document.userData).toContain(document.enclave.sealingKey);
  });
});

test('verify_enclave runs as a process', async () => {
  const args = ['--file', WEATHER, '--pcrs', file('weather.pcrs'), '--at'];
  const [trusted, expired] = await Promise.all(
    [AT, '2026-01-01T00:00:00Z'].map((at) => spawnScript('verify/verify_enclave.ts', [...args, at])),
  );
  expect(trusted).toMatchObject({ status: 0, stdout: expect.stringMatching(/^ {2}TRUSTED/m), stderr: '' });
  expect(expired).toMatchObject({
    status: 1,
    stdout: expect.stringMatching(/^ {2}REFUSED \(CERTIFICATE_EXPIRED/m),
  });
});

test('a second URL is an unexpected argument', async () => {
  const { err } = await verify('http://127.0.0.1:1', 'http://127.0.0.1:2', '--pcrs', file('weather.pcrs'));
  expect(err).toMatch(
    /^NO VERDICT: unexpected argument: http:\/\/127\.0\.0\.1:2\. See sui-enclave verify --help\n$/,
  );
});

test('--help goes to standard output, with exit code 0', async () => {
  const { exit, out, err } = await verify('--help');
  expect(out).toMatch(/^usage: sui-enclave verify <url>/);
  expect(err).toBe('');
  expect(exit).toBe(0);
});

describe('verify_enclave ends with 1, refused, for', () => {
  test('an enclave under a development root, with --require-hardware', async () => {
    const trust = ['--pcrs', file('dev.pcrs'), '--root', file('dev-root.pem')];
    const { exit, out } = await verify(enclave.url, ...trust, '--require-hardware');
    expect(out).toMatch(
      /^ {2}REFUSED \(DEVELOPMENT_ROOT\)\n {2}the chain ends at [0-9a-f]{64}, a development root/m,
    );
    expect(exit).toBe(1);
    const [trusted, refused] = await Promise.all([
      verify(enclave.url, ...trust, '--json'),
      verify(enclave.url, ...trust, '--json', '--require-hardware'),
    ]);
    expect(JSON.parse(trusted.out)).toMatchObject({ verdict: 'trusted', awsRoot: false });
    expect(JSON.parse(refused.out)).toMatchObject({
      verdict: 'refused',
      code: 'DEVELOPMENT_ROOT',
      awsRoot: null,
    });
    const real = ['--file', WEATHER, '--pcrs', file('weather.pcrs'), '--at', AT];
    expect(await verify(...real, '--require-hardware')).toMatchObject({ exit: 0 });
  });

  test('a running enclave under a root that no option names', async () => {
    const { exit, out } = await verify(enclave.url, '--pcrs', file('dev.pcrs'));
    expect(exit).toBe(1);
    expect(out).toContain('REFUSED (CHAIN_ROOT)');
    expect(out).toContain('--root');
    expect(out).toMatch(/Registration on Sui\n.*does not end at AWS's root/);
  });

  test('a running enclave that answers with an old document', async () => {
    const attestation = await enclave.document(null);
    enclave.lie = () => ({ status: 200, body: JSON.stringify({ attestation }) });
    const { exit, out } = await verify(
      enclave.url,
      '--pcrs',
      file('dev.pcrs'),
      '--root',
      file('dev-root.pem'),
    );
    enclave.lie = (_, reply) => reply;
    expect(exit).toBe(1);
    expect(out).toContain('REFUSED (POLICY_NONCE)');
  });

  test.each([
    ['an expired document', 'CERTIFICATE_EXPIRED', () => ['--file', WEATHER, '--pcrs', file('weather.pcrs')]],
    ['another image', 'POLICY_PCRS', () => ['--file', WEATHER, '--pcrs', file('dev.pcrs'), '--at', AT]],
    [
      'another key',
      'POLICY_PUBLIC_KEY',
      () => ['--file', WEATHER, '--pcrs', file('weather.pcrs'), '--at', AT, '--pk', '00'],
    ],
    [
      'a debug enclave',
      'POLICY_DEBUG',
      () => [
        '--file',
        `${VECTORS}evervault-debug.hex`,
        '--pcrs',
        file('weather.pcrs'),
        '--at',
        '2023-09-18T15:03:31Z',
      ],
    ],
    [
      'an all-zero policy',
      'POLICY_ZERO_IMAGE',
      () => [
        '--file',
        `${VECTORS}evervault-debug.hex`,
        '--pcrs',
        file('zero.pcrs'),
        '--at',
        '2023-09-18T15:03:31Z',
      ],
    ],
    [
      'an unsigned document',
      'COSE_PROTECTED_HEADER',
      () => ['--file', `${VECTORS}qemu-unsigned.hex`, '--pcrs', file('weather.pcrs')],
    ],
    [
      'a malformed document',
      'CBOR_MALFORMED',
      () => ['--file', file('garbage'), '--pcrs', file('weather.pcrs')],
    ],
    ['an empty document', 'DOCUMENT_SIZE', () => ['--file', file('empty'), '--pcrs', file('weather.pcrs')]],
    [
      'JSON without a document',
      'CLIENT_MALFORMED_ANSWER',
      () => ['--file', file('other.json'), '--pcrs', file('weather.pcrs')],
    ],
  ])('%s: %s', async (_, code, args) => {
    const [text, json] = await Promise.all([verify(...args()), verify(...args(), '--json')]);
    expect(text.exit).toBe(1);
    expect(text.out + text.err).toContain(`REFUSED (${code})`);
    expect(json.exit).toBe(1);
    expect(JSON.parse(json.out)).toMatchObject({ verdict: 'refused', code });
  });
});

describe('verify_enclave ends with 2, no verdict, for', () => {
  test.each([
    ['an empty command line', 'USAGE', () => []],
    ['no registers', 'USAGE', () => ['--file', WEATHER]],
    [
      'a URL and a file',
      'USAGE',
      () => ['http://127.0.0.1:1', '--file', WEATHER, '--pcrs', file('weather.pcrs')],
    ],
    ['two URLs', 'USAGE', () => ['http://127.0.0.1:1', 'http://127.0.0.1:2', '--pcrs', file('weather.pcrs')]],
    ['an unknown option', 'USAGE', () => ['--file', WEATHER, '--pcrs', file('weather.pcrs'), '--debug']],
    [
      'an invalid time',
      'USAGE',
      () => ['--file', WEATHER, '--pcrs', file('weather.pcrs'), '--at', 'yesterday'],
    ],
    [
      'a key that is not hexadecimal',
      'USAGE',
      () => ['--file', WEATHER, '--pcrs', file('weather.pcrs'), '--pk', 'xyz'],
    ],
    ['a missing document', 'UNREADABLE_FILE', () => ['--file', file('none'), '--pcrs', file('weather.pcrs')]],
    ['a missing PCR file', 'UNREADABLE_FILE', () => ['--file', WEATHER, '--pcrs', file('none')]],
    ['invalid registers', 'POLICY_INVALID', () => ['--file', WEATHER, '--pcrs', file('garbage')]],
    [
      'an invalid root',
      'POLICY_INVALID',
      () => ['--file', WEATHER, '--pcrs', file('weather.pcrs'), '--root', file('garbage')],
    ],
    ['an invalid URL', 'USAGE', () => ['enclave', '--pcrs', file('weather.pcrs')]],
    [
      'an unreachable enclave',
      'CLIENT_UNREACHABLE',
      () => ['http://127.0.0.1:1', '--pcrs', file('weather.pcrs')],
    ],
  ])('%s: %s', async (_, code, args) => {
    const [text, json] = await Promise.all([verify(...args()), verify(...args(), '--json')]);
    expect(text.exit).toBe(2);
    expect(text.out).toBe('');
    expect(text.err).toMatch(/^NO VERDICT: /);
    expect(json.exit).toBe(2);
    expect(JSON.parse(json.out)).toMatchObject({ verdict: 'none', code });
  });

  test('an enclave that does not answer, with its URL and the cause', async () => {
    const url = `http://127.0.0.1:${await findFreePort()}`;
    const { err } = await verify(url, '--pcrs', file('dev.pcrs'));
    expect(err).toContain(`${url}/get_attestation did not answer: the connection failed (ECONNREFUSED)`);
  });

  test('an enclave that answers with an error', async () => {
    enclave.lie = () => ({ status: 503, body: '{"error":"no NSM","code":"NSM"}' });
    const { exit, err } = await verify(enclave.url, '--pcrs', file('dev.pcrs'));
    enclave.lie = (_, reply) => reply;
    expect(exit).toBe(2);
    expect(err).toContain('status 503 (NSM)');
  });
});

describe('--print-root --compare', () => {
  const compare = (name: string, ...args: string[]) =>
    verify('--print-root', '--compare', file(name), ...args);

  beforeAll(async () => {
    const { out: pem } = await verify('--print-root');
    const der = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64');
    writeFileSync(file('root.pem'), pem.replaceAll('\n', '\r\n'));
    writeFileSync(file('root.der'), der);
    const changed = Uint8Array.from(der);
    changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
    writeFileSync(file('changed.der'), changed);
    writeFileSync(file('two.pem'), `${pem}\n${enclave.nsm.rootPem()}`);
  });

  test.each(['root.pem', 'root.der'])('finds the same root in %s, with its fingerprint', async (name) => {
    const { exit, out } = await compare(name);
    expect(exit).toBe(0);
    expect(out).toContain('The same certificate.');
    // AWS publishes the root with this digest, and the source of Sui's verifier contains it.
    const sha256 = '641a0321a3e244efe456463195d606317ed7cdcc3c1756e09893f3c68f79bb5b';
    expect(out.match(new RegExp(sha256, 'g'))).toHaveLength(2);
  });

  test.each(['dev-root.pem', 'changed.der'])('finds another root in %s', async (name) => {
    const { exit, out } = await compare(name, '--json');
    expect(exit).toBe(1);
    const { same, pinned, found: fileFingerprint } = JSON.parse(out);
    expect(same).toBe(false);
    expect(fileFingerprint).not.toBe(pinned);
  });

  test.each([
    ['garbage', 'contains no certificate'],
    ['empty', 'contains no certificate'],
    ['two.pem', 'contains several certificates'],
    ['nowhere', 'nowhere'],
  ])('gives no verdict on %s', async (name, message) => {
    const { exit, err } = await compare(name);
    expect(exit).toBe(2);
    expect(err).toContain(message);
  });

  test('is refused without --print-root', async () => {
    expect(await verify('--compare', file('root.pem'))).toMatchObject({
      exit: 2,
      err: expect.stringContaining('--compare is for --print-root only'),
    });
  });
});
