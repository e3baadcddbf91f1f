import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ApplicationMistake, ConfigError } from '../../../../src/library/errors.ts';
import {
  receiveSecrets,
  requireNotInEnv,
  Secrets,
  SecretsMissing,
  secretsFromEnv,
} from '../../../../src/server/secrets/secrets.ts';
import { createLog } from '../../../../src/service/log.ts';
import { HOSTILE_THROWN } from '../../service/hostile_thrown.ts';

describe('Secrets', () => {
  test('are listed as missing, by their names, until they are provided', () => {
    const secrets = new Secrets(['A', 'B']);
    expect(secrets.missing()).toEqual(['A', 'B']);
    expect(() => secrets.get('A')).toThrow(SecretsMissing);
    secrets.provide({ A: 'one', B: 'two' });
    expect(secrets.missing()).toEqual([]);
    expect(secrets.get('B')).toBe('two');
  });

  test.each([
    ['one is missing', { A: 'hunter2' }],
    ['one is not declared', { A: 'hunter2', B: 'x', NODE_OPTIONS: '--inspect' }],
    ['one is empty', { A: 'hunter2', B: '' }],
    ['one is not a string', { A: 'hunter2', B: 5 }],
    ['they are a list', ['hunter2']],
    ['they are null', null],
    ['they set a prototype', JSON.parse('{"A":"hunter2","B":"x","__proto__":{"C":"y"}}')],
  ])('are rejected when %s, with an error that contains no value', (_name, values) => {
    const secrets = new Secrets(['A', 'B']);
    expect(() => secrets.provide(values)).toThrow(ConfigError);
    expect(() => secrets.provide(values)).toThrow(/^((?!hunter2).)*A, B\. For example \{"A":"…","B":"…"\}$/);
    expect(secrets.missing()).toEqual(['A', 'B']);
  });

  test('are final', () => {
    const secrets = new Secrets(['A']);
    secrets.provide({ A: 'one' });
    expect(() => secrets.provide({ A: 'two' })).toThrow(/final/);
    expect(secrets.get('A')).toBe('one');
  });

  test.each([
    ['another one begins with', { A: 'acme', B: 'acme-7f3c9b1d' }, 'by acme-7f3c9b1d, or acme'],
    ['is not valid Unicode', { A: 'acme\ud800', B: 'x' }, 'by acme\ud800, or x'],
  ])('are removed from a text as a whole, even if one %s', (_name, values, text) => {
    const secrets = new Secrets(['A', 'B']);
    secrets.provide(values);
    expect(secrets.redact(text)).toBe('by [Redacted], or [Redacted]');
  });

  test('that app.yaml does not name throw an ApplicationMistake', () => {
    expect(() => new Secrets(['A']).get('B')).toThrow(ApplicationMistake);
  });

  test('from the environment must all be set: an error names each that is missing', () => {
    expect(() => secretsFromEnv(['A', 'B', 'C'], { B: 'x', C: '' })).toThrow(/^A, C must be set/);
    expect(secretsFromEnv(['B'], { B: 'x', A: 'y' }).get('B')).toBe('x');
    expect(secretsFromEnv([], {}).missing()).toEqual([]);
  });

  test('from the environment must be in a file if their variable is not allowed: an error asks for the file', () => {
    expect(() => secretsFromEnv(['A'], {}, ['A'])).toThrow(
      "A_FILE must name a file with A: the application can't answer without it",
    );
    expect(() => secretsFromEnv(['A', 'B'], {}, ['B'])).toThrow(
      /^A must be set in the environment, or A_FILE must name a file with it; B_FILE must name a file with B:/,
    );
    expect(() => requireNotInEnv(['A'], { A: 'hunter2' })).toThrow(
      /^A must not be in the environment, ((?!hunter2).)*: use A_FILE or SECRETS_FD$/,
    );
    expect(() => requireNotInEnv(['A'], { A: '' })).toThrow(ConfigError);
    requireNotInEnv(['A'], { A_FILE: '/a', B: 'x' });
  });
});

