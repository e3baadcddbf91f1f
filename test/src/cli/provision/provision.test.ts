/** Tests of `sui-enclave provision`: hosts that interfere, exit codes, and files. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findFreePort } from '../../../../scripts/check/bench/ports.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { type ForwardedAnswer, Host } from '../../library/client/host.ts';
import { newProvisioner, nsm, REFUSED, startVault, VALUES } from '../../server/provisioner.ts';
import type { TestServer } from '../../server/support.ts';
import { callScript, type Result } from '../run.ts';

const me = newProvisioner();
const stranger = newProvisioner();
let dir: string;
const file = (name: string) => join(dir, name);

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'provision-'));
  const write = (name: string, content: string) => writeFileSync(file(name), content, { mode: 0o600 });
  write('secrets.json', JSON.stringify(VALUES));
  write('refused.json', JSON.stringify(REFUSED));
  write('me.pem', me.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  write('stranger.pem', stranger.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  write('dev.pcrs', nsm.pcrsFile());
  write(
    'other.pcrs',
    nsm.pcrsFile().replace(/^./, (digit) => (digit === '0' ? '1' : '0')),
  );
  write('root.pem', nsm.rootPem());
});
afterAll(() => rmSync(dir, { recursive: true }));

async function provision(url: string, args: readonly string[] = [], stdin = ''): Promise<Result> {
  const outcome = await callScript(
    'provision/provision.ts',
    [url, '--pcrs', file('dev.pcrs'), '--root', file('root.pem'), '--key', file('me.pem'), ...args],
    { input: stdin },
  );
  expect(outcome.stdout + outcome.stderr).not.toMatch(/hunter2|wrong-wrong/);
  return outcome;
}

const withFile = (url: string, ...args: string[]) =>
  provision(url, ['--secrets', file('secrets.json'), ...args]);

/** Starts an enclave behind a host. */
async function start(): Promise<{ server: TestServer; host: Host }> {
  const server = await startVault({ provisioners: [me.hex] });
  return { server, host: await Host.start(server.url) };
}

const isReady = async ({ get }: TestServer) => (await get('/readyz')).status === 200;
const editSealed = (body: Buffer, edit: (sealed: Record<string, string>) => object): Buffer => {
  const { sealed } = JSON.parse(body.toString());
  return Buffer.from(JSON.stringify({ sealed: { ...sealed, ...edit(sealed) } }));
};
const flipBit = (bytes: Buffer, at = bytes.length - 1): Buffer => {
  const changed = Buffer.from(bytes);
  changed[at] = (changed[at] as number) ^ 1;
  return changed;
};
const base64 = (text: string | undefined) => Buffer.from(text ?? '', 'base64');

describe('provision', () => {
  test('sends an attested enclave its secrets, which the host can not read', async () => {
    const { server, host } = await start();
    expect(await withFile(host.url)).toEqual({
      status: 0,
      stdout: `Trusts the certificates of ${file('root.pem')} in place of AWS's root.\nThe enclave has its secrets: VAULT_KEY, OTHER\n`,
      stderr: '',
    });
    expect(await isReady(server)).toBe(true);
    expect(await (await server.get('/length')).json()).toEqual({ length: VALUES.VAULT_KEY.length });
    expect(host.paths).toEqual(['/get_attestation', '/readyz', '/secrets']);
    expect(host.saw(VALUES.VAULT_KEY)).toBe(false);
    // The record does show other parts of the message.
    expect(host.saw('ciphertext')).toBe(true);
  });

  test('sends nothing and confirms nothing in a second run: exit 5', async () => {
    const { host } = await start();
    await withFile(host.url);
    const { status, stdout } = await withFile(host.url, '--json');
    expect([status, JSON.parse(stdout)]).toEqual([5, { status: 'unconfirmed', names: [] }]);
    expect(host.paths.filter((path) => path === '/secrets')).toHaveLength(1);
  });

  test('does not report success if the host forges the answer of /readyz for an enclave without secrets', async () => {
    const { server, host } = await start();
    host.changeAnswer = (answer) =>
      answer.path === '/readyz' ? { ...answer, status: 200, body: Buffer.from('{"ready":true}') } : answer;
    const { status, stdout } = await withFile(host.url);
    expect([status, stdout]).toEqual([5, expect.stringMatching(/^Unconfirmed: .*A host can forge/m)]);
    expect(await isReady(server)).toBe(false);
  });

  test('reads the secrets from standard input, and accepts one of several images', async () => {
    const { server } = await start();
    const args = ['--secrets', '-', '--pcrs', file('other.pcrs'), '--json'];
    const { status, stdout } = await provision(server.url, args, JSON.stringify(VALUES));
    expect([status, JSON.parse(stdout)]).toEqual([
      0,
      { status: 'provisioned', names: ['VAULT_KEY', 'OTHER'] },
    ]);
  });
});

