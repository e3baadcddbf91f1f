/**
 * The systemd units of the proving service: the programs that they start exist, and have the restrictions of
 * the other units.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { hasSystemd, verifyUnits } from '../systemd_units.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** Returns the lines that restrict the service. */
const findRestrictions = (unit: string) =>
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
    const watcher = read('src/cli/provision/sui-enclave-provision.service');
    expect(findRestrictions(unit)).toEqual(
      findRestrictions(watcher).filter((line) => !line.startsWith('RestartPrevent')),
    );
  });

  test.runIf(hasSystemd)('is accepted by systemd', () => {
    expect(verifyUnits({ [name]: unit })).toEqual([0, '']);
  });
});

test('a stopping backend keeps the engine, which systemd would otherwise end with it', () => {
  expect(read('deploy/systemd/sui-enclave-prover-backend.service')).toMatch(/^KillMode=mixed$/m);
});

test('the TLS proxy gets the signal after which HAProxy finishes the requests in progress', () => {
  expect(read('deploy/https/sui-enclave-https.service')).toMatch(/^KillSignal=SIGUSR1$/m);
});
