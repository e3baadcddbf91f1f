/** The systemd units of the proving service: they start what is there, with the restrictions of the other units. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** Lines that take rights away. */
const restrictions = (unit: string) =>
  unit
    .split('\n')
    .filter((line) =>
      /^(UMask|NoNew|Capab|Ambient|Protect|Private|Lock|Restrict|Remove|System|Limit|Memory)/.test(line),
    );

describe.each(['backend', 'frontend'])('the unit of the %s', (part) => {
  const name = `sui-enclave-prover-${part}.service`;
  const unit = read(`deploy/systemd/${name}`);

  test('starts its entry, and has the restrictions of the provisioning watcher', () => {
    const [, program, script = ''] = /^ExecStart=(\S+) (\S+)$/m.exec(unit) ?? [];
    expect(program).toBe('/opt/sui-enclave/node_modules/.bin/node');
    expect(existsSync(join(ROOT, script))).toBe(true);
    expect(unit).toContain('DynamicUser=yes');
    const watcher = read('src/commands/provision/sui-enclave-provision.service');
    expect(restrictions(unit)).toEqual(
      restrictions(watcher).filter((line) => !line.startsWith('RestartPrevent')),
    );
  });

  test.skipIf(spawnSync('systemd-analyze', ['--version']).status !== 0)('is accepted by systemd', () => {
    const folder = mkdtempSync(join(tmpdir(), 'unit-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, name);
    writeFileSync(file, unit.replaceAll('/opt/sui-enclave', ROOT.replace(/\/$/, '')));
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], {
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([0, '']);
  });
});