describe('a host', () => {
  const cases: [name: string, code: string, lie: (host: Host) => void][] = [
    [
      'a byte of the ciphertext',
      'SECRETS_NOT_TAKEN SECRETS_SIGNATURE',
      (host) => {
        host.changeRequest = (_, body) =>
          editSealed(body, ({ ciphertext }) => ({
            ciphertext: flipBit(base64(ciphertext)).toString('base64'),
          }));
      },
    ],
    [
      'the length: truncated',
      'SECRETS_NOT_TAKEN SECRETS_SIGNATURE',
      (host) => {
        host.changeRequest = (_, body) =>
          editSealed(body, ({ ciphertext }) => ({
            ciphertext: base64(ciphertext).subarray(16).toString('base64'),
          }));
      },
    ],
    [
      'the order of blocks',
      'SECRETS_NOT_TAKEN SECRETS_SIGNATURE',
      (host) => {
        host.changeRequest = (_, body) =>
          editSealed(body, ({ ciphertext }) => {
            const bytes = base64(ciphertext);
            const swapped = Buffer.concat([
              bytes.subarray(16, 32),
              bytes.subarray(0, 16),
              bytes.subarray(32),
            ]);
            return { ciphertext: swapped.toString('base64') };
          });
      },
    ],
    [
      'the length: over-long',
      'SECRETS_NOT_TAKEN SEALED_TOO_LARGE',
      (host) => {
        host.changeRequest = (_, body) => editSealed(body, () => ({ ciphertext: 'A'.repeat(64_100) }));
      },
    ],
    [
      'half of the message',
      'SECRETS_NOT_TAKEN MALFORMED_JSON',
      (host) => {
        host.changeRequest = (_, body) => body.subarray(0, body.length / 2);
      },
    ],
    [
      'the encapsulated key',
      'SECRETS_NOT_TAKEN SECRETS_SIGNATURE',
      (host) => {
        host.changeRequest = (_, body) => editSealed(body, () => ({ enc: '11'.repeat(32) }));
      },
    ],
    [
      'the signature',
      'SECRETS_NOT_TAKEN SECRETS_SIGNATURE',
      (host) => {
        host.changeRequest = (_, body) => editSealed(body, () => ({ signature: '00'.repeat(64) }));
      },
    ],
    [
      'the provisioner',
      'SECRETS_NOT_TAKEN SECRETS_PROVISIONER',
      (host) => {
        host.changeRequest = (_, body) => editSealed(body, () => ({ provisioner: stranger.hex }));
      },
    ],
    [
      'the signature, by removing it',
      'SECRETS_NOT_TAKEN SECRETS_PROVISIONER',
      (host) => {
        host.changeRequest = (_, body) =>
          editSealed(body, () => ({ provisioner: undefined, signature: undefined }));
      },
    ],
    [
      'the recipient',
      'SECRETS_NOT_TAKEN SEALED_KEY_UNKNOWN',
      (host) => {
        host.changeRequest = (_, body) => editSealed(body, () => ({ key: '00'.repeat(32) }));
      },
    ],
  ];

  test('that alters a part of the message prevents the delivery, which a code reports', async () => {
    const { server, host } = await start();
    for (const [caseName, code, lie] of cases) {
      lie(host);
      const { status, stdout } = await withFile(host.url, '--json');
      const { code: errorCode, serverCode } = JSON.parse(stdout);
      expect([status, `${errorCode} ${serverCode}`], caseName).toEqual([1, code]);
      expect(await isReady(server), caseName).toBe(false);
    }
    // An unchanged message is accepted.
    host.changeRequest = (_, body) => body;
    expect((await withFile(host.url)).status).toBe(0);
    expect(await isReady(server)).toBe(true);
    expect(host.saw(VALUES.VAULT_KEY)).toBe(false);
  });

  const onAnswer = (host: Host, path: string, change: (answer: ForwardedAnswer) => ForwardedAnswer) => {
    host.changeAnswer = (answer) => (answer.path === path ? change(answer) : answer);
  };

  test.each<[string, string, (answer: ForwardedAnswer) => ForwardedAnswer]>([
    ['a byte', 'SEALED_ALTERED', (answer) => ({ ...answer, body: flipBit(answer.body) })],
    ['the nonce', 'SEALED_ALTERED', (answer) => ({ ...answer, body: flipBit(answer.body, 5) })],
    ['the version', 'SEALED_MALFORMED', (answer) => ({ ...answer, body: flipBit(answer.body, 0) })],
    ['the length', 'SEALED_ALTERED', (answer) => ({ ...answer, body: answer.body.subarray(0, -1) })],
    ['all', 'SEALED_MALFORMED', (answer) => ({ ...answer, body: Buffer.alloc(0) })],
  ])('that alters %s of the receipt causes SECRETS_RECEIPT', async (_case, code, change) => {
    const { host } = await start();
    onAnswer(host, '/secrets', change);
    const { status, stdout } = await withFile(host.url, '--json');
    expect([status, JSON.parse(stdout)]).toMatchObject([1, { code: 'SECRETS_RECEIPT', serverCode: code }]);
  });

  test.each<[string, Partial<ForwardedAnswer>]>([
    [
      'plain success',
      { body: Buffer.from('{"names":["VAULT_KEY","OTHER"],"hmacs":[]}'), type: 'application/json' },
    ],
    ['an error of a proxy', { status: 502, body: Buffer.from('<html>'), type: 'text/html' }],
  ])('that replaces the receipt by %s causes SECRETS_NOT_TAKEN', async (_case, forged) => {
    const { host } = await start();
    onAnswer(host, '/secrets', (answer) => ({ ...answer, ...forged }));
    const { status, stderr } = await withFile(host.url);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^SECRETS_NOT_TAKEN: .*not sealed, so it may not come from the enclave/);
  });

  test('that replaces the receipt by the receipt of another run causes SECRETS_RECEIPT', async () => {
    const { server, host } = await start();
    let recorded: Buffer | undefined;
    onAnswer(host, '/secrets', (answer) => {
      recorded ??= answer.body;
      return { ...answer, body: recorded };
    });
    expect((await withFile(host.url)).status).toBe(0);
    const next = await startVault({ provisioners: [me.hex] });
    host.target = next.url;
    const { status, stdout } = await withFile(host.url, '--json');
    expect([status, JSON.parse(stdout)]).toMatchObject([
      1,
      { code: 'SECRETS_RECEIPT', serverCode: 'SEALED_ALTERED' },
    ]);
    expect(await isReady(server)).toBe(true);
  });
});

