/**
 * Acts as an operator's commands for an enclave: starts or stops the process of `make dev ATTEST=emulated` on
 * a port. Each command may run twice. The enclave's process outlives this one; its id and its output are in
 * the folder.
 *
 * Arguments: start or stop, folder, port, and for a start the image.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const DEV = fileURLToPath(new URL('../../../src/toolchain/dev/main.ts', import.meta.url));
const [verb = '', folder = '', port = '', image = ''] = process.argv.slice(2);
const pidFile = join(folder, `${port}.pid`);

function isRunning(): boolean {
  try {
    return process.kill(Number(readFileSync(pidFile, 'utf8')), 0);
  } catch {
    return false;
  }
}

if (verb === 'stop' && isRunning()) process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGTERM');
if (verb === 'start' && !isRunning()) {
  const output = openSync(join(folder, `${port}.log`), 'a');
  const { PATH = '', NODE_COMPILE_CACHE = '' } = process.env;
  const child = spawn(process.execPath, [DEV], {
    detached: true,
    env: { PATH, NODE_COMPILE_CACHE, ATTEST: 'emulated', OUT: folder, PORT: port, EMULATED_IMAGE: image },
    stdio: ['ignore', output, output],
  });
  await once(child, 'spawn');
  writeFileSync(pidFile, String(child.pid));
  child.unref();
}
