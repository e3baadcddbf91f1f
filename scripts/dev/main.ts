/**
 * `make dev`: runs `serve.ts` and restarts it when a file changes, on the same port. A start that fails ends
 * this process too; a restart that fails waits for the next change.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { endOnSignal } from '../../src/server/signals.ts';

const ROOT = new URL('../../', import.meta.url);
const SERVE = fileURLToPath(new URL('scripts/dev/serve.ts', ROOT));
const WATCHED = ['src/', 'scripts/dev/'];
/** Files that a server loads: code and an application's files, but not the backups of editors. */
const LOADED = /\.(ts|yaml|env|pem)$/;
/** One save may be several events. */
const SETTLE_MS = 100;
/** Requests in flight may finish in this time. */
const STOP_MS = 2000;

let server: ChildProcess;
/** The port that the system chose for PORT=0 stays the same. */
let port: string | undefined;
let restarting: Promise<void> | undefined;
let changedMeanwhile = false;
/** A file that changed before the first server listened. */
let changedEarly: string | undefined;
let isEnding = false;

function start(): ChildProcess {
  const child = fork(SERVE, { env: { ...process.env, ...(port !== undefined && { PORT: port }) } });
  child.on('message', (message: { port: string }) => {
    port = message.port;
    // It may have loaded the file as it was before.
    if (changedEarly !== undefined) onChange(changedEarly);
  });
  child.on('exit', (code, signal) => {
    if (child !== server || restarting || isEnding) return;
    if (port === undefined) process.exit(code ?? 1);
    console.log(`The server ended (${signal ?? `exit code ${code}`}). It starts again when a file changes.`);
  });
  return child;
}

async function stop(signal: NodeJS.Signals): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const ended = once(server, 'exit');
  server.kill(signal);
  await ended;
}

async function restart(): Promise<void> {
  do {
    changedMeanwhile = false;
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    const impatient = setTimeout(() => server.kill('SIGKILL'), STOP_MS);
    await stop('SIGTERM');
    clearTimeout(impatient);
  } while (changedMeanwhile);
  server = start();
  restarting = undefined;
}

function onChange(file: string): void {
  if (isEnding) return;
  // Before the first server listens, no port has to be kept, and its failure ends this process.
  changedEarly = port === undefined ? file : undefined;
  if (changedEarly !== undefined) return;
  changedMeanwhile = true;
  if (restarting) return;
  console.log(`\n${file} has changed: restarting.`);
  restarting = restart();
}

server = start();
for (const folder of WATCHED) {
  watch(new URL(folder, ROOT), { recursive: true }, (_event, file) => {
    if (file !== null && LOADED.test(file)) onChange(folder + file);
  });
}
endOnSignal(async (signal) => {
  isEnding = true;
  await restarting;
  await stop(signal);
});
