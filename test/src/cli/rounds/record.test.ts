/** The file with the transactions that a keeper signed, across restarts of its process. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { KeeperFileError } from '../../../../src/cli/keeper/file.ts';
import { openRecord } from '../../../../src/cli/rounds/record.ts';
import { startServer } from '../../server/support.ts';
import { KeeperFixture } from '../keeper/keeper_fixture.ts';

const HOUR = 3_600_000;

let path: string;
beforeEach(() => {
  const dir = mkdtempSync(join(tmpdir(), 'record-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  path = join(dir, 'record.json');
});

const content = () => JSON.parse(readFileSync(path, 'utf8'));

test('the record is created if it is missing, for its user alone', () => {
  expect(openRecord(path, KeeperFileError).signed).toEqual([]);
  expect([content(), statSync(path).mode & 0o777]).toMatchObject([{ signed: [] }, 0o600]);
});

test('the record has times and amounts that the next process reads', () => {
  openRecord(path, KeeperFileError).replace([
    { ageMs: 2 * HOUR, mist: 50_000_000n },
    { ageMs: 0, mist: 2n ** 62n },
  ]);
  const { signed } = openRecord(path, KeeperFileError);
  expect(signed.map(({ mist }) => mist)).toEqual([50_000_000n, 2n ** 62n]);
  const [older, newer] = signed.map(({ ageMs }) => ageMs);
  for (const ms of [(older ?? 0) - 2 * HOUR, newer]) {
    expect([(ms ?? -1) >= 0, (ms ?? HOUR) < HOUR]).toEqual([true, true]);
  }
});

test('the record counts a time in the future as now, since the clock was set back', () => {
  writeFileSync(path, JSON.stringify({ signed: [{ at: Date.now() + 5 * HOUR, mist: '7' }] }));
  expect(openRecord(path, KeeperFileError).signed).toEqual([{ ageMs: 0, mist: 7n }]);
});

test.each([-2, 2])(
  'the record keeps every age if the clock is set by %d days between two processes',
  (days) => {
    openRecord(path, KeeperFileError).replace([{ ageMs: 2 * HOUR, mist: 7n }]);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + days * 24 * HOUR });
    onTestFinished(() => void vi.useRealTimers());
    for (const _restart of [1, 2]) {
      const [{ ageMs } = { ageMs: 0 }] = openRecord(path, KeeperFileError).signed;
      expect(Math.abs(ageMs - 2 * HOUR)).toBeLessThan(HOUR / 60);
    }
  },
);

test.each([
  ['after a restart of the machine, by the wall clock', 'another', 0],
  ["that is ahead of the kernel's time, as now", undefined, 1e12],
])('the record counts a time %s', (_, boot, ahead) => {
  openRecord(path, KeeperFileError).replace([{ ageMs: 0, mist: 7n }]);
  const { written, signed } = content();
  const uptime = written.uptime + ahead;
  writeFileSync(
    path,
    JSON.stringify({ written: { ...written, boot: boot ?? written.boot, uptime }, signed }),
  );
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 3 * HOUR });
  onTestFinished(() => void vi.useRealTimers());
  const [{ ageMs } = { ageMs: -1 }] = openRecord(path, KeeperFileError).signed;
  expect(Math.round(ageMs / HOUR)).toBe(boot === undefined ? 0 : 3);
});

describe('the record is refused', () => {
  test.each([
    ['not JSON', '{'],
    ['of another shape', '{}'],
    ['with a negative amount', '{"signed":[{"at":1,"mist":"-5"}]}'],
    ['with an amount of zero', '{"signed":[{"at":1,"mist":"0"}]}'],
    ['with a number as the amount', '{"signed":[{"at":1,"mist":5}]}'],
    ['with a time that is not an integer', '{"signed":[{"at":1.5,"mist":"5"}]}'],
    ['with an unknown property', '{"signed":[],"more":1}'],
    ['empty', ''],
    ['with an incomplete time of writing', '{"written":{"at":1},"signed":[]}'],
    [
      'with a time before the start of the machine',
      '{"written":{"at":1,"boot":"a","uptime":-1},"signed":[]}',
    ],
  ])('%s, and left as it is', (_fault, text) => {
    writeFileSync(path, text);
    expect(() => openRecord(path, KeeperFileError)).toThrow(
      expect.objectContaining({ code: 'KEEPER_FILE', exit: 2 }),
    );
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  test('if it can not be read or written', () => {
    for (const unusablePath of ['/dev/null', tmpdir(), '/nonexistent/record.json']) {
      expect(() => openRecord(unusablePath, KeeperFileError)).toThrow(
        expect.objectContaining({ code: 'KEEPER_FILE', exit: 2 }),
      );
    }
  });
});

test('the record is replaced as a whole, and a link in its place is not followed', () => {
  const target = `${path}.target`;
  writeFileSync(target, '{"signed":[]}');
  chmodSync(target, 0o600);
  symlinkSync(target, path);
  openRecord(path, KeeperFileError).replace([{ ageMs: 0, mist: 1n }]);
  expect(readFileSync(target, 'utf8')).toBe('{"signed":[]}');
  expect(content().signed).toHaveLength(1);
});

describe('the record of the command', () => {
  test('limits the next process too, and is neither read nor written by a dry run', async () => {
    const fixture = await KeeperFixture.start();
    onTestFinished(() => fixture.close());
    const urls: string[] = [];
    const start = async () => {
      const server = await startServer({ nsm: fixture.chain.nsm });
      onTestFinished(() => server.close());
      urls.push(server.url);
    };
    const options = { content: { gas_a_day: 80_000_000, gas_budget: 40_000_000 }, args: ['--record', path] };
    for (const registered of [1, 2]) {
      await start();
      expect((await fixture.once(urls, options)).done).toHaveLength(1);
      expect(content().signed).toHaveLength(registered);
    }
    await start();
    const { exit, done, alerts } = await fixture.once(urls, options);
    expect([exit, done, alerts.map(({ code }) => code)]).toEqual([1, [], ['GAS_A_DAY']]);
    const args = [...options.args, '--dry-run'];
    writeFileSync(path, 'not a record');
    expect(await fixture.once(urls, { ...options, args })).toMatchObject({ exit: 0, status: 'dry-run' });
    expect(readFileSync(path, 'utf8')).toBe('not a record');
    const file = fixture.write(fixture.content(urls));
    const { status, stderr } = await fixture.run(file, ['--once', '--record', path]);
    expect([status, stderr]).toEqual([2, expect.stringMatching(/^KEEPER_FILE: /)]);
    // The default path is beside the file.
    await fixture.run(file, ['--once']);
    expect(JSON.parse(readFileSync(`${file}.record.json`, 'utf8')).signed).toHaveLength(1);
  });

  test('contains a transaction without an answer, but none that the node refuses while it is built', async () => {
    const fixture = await KeeperFixture.start();
    onTestFinished(() => fixture.close());
    const server = await startServer({ nsm: fixture.chain.nsm });
    onTestFinished(() => server.close());
    const once = async () => await fixture.once([server.url], { args: ['--record', path] });
    fixture.chain.node.faults.set('SimulateTransaction', { status: 'INVALID_ARGUMENT', message: 'no' });
    expect((await once()).alerts).toMatchObject([{ code: 'ACTION_FAILED' }]);
    expect(content().signed).toEqual([]);
    fixture.chain.node.faults.clear();
    fixture.chain.node.faults.set('ExecuteTransaction', { status: 'INVALID_ARGUMENT', message: 'no' });
    expect((await once()).alerts).toMatchObject([{ code: 'ACTION_FAILED' }]);
    expect(content().signed).toMatchObject([{ mist: '50000000' }]);
  });
});
