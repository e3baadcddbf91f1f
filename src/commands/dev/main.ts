/**
 * `make dev`: runs `serve.ts`, and restarts it on the same port when a file that it has loaded changes. A start that
 * fails ends this process too; a restart that fails waits for the next change.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endOnSignal } from 'sui-enclave-service/signals';
import { WatchedFiles } from './watched_files.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const SERVE = fileURLToPath(new URL('serve.ts', import.meta.url));
const LOADED_FILES = new URL('loaded_files.ts', import.meta.url).href;
/** One save may be several events. */
const SETTLE_MS = 100;
/** Requests in flight may finish in this time. */
const STOP_MS = 2000;

/** A message from a server: a file that it loads, its port when it listens, or a request for the seed. */
type Message = { readonly file: string } | { readonly port: string } | { readonly wants: 'seed' };

/**
 * Of the signing key under ATTEST=emulated: what was registered with it stays registered after a restart. It lasts as
 * long as this process, and is in no file and no environment.
 */
const seed = randomBytes(32);
const files = new WatchedFiles(onChange);
let server: ChildProcess;
/** The port that the system chose for PORT=0 stays the same. */
let port: string | undefined;
let restarting: Promise<void> | undefined;
let changedMeanwhile = false;
/** A file that changed before the first server listened. */
let changedEarly: string | undefined;
let isEnding = false;

function start(): ChildProcess {
  files.beginRound();
  const child = fork(SERVE, {
    env: { ...process.env, ...(port !== undefined && { PORT: port }) },
    execArgv: [...process.execArgv, '--import', LOADED_FILES],
    // Bytes stay bytes.
    serialization: 'advanced',
  });
  child.on('message', (message: Message) => {
    if (child !== server) return;
    if ('file' in message) {
      files.add(message.file);
      return;
    }
    if ('wants' in message) {
      // With a callback, since it may have ended meanwhile, which is no error of this process.
      child.send({ seed }, () => {});
      return;
    }
    port = message.port;
    files.finishRound();
    // It may have loaded the file as it was before.
    if (changedEarly !== undefined) onChange(changedEarly);
  });
  child.on('exit', (code, signal) => {
    if (child !== server || restarting || isEnding) return;
    if (port === undefined) process.exit(code ?? 1);
    console.log(
      `The server ended (${signal ?? `exit code ${code}`}). It starts again when one of its files changes.`,
    );
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
  console.log(`\n${relative(ROOT, file)} has changed: restarting.`);
  restarting = restart();
}

server = start();
endOnSignal(async (signal) => {
  isEnding = true;
  files.close();
  await restarting;
  await stop(signal);
});
