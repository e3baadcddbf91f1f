import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * Runs make before any test: it compiles the programs that tests run natively, if their sources have changed.
 */
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