describe('a replay by the host is refused:', () => {
  test('a document of an earlier request, which has an old nonce', async () => {
    const { host } = await start();
    let old: Buffer | undefined;
    host.changeAnswer = (answer) => {
      if (answer.path !== '/get_attestation') return answer;
      old ??= answer.body;
      return { ...answer, body: old };
    };
    expect((await withFile(host.url)).status).toBe(0);
    const { status, stdout } = await withFile(host.url, '--json');
    expect([status, JSON.parse(stdout)]).toMatchObject([3, { code: 'POLICY_NONCE' }]);
  });

  test('the attestation of another start, whose sealed secrets this start refuses', async () => {
    const { server, host } = await start();
    const otherVault = await startVault({ provisioners: [me.hex] });
    host.changeRequest = (path, body) => {
      if (path === '/secrets') host.target = server.url;
      return body;
    };
    host.target = otherVault.url;
    const { status, stdout } = await withFile(host.url, '--json');
    expect([status, JSON.parse(stdout)]).toMatchObject([
      1,
      { code: 'SECRETS_NOT_TAKEN', serverCode: 'SEALED_KEY_UNKNOWN' },
    ]);
    expect([await isReady(server), await isReady(otherVault)]).toEqual([false, false]);
  });

  test('a recorded message, to the same enclave and to its next start', async () => {
    const { server, host } = await start();
    let recorded: Buffer = Buffer.alloc(0);
    host.changeRequest = (_, body) => {
      recorded = body;
      return body;
    };
    await withFile(host.url);
    const replay = async ({ post }: TestServer) =>
      ((await (await post('/secrets', recorded.toString())).json()) as { code: string }).code;
    expect(await replay(server)).toBe('SECRETS_FINAL');
    expect(await replay(await startVault({ provisioners: [me.hex] }))).toBe('SEALED_KEY_UNKNOWN');
  });
});