describe('a secret in a file', () => {
  function writeSecretFile(content: string | Uint8Array): string {
    const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-secret-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'hunter1');
    writeFileSync(path, content);
    return path;
  }

  test.each(['hunter2', 'hunter2\n', 'hunter2\r\n'])(
    'is its content without a final line break: %j',
    (content) => {
      expect(secretsFromEnv(['A'], { A_FILE: writeSecretFile(content) }).get('A')).toBe('hunter2');
    },
  );

  test('keeps all other white space', () => {
    expect(secretsFromEnv(['A'], { A_FILE: writeSecretFile(' one\n\n') }).get('A')).toBe(' one\n');
  });

  test.each([
    ['does not exist', () => '/nonexistent/hunter1', /^A_FILE must name a readable text file/],
    [
      'is not UTF-8',
      () => writeSecretFile(Uint8Array.of(0x68, 0xff)),
      /^A_FILE must name a readable text file/,
    ],
    ['is too large', () => writeSecretFile('x'.repeat(65_537)), /^A_FILE must name .* 65536 bytes$/],
    ['is named by a relative path', () => 'hunter1', /^A_FILE must be an absolute path$/],
    ['is empty', () => writeSecretFile('\n'), /non-empty string/],
  ])('is rejected when it %s', (_name, path, message) => {
    const env = { A_FILE: path() };
    expect(() => secretsFromEnv(['A'], env)).toThrow(ConfigError);
    expect(() => secretsFromEnv(['A'], env)).toThrow(message);
    expect(() => secretsFromEnv(['A'], env)).not.toThrow(/hunter/);
  });

  test('conflicts with the variable', () => {
    const env = { A: 'hunter2', A_FILE: writeSecretFile('hunter3') };
    expect(() => secretsFromEnv(['A'], env)).toThrow(/^A and A_FILE are both set/);
  });
});

describe("an application's check of its secrets", () => {
  const check = ({ A }: Readonly<Record<string, string>>) => {
    if (A !== 'right') throw new ConfigError('A is not the right one');
  };

  test('rejects a set that is already present', () => {
    expect(() => secretsFromEnv(['A'], { A: 'wrong' }).checkWith(check)).toThrow(/not the right one/);
    secretsFromEnv(['A'], { A: 'right' }).checkWith(check);
  });

  test('rejects a hand-off, and the next may follow', async () => {
    let printed = '';
    const secrets = new Secrets(['A']);
    secrets.checkWith(check);
    const lines = Readable.from([Buffer.from('{"A":"wrong"}\n{"A":"right"}\n')]);
    await receiveSecrets(secrets, lines, createLog('trace', { write: (line) => (printed += line) }));
    expect(secrets.get('A')).toBe('right');
    expect(printed).toMatch(/A is not the right one/);
  });

  test.each(HOSTILE_THROWN)('may throw %s, and the next hand-off may follow', async (_name, make) => {
    let printed = '';
    const secrets = new Secrets(['A']);
    secrets.checkWith(({ A }) => {
      if (A !== 'right') throw make();
    });
    const lines = Readable.from([Buffer.from('{"A":"wrong"}\n{"A":"right"}\n')]);
    await receiveSecrets(secrets, lines, createLog('trace', { write: (line) => (printed += line) }));
    expect(secrets.get('A')).toBe('right');
    expect(printed.includes('hunter2')).toBe(false);
  });

  test('shows callers why a hand-off was refused', async () => {
    const secrets = new Secrets(['A']);
    secrets.checkWith(check);
    const readRefusal = async (line: string) => {
      await receiveSecrets(secrets, Readable.from([Buffer.from(line)]), createLog('silent'));
      return secrets.refused;
    };
    expect(secrets.refused).toBeUndefined();
    expect(await readRefusal('hunter2\n')).toBe('a hand-off is one JSON object in UTF-8 on one line');
    expect(await readRefusal('{"A":"hunter2"}\n')).toBe('A is not the right one');
    expect(() => secrets.get('A')).toThrow(
      expect.objectContaining({ code: 'SECRETS_MISSING', missing: ['A'], refused: 'A is not the right one' }),
    );
  });
});

