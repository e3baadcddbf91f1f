/**
 * `sui-enclave dev`, or `make dev`: runs `serve.ts`, and restarts it on the same port when a file that it has
 * loaded changes. If the first start fails, this process ends too. If a restart fails, this process waits for
 * the next change.
 */
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { endOnSignal } from 'sui-enclave-service/signals';
import { findProject } from '../project.ts';
import { consolePort, developmentFiles, startConsole } from './console.ts';
import { listenForKeys, readKeysAgain } from './keys.ts';
import { RestartedServer } from './restarted_server.ts';

export const main = command({
  name: 'dev',
  purpose:
    'Starts the server of an application against fakes of the services that it calls, until SIGTERM or Ctrl-C, and\nrestarts it when a file that it has loaded changes.',
  arguments: {},
  options: {},
  notes: `environment:
  APP     the application: in a clone a folder of src/apps (default: weather); elsewhere that of the current folder
  PORT    the server's port (default: 3000)
  ATTEST  emulated: with an emulated NSM, whose root of trust is out/dev-root.pem
  OUT     the folder of that root and of the registers (default: out)
  EMULATED_IMAGE
          the version of the application that ATTEST=emulated attests, 1 to 9, each with its own registers (default: 1)
  CONSOLE_PORT
          the port of the console, a page that shows the enclave (default: chosen by the system)
and the settings of the server and of the application

keys, if the application has tasks:
  t       runs each task now

exit codes: 0 ended by a signal; 1 it can't start; 2 invalid command line`,
  run(_, { env, io: { log, error } }) {
    const { root } = findProject();
    const folder = pathToFileURL(`${resolve(env['OUT'] || join(root, 'out'))}/`);
    const port = consolePort(env);
    // The console continues while the server restarts.
    let console: { close(): void } | undefined;
    let areKeysRead = false;
    const readKeys = (tasks: readonly string[]) => {
      if (areKeysRead) return readKeysAgain(process.stdin);
      if (tasks.length === 0) return;
      const purpose = `runs each task now: ${tasks.join(', ')}`;
      const keys = new Map([['t', { purpose, run: () => server.runTasks() }]]);
      areKeysRead = listenForKeys(process.stdin, keys, (thrown) => error(String(thrown)));
      if (areKeysRead) log(`The key t ${purpose}.`);
    };
    const server = new RestartedServer({
      root,
      env: {},
      log,
      onListening({ port: serverPort, pcrsName, tasks }) {
        readKeys(tasks);
        const url = `http://127.0.0.1:${serverPort}`;
        console ??= startConsole({
          port,
          log,
          link: `#/enclave?url=${encodeURIComponent(url)}`,
          development: () => ({
            command: 'sui-enclave dev',
            started: [url],
            files: pcrsName === undefined ? {} : developmentFiles(folder, ['dev-root.pem', pcrsName]),
          }),
        });
      },
      onFailedStart: (code) => process.exit(code),
    });
    endOnSignal((signal) => {
      console?.close();
      return server.end(signal);
    });
    return { json: {} };
  },
});

if (import.meta.main) await runAsProcess(main);
