/** Tests the command that copies closed events into a file, with a fake of journalctl. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as v from 'valibot';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { hasSystemd, verifyUnits } from '../../../systemd_units.ts';
import { callScript } from '../run.ts';

const FOLDER = fileURLToPath(new URL('../../../../src/cli/logs/', import.meta.url));
const UNIT = readFileSync(join(FOLDER, 'sui-enclave-events.service'), 'utf8');

let dir: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'events-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  file = join(dir, 'events.jsonl');
  writeJournal([]);
});

const event = (ms: number) => ({ event: 'listening', time_ms: 1, ms });
const createEntry = (cursor: string, message: string) => ({
  __CURSOR: cursor,
  __REALTIME_TIMESTAMP: '1',
  _SYSTEMD_UNIT: 'sui-enclave-relay.service',
  MESSAGE: message,
});
const createEventEntry = (ms: number) => createEntry(`s=${ms}`, `weather ${JSON.stringify(event(ms))}`);

/** Writes a fake of journalctl that records its arguments, prints these entries, and runs `end`. */
function writeJournal(entries: readonly object[], end = 'exit 0'): void {
  writeFileSync(
    join(dir, 'entries'),
    entries.map((journalEntry) => `${JSON.stringify(journalEntry)}\n`).join(''),
  );
  writeFileSync(
    join(dir, 'journalctl'),
    `#!/bin/sh\nprintf '%s\\n' "$@" >'${dir}/arguments'\ncat '${dir}/entries'\n${end}\n`,
  );
  chmodSync(join(dir, 'journalctl'), 0o755);
}

const env = () => ({ PATH: `${dir}:${process.env['PATH']}` });
const run = async (...args: string[]) =>
  await callScript('logs/export_events.ts', [file, '--once', ...args], { env: env() });
const readLines = (path = file) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((text) => JSON.parse(text));
const createLines = (...all: number[]) => all.map((ms) => ({ enclave: 'weather', ...event(ms) }));

test('export_events writes the closed events, and continues after the last entry that it has seen', async () => {
  writeJournal([
    createEventEntry(1),
    createEntry('s=2', 'weather a text'),
    createEntry('s=3', 'relay: a line'),
    createEventEntry(4),
  ]);
  const first = await run();
  expect([first.status, first.stderr]).toEqual([
    0,
    'left in the journal, since only closed events are copied: 1 line of enclaves\n',
  ]);
  expect([readLines(), statSync(file).mode & 0o777]).toEqual([createLines(1, 4), 0o644]);
  expect(readFileSync(join(dir, 'arguments'), 'utf8')).not.toContain('cursor');
  writeJournal([createEventEntry(5), createEntry('s=6', 'relay: a line')]);
  expect((await run()).status).toBe(0);
  expect(readLines()).toEqual(createLines(1, 4, 5));
  expect(readFileSync(join(dir, 'arguments'), 'utf8')).toContain('--after-cursor=s=4\n');
  writeJournal([]);
  await run();
  expect(readFileSync(join(dir, 'arguments'), 'utf8')).toContain('--after-cursor=s=6\n');
});

