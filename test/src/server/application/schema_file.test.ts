/** `GET /schema` serves the application's file unchanged, within its bounds. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fetchSchema } from '../../../../src/library/client/index.ts';
import { readSchemaFile } from '../../../../src/server/application/schema_file.ts';
import { schemaEntry } from '../../../../src/toolchain/image/ramdisks.ts';
import { FIXTURE_APPS, startServer } from '../support.ts';

const WEATHER = fileURLToPath(new URL('../../../../src/apps/weather/', import.meta.url));
const committed = readFileSync(`${WEATHER}schema.json`);

function makeFolder(content: string | Uint8Array): string {
  const folder = mkdtempSync(join(tmpdir(), 'schema-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'schema.json'), content);
  return folder;
}

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

describe('GET /schema', () => {
  test.each(['any', 'sealed'])('answers with the bytes of the file, with REQUESTS=%s', async (requests) => {
    const server = await startServer({ env: { REQUESTS: requests } });
    const answer = await server.get('/schema');
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(Buffer.from(await answer.arrayBuffer())).toEqual(committed);
    expect((await server.get('/schema', { method: 'HEAD' })).headers.get('content-length')).toBe(
      String(committed.length),
    );
    expect((await server.post('/schema', {})).status).toBe(405);
  });

  test('is accepted by the client', async () => {
    const { url } = await startServer();
    expect((await fetchSchema(url)).signs.map(({ name }) => name)).toEqual([
      'WeatherResponse',
      'Temperature',
    ]);
  });

  test('answers 404 with a code if the file is missing', async () => {
    const server = await startServer({ apps: FIXTURE_APPS, env: { APP: 'dice' } });
    const answer = await server.get('/schema');
    expect([answer.status, await answer.json()]).toEqual([
      404,
      expect.objectContaining({ code: 'SCHEMA_NOT_FOUND' }),
    ]);
  });
});

describe('readSchemaFile', () => {
  test.each([
    ['text that is not JSON', '{'],
    ['nothing', ''],
    ['a byte-order mark', '\ufeff{}'],
    ['a byte over 64 KB', `{}${' '.repeat(65_535)}`],
    ['a ninth level', `{"a":${nested(9)}}`],
    ['20,000 levels', nested(20_000)],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
  ])('refuses %s, and so does the build', (_, content) => {
    const folder = makeFolder(content);
    const refused = expect.objectContaining({ code: 'CONFIG' });
    expect(() => readSchemaFile(join(folder, 'schema.json'))).toThrow(refused);
    expect(() => schemaEntry(folder)).toThrow(refused);
  });

  test('accepts 64 KB, and eight levels', () => {
    for (const content of [`{}${' '.repeat(65_534)}`, `{"a":${nested(8)}}`]) {
      expect(readSchemaFile(join(makeFolder(content), 'schema.json'))).toBe(content);
    }
  });
});

test('the build copies the file of an application into its ramdisk, if there is one', () => {
  expect(schemaEntry(WEATHER)).toEqual([['app/schema.json', { data: committed }]]);
  expect(schemaEntry(fileURLToPath(new URL('dice', FIXTURE_APPS)))).toEqual([]);
});