describe('provision refuses', () => {
  test('an enclave with other registers, even if it has its secrets: exit 3', async () => {
    const { server } = await start();
    const args = [
      '--secrets',
      file('secrets.json'),
      '--root',
      file('root.pem'),
      '--pcrs',
      file('other.pcrs'),
    ];
    const run = () => callScript('provision/provision.ts', [server.url, ...args, '--key', file('me.pem')]);
    expect(await run()).toMatchObject({ status: 3, stderr: expect.stringMatching(/^POLICY_PCRS/) });
    await withFile(server.url);
    expect(await run()).toMatchObject({ status: 3, stderr: expect.stringMatching(/^POLICY_PCRS/) });
  });

  test("an enclave under a root other than AWS's, without --root: exit 3", async () => {
    const { server } = await start();
    const args = ['--secrets', file('secrets.json'), '--pcrs', file('dev.pcrs'), '--key', file('me.pem')];
    const { status, stderr } = await callScript('provision/provision.ts', [server.url, ...args]);
    expect([status, stderr]).toEqual([3, expect.stringMatching(/^CHAIN_ROOT/)]);
  });

  test('a stranger, and secrets that the application refuses: exit 1', async () => {
    const { server } = await start();
    expect(await withFile(server.url, '--key', file('stranger.pem'))).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^SECRETS_NOT_TAKEN: .*SECRETS_PROVISIONER.*by --key\n$/),
    });
    expect(await provision(server.url, ['--secrets', file('refused.json')])).toMatchObject({
      status: 1,
      stderr:
        'SECRETS_REFUSED: the enclave does not accept the secrets (SECRETS_REFUSED): VAULT_KEY has another fingerprint\n',
    });
    expect((await withFile(server.url)).status).toBe(0);
  });

  test('an address where nothing answers: exit 4', async () => {
    const url = `http://127.0.0.1:${await findFreePort()}`;
    const { status, stderr } = await withFile(url);
    expect([status, stderr]).toEqual([
      4,
      `CLIENT_UNREACHABLE: the enclave at ${url}/get_attestation did not answer: the connection failed (ECONNREFUSED)\n`,
    ]);
  });

  test.each<[string, string, RegExp]>([
    ['not JSON', 'hunter2', /^SECRETS_FILE: the secrets are not JSON\n/],
    ['a list', '["hunter2"]', /^SECRETS_FILE: the secrets must be one JSON object/],
    ['a number', '{"A":5}', /^SECRETS_FILE/],
    ['empty', '{"A":""}', /^SECRETS_FILE/],
    ['named in lower case', '{"hunter2":"x"}', /^SECRETS_FILE/],
    ['missing', '{}', /^SECRETS_FILE/],
  ])('secrets that are %s: exit 2', async (_case, content, message) => {
    const { status, stderr } = await provision('http://127.0.0.1:9', ['--secrets', '-'], content);
    expect(status).toBe(2);
    expect(stderr).toMatch(message);
  });

  test('files that are open to others, missing files, and contents in place of paths: exit 2', async () => {
    const open = file('open.json');
    writeFileSync(open, JSON.stringify(VALUES));
    for (const mode of [0o640, 0o604, 0o660]) {
      chmodSync(open, mode);
      const { status, stderr } = await provision('http://127.0.0.1:9', ['--secrets', open]);
      expect([status, stderr]).toEqual([
        2,
        `SECRETS_FILE: ${open} is open to other users: chmod 600 ${open}\n`,
      ]);
    }
    chmodSync(open, 0o644);
    const url = 'http://127.0.0.1:9';
    expect((await withFile(url, '--key', open)).stderr).toMatch(/^PROVISIONER_KEY: .*open to other users/);
    expect((await withFile(url, '--key', file('secrets.json'))).stderr).toMatch(/must have an ed25519/);
    expect((await withFile(url, '--key', file('none'))).stderr).toMatch(/can't be read \(ENOENT\)/);
    for (const args of [
      ['--secrets', JSON.stringify(VALUES)],
      ['--secrets', 'x', '--key', 'ab'.repeat(32)],
    ]) {
      const { status, stderr } = await provision(url, args);
      expect(status).toBe(2);
      expect(stderr).not.toMatch(/abab/);
    }
  });

  test.each([
    [[], /missing: <url>/],
    [['http://127.0.0.1:9'], /--pcrs is required/],
    [['http://127.0.0.1:9', '--pcrs', 'x'], /--secrets is required/],
    [['http://127.0.0.1:9', '--pcrs', 'x', '--secrets', '-', '--interval', '5'], /is for --watch only/],
    [['--print-key'], /needs --key/],
    [['http://127.0.0.1:9', '--pcrs', '/nonexistent', '--secrets', '-'], /\/nonexistent can't be read/],
  ])('the command line %j: exit 2', async (args, message) => {
    const { status, stderr } = await callScript('provision/provision.ts', args, { input: '{"A":"b"}' });
    expect(status).toBe(2);
    expect(stderr).toMatch(message);
  });

  test('an enclave under a root that --root does not name: exit 3', async () => {
    const server = await startVault({ provisioners: [me.hex], nsm: new EmulatedNsm() });
    expect(await withFile(server.url)).toMatchObject({
      status: 3,
      stderr: expect.stringMatching(/^CHAIN_ROOT/),
    });
  });
});

