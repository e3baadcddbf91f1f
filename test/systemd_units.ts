/** Verifies units by systemd, on machines that have it. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

export const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

/**
 * Has systemd verify units as if this clone were in /opt/sui-enclave.
 *
 * @param units the texts of the units, by name
 * @returns the exit code of systemd-analyze, and its complaints
 */
export function verifyUnits(
  units: Readonly<Record<string, string>>,
): [status: number | null, errors: string] {
  const folder = mkdtempSync(join(tmpdir(), 'units-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  // The clone may be in a folder with a space in its name. The path of this link has no space.
  const clone = join(folder, 'clone');
  symlinkSync(ROOT, clone);
  const files = Object.entries(units).map(([name, text]) => {
    writeFileSync(join(folder, name), text.replaceAll('/opt/sui-enclave', clone));
    return join(folder, name);
  });
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...files], {
    encoding: 'utf8',
  });
  return [status, stderr];
}
