/** The systemd units of the parent instance start programs that exist, with no more rights than needed. */
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { hasSystemd, verifyUnits } from '../../../systemd_units.ts';
import { callScript } from '../run.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url)).replace(/\/$/, '');
const FILES = globSync('src/cli/parent/units/*', { cwd: ROOT }).sort();
const SERVICES = FILES.filter((file) => file.endsWith('.service') && !file.includes('reload'));

const valuesIn = (unit: string, key: string) =>
  [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value);

test('the folder has exactly these units', () => {
  expect(FILES.map((file) => basename(file))).toEqual([
    'sui-enclave-end@.service',
    'sui-enclave-expose@.service',
    'sui-enclave-relay-reload.service',
    'sui-enclave-relay.path',
    'sui-enclave-relay.service',
    'sui-enclave@.service',
  ]);
});

describe.each(SERVICES)('%s', (file) => {
  const unit = readFileSync(join(ROOT, file), 'utf8');
  const values = (key: string) => valuesIn(unit, key);

  const isEnd = file.includes('-end@');

  test('runs as an unprivileged user, or has only the privileges to become one', () => {
    expect(values('User')).toEqual(
      isEnd ? [] : [file.includes('relay') ? 'sui-enclave-relay' : 'sui-enclave'],
    );
    expect(values('CapabilityBoundingSet')).toEqual([isEnd ? 'CAP_SETUID CAP_SETGID' : '']);
    expect(values('AmbientCapabilities')).toEqual(['']);
    for (const key of [
      'NoNewPrivileges',
      'PrivateTmp',
      'ProtectHome',
      'RestrictNamespaces',
      'RestrictSUIDSGID',
    ]) {
      expect(values(key), key).toEqual(['yes']);
    }
    expect(values('ProtectSystem')).toEqual(['strict']);
    // Services that call nitro-cli are in its group. sui-enclave-end@ joins the group when it gives up root.
    expect(values('SupplementaryGroups')).toEqual(isEnd || file.includes('relay') ? [] : ['ne']);
    expect(values('RestrictAddressFamilies')[0]?.split(' ')).toContain('AF_VSOCK');
  });

  test("requires no unit, or only its enclave's unit, so that the end of another unit never ends an enclave", () => {
    const needed = ['Requires', 'BindsTo', 'PartOf', 'Requisite', 'PropagatesStopTo'].flatMap(values);
    expect(needed).toEqual(isEnd || file.includes('expose') ? ['sui-enclave@%i.service'] : []);
  });
});

test('the units restart an enclave a limited number of times, and the relay without a limit', () => {
  const limits = ['sui-enclave@.service', 'sui-enclave-expose@.service', 'sui-enclave-relay.service'].map(
    (name) => {
      const unit = readFileSync(join(ROOT, 'src/cli/parent/units', name), 'utf8');
      return ['StartLimitBurst', 'StartLimitIntervalSec'].flatMap((key) => valuesIn(unit, key)).map(Number);
    },
  );
  expect(limits).toEqual([[10, 600], [20, 600], [0]]);
});

test('sui-enclave-end@ starts before the enclave, and a process that fails does not stop it', () => {
  const unit = readFileSync(join(ROOT, 'src/cli/parent/units/sui-enclave-end@.service'), 'utf8');
  expect(['Before', 'ExecStart', 'RemainAfterExit'].map((key) => valuesIn(unit, key))).toEqual([
    ['sui-enclave@%i.service'],
    ['/bin/true'],
    ['yes'],
  ]);
  // A failed process must not stop it: this would end a healthy enclave.
  expect(unit).not.toMatch(/^(BindsTo|Requires|ExecStopPost)=/m);
});

test('the units restart the process that watches an enclave after the time that the page states', () => {
  const unit = readFileSync(join(ROOT, 'src/cli/parent/units/sui-enclave@.service'), 'utf8');
  const [seconds] = valuesIn(unit, 'RestartSec');
  const page = readFileSync(join(ROOT, 'enclave/README.md'), 'utf8');
  expect(page).toContain(`systemd starts that process again after ${seconds} s`);
});

test('systemd stops only the process that watches an enclave, and lets the helper process of nitro-cli run', () => {
  const unit = readFileSync(join(ROOT, 'src/cli/parent/units/sui-enclave@.service'), 'utf8');
  expect(['KillMode', 'OOMPolicy', 'Restart'].map((key) => valuesIn(unit, key))).toEqual([
    ['process'],
    ['continue'],
    ['on-failure'],
  ]);
});

test.each(['sui-enclave@.service', 'sui-enclave-expose@.service'])(
  '%s starts a command that exists',
  async (name) => {
    const unit = readFileSync(join(ROOT, 'src/cli/parent/units', name), 'utf8');
    const [program, main, command, ...args] = (valuesIn(unit, 'ExecStart')[0] ?? '').split(' ');
    expect([program, main]).toEqual([
      '/opt/sui-enclave/node_modules/.bin/node',
      '/opt/sui-enclave/src/cli/main.ts',
    ]);
    const unitArguments = args
      .filter((arg) => !arg.startsWith('$'))
      .map((arg) => arg.replace('%i', 'weather'));
    // The command has all these options. It fails at the image, which is missing.
    const { status, stderr } = await callScript(`parent/${command}.ts`, unitArguments, { env: { PATH: '' } });
    expect([status, stderr]).toEqual([
      2,
      expect.stringMatching(/^USAGE: \/(usr|var)\/.* can't be read \(ENOENT\)/),
    ]);
  },
);

test('when it is stopped, sui-enclave-end@.service runs a command that exists', async () => {
  const unit = readFileSync(join(ROOT, 'src/cli/parent/units/sui-enclave-end@.service'), 'utf8');
  const [, , command, ...args] = (valuesIn(unit, 'ExecStop')[0] ?? '').split(' ');
  const unitArguments = args.map((arg) => arg.replace('%i', 'weather'));
  // The command has these options. It fails at systemctl, which is missing, and ends nothing.
  const { status, stderr } = await callScript(`parent/${command}.ts`, unitArguments, { env: { PATH: '' } });
  expect([status, stderr]).toEqual([1, expect.stringMatching(/^PROGRAM_FAILED: systemctl is not installed/)]);
});

test.runIf(hasSystemd)('the units are accepted by systemd', () => {
  const units = FILES.map((file) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    // The relay's program comes with an image, so another program takes its place.
    return [basename(file), text.replace('/usr/local/lib/sui-enclave/relay', '/bin/true')];
  });
  expect(verifyUnits(Object.fromEntries(units))).toEqual([0, '']);
});
