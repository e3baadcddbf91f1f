import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** Has make compile, before any test, the changed parts of the programs that tests run natively. */
export function setup(): void {
  if (process.platform === 'linux')
    make('-j2', 'build/test/init', 'build/test/relay', 'build/test/nsm_driver.so');
}

export function make(...args: string[]): void {
  execFileSync('make', ['--quiet', ...args], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    stdio: 'inherit',
    // If a make runs the tests, its variables must not reach this make.
    env: { ...process.env, MAKEFLAGS: '' },
  });
}
