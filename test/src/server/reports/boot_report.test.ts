import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readLastEnd } from '../../../../src/server/reports/boot_report.ts';
import { startServer } from '../support.ts';

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'boot-report-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

test('the report contains the current reason why a part of the enclave last ended', async () => {
  const path = join(dir, 'last_end');
  const { url } = await startServer({ env: { LAST_END: path } });
  const lastEnd = async () => ((await (await fetch(`${url}/boot`)).json()) as { last_end: unknown }).last_end;
  expect(await lastEnd()).toBeNull();
  writeFileSync(path, 'the inbound bridge was ended by signal 9\n');
  expect(await lastEnd()).toBe('the inbound bridge was ended by signal 9');
});

test('the last end is null without a file, and unknown if the file is unreadable', () => {
  expect(readLastEnd(undefined)).toBeNull();
  expect(readLastEnd(dir)).toBe("unknown: its file can't be read");
});
