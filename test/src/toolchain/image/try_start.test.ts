import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { tryStart } from '../../../../src/toolchain/image/try_start.ts';

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'try-start-'));
});
afterEach(() => rmSync(root, { recursive: true }));

/** Tries to start a server with this source. */
function start(source: string, environment: readonly string[] = []): Promise<void> {
  const files = new Map([
    ['app/server.js', { data: Buffer.from(source) }],
    ['etc/hosts', { data: Buffer.from('never put anywhere') }],
  ]);
  return tryStart(process.execPath, files, environment, root);
}

const REPORTS = `require('node:fs').writeSync(Number(process.env.REPORT_FD), `;

describe('the server of an image', () => {
  test('that reports its boot passes the trial, which leaves no files behind', async () => {
    await start(`${REPORTS}'{"event":"boot"}\\n'); setInterval(() => {}, 1000);`);
    expect(existsSync(join(root, 'app'))).toBe(false);
    expect(existsSync(join(root, 'etc'))).toBe(false);
  });

  test("has the image's environment, adapted to a machine without an NSM, and nothing of the builder's", async () => {
    const environment = [
      'LOG_LEVEL=info',
      'SALT_CLIENTS=[{"a": "b=c"}]',
      'NSM_REQUIRED=true',
      'SECRETS=sealed',
      'PORT=3000',
    ];
    const source = `process.stderr.write(JSON.stringify(process.env)); process.exit(1);`;
    const message = await start(source, environment).catch((error: Error) => error.message);
    expect(JSON.parse(String(message).slice(String(message).indexOf('{')))).toEqual({
      LOG_LEVEL: 'info',
      SALT_CLIENTS: '[{"a": "b=c"}]',
      NSM_REQUIRED: 'false',
      SECRETS: 'any',
      PORT: '0',
      SECRETS_FD: '3',
      REPORT_FD: '4',
    });
  });

  test.each([
    [
      `process.stderr.write('sui-enclave: SALT_CLIENTS is missing'); process.exit(1)`,
      /SALT_CLIENTS is missing/,
    ],
    [
      `${REPORTS}'{"event":"failed","code":"CONFIG"}\\n'); setInterval(() => {}, 1000);`,
      /it printed nothing/,
    ],
    ['process.exit(0)', /it printed nothing/],
    ['const = 1', /SyntaxError/],
  ])('that fails stops the build: %s', async (source, message) => {
    await expect(start(source)).rejects.toThrow(message);
    await expect(start(source)).rejects.toMatchObject({ code: 'COMMAND_FAILED' });
    expect(existsSync(join(root, 'app'))).toBe(false);
  });
});