describe("a provisioner's key", () => {
  test('from openssl is printed for app.yaml', async () => {
    execFileSync('openssl', ['genpkey', '-algorithm', 'ed25519', '-out', file('made.pem')]);
    const { status, stdout } = await callScript('provision/provision.ts', [
      '--print-key',
      '--key',
      file('made.pem'),
    ]);
    const der = execFileSync('openssl', ['pkey', '-in', file('made.pem'), '-pubout', '-outform', 'DER']);
    expect([status, stdout]).toEqual([0, `${der.subarray(-32).toString('hex')}\n`]);
  });

  test('may be 64 hexadecimal digits', async () => {
    // RFC 8032, section 7.1, TEST 1.
    const seed = '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60';
    writeFileSync(file('key.hex'), `${seed}\n`, { mode: 0o600 });
    const { stdout } = await callScript('provision/provision.ts', ['--print-key', '--key', file('key.hex')]);
    expect(stdout).toBe('d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a\n');
  });

  test('of another kind is refused', async () => {
    execFileSync('openssl', ['genpkey', '-algorithm', 'x25519', '-out', file('x.pem')]);
    const { status, stderr } = await callScript('provision/provision.ts', [
      '--print-key',
      '--key',
      file('x.pem'),
    ]);
    expect([status, stderr]).toEqual([2, expect.stringMatching(/^PROVISIONER_KEY: .*must have an ed25519/)]);
  });
});
