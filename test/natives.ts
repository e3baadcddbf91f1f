import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Before any test: make compiles what has changed of the programs that tests run natively. */
export function setup(): void {
  if (process.platform !== 'linux') return;
  const cwd = fileURLToPath(new URL('..', import.meta.url));
  execFileSync('make', ['--quiet', '-j2', 'test-natives'], {
    cwd,
    stdio: 'inherit',
    // Not those of a make that runs the tests.
    env: { ...process.env, MAKEFLAGS: '' },
  });
}