test('export_events follows the journal until SIGTERM, and has written each event by then', async () => {
  writeJournal([createEventEntry(1), createEventEntry(2)], 'exec sleep 60');
  const script = fileURLToPath(new URL('../../../../src/cli/logs/export_events.ts', import.meta.url));
  const child = spawn(process.execPath, [script, file], { env: env(), stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  await expect.poll(() => readdirSync(dir)).toContain('events.jsonl.cursor');
  expect(readLines()).toEqual(createLines(1, 2));
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('export_events begins a new file at 10 MB, and keeps the previous one', async () => {
  writeFileSync(file, `${'x'.repeat(9_999_990)}\n`);
  writeJournal([createEventEntry(1)]);
  await run();
  expect(readFileSync(`${file}.1`, 'utf8')).toMatch(/x\n\{"enclave":"weather".*\}\n$/);
  writeJournal([createEventEntry(2)]);
  await run();
  expect(readLines()).toEqual(createLines(2));
});

test('export_events skips garbage between two entries: bytes, huge lines, deep lists and half an entry at the end', async () => {
  const [first, last] = [createEventEntry(1), createEventEntry(2)].map((journalEntry) =>
    JSON.stringify(journalEntry),
  );
  const secret = 'sk_live_4242';
  const garbage = [
    Buffer.from([0, 0xff, 0xfe, 0xc3, 0x28]),
    `${secret}\u001b]0;title\u0007`,
    '['.repeat(1_000_000),
    JSON.stringify(createEntry('s=9', `weather ${secret.repeat(500_000)}`)),
    JSON.stringify({ ...createEventEntry(9), __CURSOR: `--vacuum-size=1\n${secret}` }),
    JSON.stringify({ ...createEventEntry(9), __REALTIME_TIMESTAMP: secret }),
    JSON.stringify(createEntry('s=9', `__proto__ ${JSON.stringify({ ...event(9), __proto__x: secret })}`)),
  ];
  const lines = [first ?? '', ...garbage, last ?? ''].flatMap((line) => [
    Buffer.from(line),
    Buffer.from('\n'),
  ]);
  writeFileSync(join(dir, 'entries'), Buffer.concat([...lines, Buffer.from(first ?? '').subarray(0, 90)]));
  const { status, stderr } = await run();
  expect([status, stderr]).toEqual([
    0,
    expect.stringMatching(/^left in the journal, since only closed events are copied: 2 lines of enclaves/),
  ]);
  expect(readFileSync(file, 'utf8') + stderr).not.toContain(secret);
  expect([readLines(), readFileSync(`${file}.cursor`, 'utf8')]).toEqual([createLines(1, 2), 's=2\n']);
});

test('export_events replaces links in the place of the previous file and of the cursor, and writes to no other file', async () => {
  const victim = join(dir, 'victim');
  writeFileSync(victim, 's=7\n', { mode: 0o600 });
  symlinkSync(victim, `${file}.1`);
  symlinkSync(victim, `${file}.cursor`);
  writeFileSync(file, `${'x'.repeat(9_999_990)}\n`);
  writeJournal([createEventEntry(8)]);
  expect((await run()).status).toBe(0);
  expect([readFileSync(victim, 'utf8'), readFileSync(`${file}.cursor`, 'utf8')]).toEqual(['s=7\n', 's=8\n']);
  expect(readFileSync(`${file}.1`, 'utf8')).toMatch(/x\n\{"enclave":"weather".*\}\n$/);
});

test('export_events refuses a FIFO without a reader in the place of the file', async () => {
  execFileSync('mkfifo', [file]);
  writeJournal([createEventEntry(1)]);
  const { status, stderr } = await run();
  expect([status, stderr]).toEqual([2, expect.stringMatching(/^EVENTS_FILE: /)]);
});

describe('export_events ends with an error', () => {
  test('if journalctl fails or is missing, and keeps what it has written', async () => {
    writeJournal([createEventEntry(1)], 'exit 3');
    const failed = await run();
    expect([failed.status, failed.stderr]).toEqual([1, 'JOURNAL: journalctl ended with exit code 3\n']);
    expect([readLines(), readFileSync(`${file}.cursor`, 'utf8')]).toEqual([createLines(1), 's=1\n']);
    const missing = await callScript('logs/export_events.ts', [file, '--once'], {
      env: { PATH: '/nowhere' },
    });
    expect([missing.status, missing.stderr]).toEqual([
      1,
      'JOURNAL: journalctl could not be started: ENOENT\n',
    ]);
  });

  test('if the file can not be written, before the first event', async () => {
    const { status, stderr } = await callScript('logs/export_events.ts', [join(dir, 'missing/events')], {
      env: env(),
    });
    expect([status, stderr]).toEqual([2, expect.stringMatching(/^EVENTS_FILE: .*can't be written: ENOENT/)]);
    expect(readdirSync(dir)).not.toContain('arguments');
  });

  test('if the cursor is damaged, and leaves the cursor unchanged', async () => {
    for (const text of ['', 'two words', '--vacuum-size=1\nx']) {
      writeFileSync(`${file}.cursor`, text);
      const { status, stderr } = await run();
      expect([status, stderr]).toEqual([2, expect.stringMatching(/^EVENTS_FILE: .* is not a cursor/)]);
      expect(readFileSync(`${file}.cursor`, 'utf8')).toBe(text);
    }
  });

  test('if the file is a link, a folder or a device, and does not write to it', async () => {
    writeJournal([createEventEntry(1)]);
    const victim = join(dir, 'victim');
    writeFileSync(victim, 'kept');
    symlinkSync(victim, file);
    const { status, stderr } = await run();
    expect([status, stderr]).toEqual([2, expect.stringMatching(/^EVENTS_FILE: .* can't be written: ELOOP/)]);
    expect(readFileSync(victim, 'utf8')).toBe('kept');
    // Without a cursor, the events are read again.
    expect(readdirSync(dir)).not.toContain('events.jsonl.cursor');
    for (const path of [dir, '/dev/null']) {
      const cursor = ['--cursor', join(dir, 'cursor')];
      const { status: exit, stderr: text } = await callScript(
        'logs/export_events.ts',
        [path, '--once', ...cursor],
        { env: env() },
      );
      expect([exit, text]).toEqual([2, expect.stringMatching(/^EVENTS_FILE: /)]);
    }
  });
});

/** Rules of the agent's schema for the properties that the configuration uses: see src/cli/logs/README.md. */
const AgentFile = v.strictObject({
  agent: v.strictObject({ run_as_user: v.pipe(v.string(), v.minLength(1)) }),
  logs: v.strictObject({
    logs_collected: v.strictObject({
      files: v.strictObject({
        collect_list: v.pipe(
          v.array(
            v.strictObject({
              file_path: v.pipe(v.string(), v.maxLength(4096)),
              log_group_name: v.pipe(v.string(), v.minLength(1), v.maxLength(512)),
              log_stream_name: v.pipe(v.string(), v.minLength(1), v.maxLength(512)),
              log_group_class: v.picklist(['STANDARD', 'INFREQUENT_ACCESS']),
              retention_in_days: v.picklist([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400]),
              encoding: v.pipe(v.string(), v.minLength(1), v.maxLength(4096)),
            }),
          ),
          v.minLength(1),
        ),
      }),
    }),
  }),
});

describe('the files of export_events for an instance', () => {
  const config = v.parse(AgentFile, JSON.parse(readFileSync(join(FOLDER, 'cloudwatch-agent.json'), 'utf8')));

  test('have the agent read the file that the unit writes, and nothing else', () => {
    const [, path = ''] = /export_events (\S+) --cursor/.exec(UNIT) ?? [];
    expect(config.logs.logs_collected.files.collect_list.map(({ file_path }) => file_path)).toEqual([path]);
    expect([path.startsWith('/var/log/sui-enclave/'), UNIT.match(/^LogsDirectory=.*$/m)?.[0]]).toEqual([
      true,
      'LogsDirectory=sui-enclave',
    ]);
  });

  test.runIf(hasSystemd)('include a unit that systemd accepts', () => {
    expect(verifyUnits({ 'sui-enclave-events.service': UNIT })).toEqual([0, '']);
  });
});
