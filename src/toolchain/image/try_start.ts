/**
 * Checks that the server of an image starts with its own settings. If it failed in an enclave, the cause
 * would not be visible.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ImageError } from 'sui-enclave-cli/image/errors';

const START_MS = 60_000;

/**
 * @param node the program that runs the server
 * @param files the application's ramdisk, as contents by path
 * @param environment `NAME=value`, as in the enclave
 * @param root folder where the files are written for the start: `/`, except in tests
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
  // The build machine has no NSM, may run another server, and gets no secrets.
  const changes = { PORT: '0', NSM_REQUIRED: 'false', SECRETS_FD: '3', REPORT_FD: '4' };
  // Another program may already use the metrics port that the image sets.
  const metrics = env['METRICS_PORT'] !== undefined && { METRICS_PORT: '0' };
  // Sealed secrets would need an NSM too. Any other value of SECRETS is kept, so that an invalid value stops
  // the build.
  const secrets = env['SECRETS'] === 'sealed' && { SECRETS: 'any' };
  const child = spawn(node, [server], {
    env: { ...env, ...changes, ...metrics, ...secrets },
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
            `the server does not start with its settings: ${output.trim() || 'it printed nothing'}`,
          ),
        );
    });
  });
}
