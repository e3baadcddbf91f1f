import { execFileSync, spawn } from 'node:child_process';
import { constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { canRun, startRole, temporaryFolder } from './init.ts';

function fifo(name: string): string {
  const path = join(temporaryFolder(), name);
  execFileSync('mkfifo', [path]);
  return path;
}

/** Starts the role that copies the log from one pipe to the console, which is another pipe here. */
function start() {
  const [log, console] = [fifo('log'), fifo('console')];
  const reader = openSync(console, constants.O_RDONLY | constants.O_NONBLOCK);
  const role = startRole(['console'], `3<${log} 2>${console}`);
  const writer = spawn('sh', ['-c', `cat >${log}`], { stdio: ['pipe', 'ignore', 'ignore'] });
  onTestFinished(() => {
    writer.kill('SIGKILL');
  });
  return { role, reader, writer };
}

describe.runIf(canRun)('the console', () => {
  test('shows the log', async () => {
    const { role, reader, writer } = start();
    writer.stdin.end('a line\n');
    expect(await role.ended).toBe(0);
    const bytes = Buffer.alloc(100);
    expect(bytes.toString('utf8', 0, readSync(reader, bytes))).toBe('a line\n');
  });

  test('does not block writers of the log when no process reads the console', async () => {
    const { role, writer } = start();
    // The text is larger than the buffers of both pipes.
    writer.stdin.end(Buffer.alloc(4 * 1024 * 1024, 'x'));
    expect(await role.ended).toBe(0);
  });
});
