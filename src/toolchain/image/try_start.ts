/**
 * Checks that the server of an image starts with its own settings: in an enclave, nobody would see why it
 * fails.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ImageError } from 'sui-enclave-cli/image/errors';

const START_MS = 60_000;

/**
 * @param node the program that runs it
 * @param files the application's ramdisk, by path
 * @param environment `NAME=value`, as in the enclave
 * @param root where the files are put during the start: `/`, except in tests
 * @throws ImageError: COMMAND_FAILED, with what the server printed
 */
export async function tryStart(
  node: string,
  files: ReadonlyMap<string, { readonly data: Buffer }>,
  environment: readonly string[],
  root = '/',
): Promise<void> {
  const folder = join(root, 'app');
  for (const [path, { data }] of files) {
    if (!path.startsWith('app/')) continue;
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), data);
  }
  try {
    await start(node, join(folder, 'server.js'), environment);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function start(node: string, server: string, environment: readonly string[]): Promise<void> {
  const env = Object.fromEntries(
    environment.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
  // The machine that builds has no NSM, and another server may be running on it. Secrets would come later.
  const here = { PORT: '0', NSM_REQUIRED: 'false', SECRETS_FD: '3', REPORT_FD: '4' };
  // Another program may have the port that the image gives its figures.
  const metrics = env['METRICS_PORT'] !== undefined && { METRICS_PORT: '0' };
  // Sealed secrets need an NSM too. A wrong value must still stop the build.
  const secrets = env['SECRETS'] === 'sealed' && { SECRETS: 'any' };
  const child = spawn(node, [server], {
    env: { ...env, ...here, ...metrics, ...secrets },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
    timeout: START_MS,
    killSignal: 'SIGKILL',
  });
  let output = '';
  let started = false;
  child.stderr?.on('data', (chunk) => {
    output += chunk;
  });
  child.stdio[4]?.on('data', (chunk) => {
    started ||= String(chunk).startsWith('{"event":"boot"');
    child.kill('SIGKILL');
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', () => {
      if (started) resolve();
      else
        reject(
          new ImageError(
            'COMMAND_FAILED',
            `the server does not start with its settings: ${output.trim() || 'no answer'}`,
          ),
        );
    });
  });
}