describe('a hand-off', () => {
  async function handOff(...chunks: (string | Buffer)[]) {
    let printed = '';
    const log = createLog('trace', { write: (line) => (printed += line) });
    const secrets = new Secrets(['A']);
    const source = Readable.from(chunks.map((chunk) => Buffer.from(chunk as string)));
    await receiveSecrets(secrets, source, log);
    return { secrets, printed, source };
  }

  test('is one line of JSON, and nothing after it is read', async () => {
    const { secrets, source } = await handOff('{"A":"hunter2"}\n', 'more');
    expect(secrets.get('A')).toBe('hunter2');
    expect(source.destroyed).toBe(true);
  });

  test('may arrive in pieces', async () => {
    const { secrets } = await handOff('{"A":"hun', 'ter2"', '}\n{"A":"x"}');
    expect(secrets.get('A')).toBe('hunter2');
  });

  test('may lack the line break at the end of the source', async () => {
    const { secrets } = await handOff('{"A":"hunter2"}');
    expect(secrets.get('A')).toBe('hunter2');
  });

  test('may be repeated until it is valid, and is then final', async () => {
    const lines = ['', '{"A":5}', 'hunter1', '{"A":"x","B":"y"}', '{"A":"hunter2"}', '{"A":"hunter3"}'];
    const { secrets, printed } = await handOff(lines.join('\n'));
    expect(secrets.get('A')).toBe('hunter2');
    expect(printed.match(/refused/g)).toHaveLength(4);
    expect(printed).not.toMatch(/hunter/);
  });

  test('is at most 64 KiB; a longer line is skipped', async () => {
    const line = (bytes: number) => `{"A":"${'x'.repeat(bytes - 8)}"}\n`;
    expect((await handOff(line(65_537))).secrets.missing()).toEqual(['A']);
    expect((await handOff(line(65_536))).secrets.missing()).toEqual([]);
    const { secrets } = await handOff('y'.repeat(100_000), line(100_000), '{"A":"hunter2"}\n');
    expect(secrets.get('A')).toBe('hunter2');
  });

  test('without an end is not buffered: its bytes are only counted', async () => {
    setFlagsFromString('--expose-gc');
    const collectGarbage: () => void = runInNewContext('gc');
    const chunks: WeakRef<Buffer>[] = [];
    let liveChunks = Number.NaN;
    async function* endless() {
      for (let i = 0; i < 100; i++) {
        const chunk = Buffer.alloc(64 * 1024, 'x');
        chunks.push(new WeakRef(chunk));
        yield chunk;
      }
      await setImmediate();
      collectGarbage();
      liveChunks = chunks.filter((chunk) => chunk.deref()).length;
      yield Buffer.from('\n{"A":"hunter2"}\n');
    }
    const secrets = new Secrets(['A']);
    await receiveSecrets(secrets, Readable.from(endless()), createLog('silent'));
    expect(liveChunks).toBeLessThan(10);
    expect(secrets.get('A')).toBe('hunter2');
  });

  test('that is not UTF-8 is rejected', async () => {
    const { secrets } = await handOff('{"A":"', Buffer.from([0xff]), '"}');
    expect(secrets.missing()).toEqual(['A']);
  });

  test('that never arrives is logged when the source ends', async () => {
    const { secrets, printed } = await handOff();
    expect(secrets.missing()).toEqual(['A']);
    expect(printed).toMatch(/ended without the secrets/);
  });

  test('that breaks is logged', async () => {
    let printed = '';
    const source = new Readable({ read: () => source.destroy(new Error('hunter2')) });
    await receiveSecrets(
      new Secrets(['A']),
      source,
      createLog('trace', { write: (line) => (printed += line) }),
    );
    expect(printed).toMatch(/broke before the secrets arrived/);
    expect(printed).not.toMatch(/hunter2/);
  });

  test('that the server closes when it stops is not an error', async () => {
    let printed = '';
    const log = createLog('trace', { write: (line) => (printed += line) });
    const source = new PassThrough();
    const receiving = receiveSecrets(new Secrets(['A']), source, log);
    source.write('{"A":"hun');
    source.destroy();
    await receiving;
    expect(printed).toBe('');
  });

  test('that breaks with an error code is logged as an error with that code', async () => {
    let printed = '';
    const log = createLog('trace', { write: (line) => (printed += line) });
    const source = new PassThrough();
    const receiving = receiveSecrets(new Secrets(['A']), source, log);
    source.destroy(Object.assign(new Error('hunter2'), { code: 'EIO' }));
    await receiving;
    expect(printed).toMatch(/"level":"error".*EIO.*the hand-off broke/);
    expect(printed).not.toMatch(/hunter2/);
  });
});
