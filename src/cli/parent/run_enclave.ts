/** `sui-enclave run_enclave`: on the parent instance, runs the image in an enclave. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { Image } from 'sui-enclave/attestation';
import type { Manifest } from 'sui-enclave-server/manifest';
import {
  type Context,
  command,
  type Environment,
  type Result,
  runAsProcess,
  UsageError,
} from '../command.ts';
import { enclaveName, path } from '../values.ts';
import { ParentError } from './errors.ts';
import { notifyReady, recordImage, runningEnclave, runningImagePath, watchEnclave } from './foreground.ts';
import { KEY_LOST } from './host_faults.ts';
import { loadImage, readManifest, requireRegisters } from './image.ts';
import {
  chooseMemory,
  enclavesNamed,
  type RunningEnclave,
  runEnclave,
  runningEnclaves,
  SIZE_OPTIONS,
  terminateEnclave,
} from './nitro_cli.ts';
import {
  createConf,
  ensureRelay,
  findFreeCid,
  readConf,
  removeConf,
  reportsFolder,
  writeConf,
} from './relay.ts';
import { lastEnd, reportsSize } from './reports.ts';
import { stateFolder } from './services.ts';

export const main = command({
  name: 'run_enclave',
  purpose:
    "Runs the image in an enclave, and keeps its reports: starts this instance's relay, if it does not run.",
  example: '--cpus 2 --memory 1024',
  arguments: {},
  options: {
    debug: {
      help: 'run it in debug mode and show its console: its registers are zeros, and it must not be registered',
    },
    foreground: {
      help: 'stay as long as the enclave runs, for systemd: see below',
    },
    eif: { value: '<file>', help: 'the image', schema: path, default: 'out/nitro.eif' },
    name: { value: '<name>', help: 'the name of the enclave', schema: enclaveName, default: 'sui-enclave' },
    ...SIZE_OPTIONS,
  },
  notes: `With --foreground, the process runs until the enclave ends, and then prints what the enclave reported. SIGTERM terminates
the enclave. If an enclave of this name and image runs already, the process watches it and starts no other enclave, since a new
enclave would have a new key.`,
  async run({ options: { debug, foreground, eif, name, cpus, memory } }, context) {
    const { env, io, asJson } = context;
    const { bytes, eif: content, registers } = loadImage(eif);
    const { pcr0 } = registers;
    const memoryMib = chooseMemory(memory, bytes);
    const start = { name, eif, registers, manifest: readManifest(content), cpus, memoryMib, debug };
    if (foreground) {
      if (debug) throw new UsageError('give either --foreground or --debug');
      return await runInForeground(start, pcr0, context);
    }
    if (enclavesNamed(env, name).length > 0) {
      throw new ParentError(
        'WRONG_STATE',
        `an enclave named ${name} runs already: give another --name, or run stop_enclave first (${KEY_LOST})`,
      );
    }
    requireRegisters(eif, registers);
    const enclave = await startEnclave(env, start);
    if (!debug) await requirePcr0(env, name, enclave, pcr0);
    io.log(`${enclave.EnclaveID} runs as CID ${enclave.EnclaveCID} with ${memoryMib} MiB.`);
    if (debug) {
      io.log(
        'It runs in debug mode: its registers are zero, its attestation proves nothing, and it must not be registered.',
      );
      await showConsole(env, enclave, asJson);
    } else {
      io.log(`PCR0 ${pcr0}\nNext: expose_enclave --secrets <file>`);
    }
    const { EnclaveID: id, EnclaveCID: cid } = enclave;
    return { json: { id, cid, memoryMib, debug, ...(!debug && { pcr0 }) } };
  },
});

/**
 * Terminates an enclave if nitro-cli has measured the PCR0 of another image.
 *
 * @throws ParentError: WRONG_STATE
 */
async function requirePcr0(
  env: Environment,
  name: string,
  { EnclaveID }: RunningEnclave,
  pcr0: string,
): Promise<void> {
  const measured = enclavesNamed(env, name)[0]?.Measurements?.PCR0;
  if (measured === undefined || measured === pcr0) return;
  terminateEnclave(env, EnclaveID);
  await removeConf(env, name);
  throw new ParentError(
    'WRONG_STATE',
    `the enclave was terminated: its PCR0 is ${measured}, and the image's is ${pcr0}`,
  );
}

/** Runs an enclave until its end. @throws ParentError: ENCLAVE_ENDED, and the errors of a start */
async function runInForeground(options: Start, pcr0: string, { env, io }: Context): Promise<Result> {
  const { name, memoryMib } = options;
  // SIGTERM is handled from the first moment: an interrupted start would leave an enclave that no
  // process watches.
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort());
  const dir = stateFolder(env, name);
  const reports = reportsFolder(env, name);
  const running = await runningEnclave(env, name, pcr0, dir);
  const from = running === undefined ? reportsSize(reports) : 0;
  // The file may have changed since it was installed.
  if (running === undefined) requireRegisters(options.eif, options.registers);
  // The image is recorded before the start, so that the next process knows it, however this process ends.
  const enclave = running ?? (await startEnclave(env, { ...options, eif: recordImage(dir, options.eif) }));
  const { EnclaveID: id, EnclaveCID: cid } = enclave;
  if (running === undefined) {
    await requirePcr0(env, name, enclave, pcr0);
    io.log(`${id} runs as CID ${cid} with ${memoryMib} MiB. PCR0 ${pcr0}`);
  } else {
    await connect(env, options, enclave, { pcr0, dir }).catch((error) => {
      // The enclave must be watched even if the relay does not serve it.
      if (!(error instanceof ParentError)) throw error;
      io.error(`${error.code}: ${error.message}`);
    });
    io.log(`${id} runs already as CID ${cid}: watching it`);
  }
  notifyReady(env, `${id} runs as CID ${cid}`);
  await watchEnclave(env, io, enclave, { reports, from, stop: stop.signal });
  await removeConf(env, name);
  return { json: { status: 'terminated', id, cid }, text: `${id} was terminated` };
}

/** Tells the relay about an enclave that runs already, whose file may have been written for another start. */
async function connect(
  env: Environment,
  { name, eif }: Start,
  { EnclaveCID, Measurements }: RunningEnclave,
  { pcr0, dir }: { pcr0: string; dir: string },
): Promise<void> {
  if (Measurements?.PCR0 === pcr0 || !existsSync(runningImagePath(dir))) recordImage(dir, eif);
  const imagePath = runningImagePath(dir);
  if (readConf(env, name)?.cid !== EnclaveCID) {
    writeConf(env, name, createConf(EnclaveCID, readManifest(loadImage(imagePath).eif), []));
  }
  await ensureRelay(env, imagePath, name);
}

interface Start {
  readonly name: string;
  readonly eif: string;
  readonly registers: Image;
  readonly manifest: Manifest;
  readonly cpus: number;
  readonly memoryMib: number;
  readonly debug: boolean;
}

/** Starts an enclave. @throws ParentError: NITRO_FAILED, with the enclave's report if its boot failed */
async function startEnclave(env: Environment, options: Start): Promise<RunningEnclave> {
  const { name, eif, manifest } = options;
  stateFolder(env, name);
  const reports = reportsFolder(env, name);
  const cid = findFreeCid(
    env,
    runningEnclaves(env).map(({ EnclaveCID }) => EnclaveCID),
  );
  // The file is written before the enclave boots, so that its first reports are kept.
  writeConf(env, name, createConf(cid, manifest, []));
  await ensureRelay(env, eif, name);
  const reportsStart = reportsSize(reports);
  try {
    return runEnclave(env, { ...options, cid });
  } catch (error) {
    const end = lastEnd(reports, reportsStart);
    await removeConf(env, name);
    if (!(error instanceof ParentError && error.code === 'NITRO_FAILED') || end === undefined) throw error;
    throw new ParentError('NITRO_FAILED', `${error.message}\nThe enclave reported: ${end}`);
  }
}

/**
 * Shows the console until it ends, or until SIGTERM ends this process and the console with it.
 *
 * @param asJson whether the console is shown on standard error, since standard output is for JSON only
 */
async function showConsole(env: Environment, { EnclaveID }: RunningEnclave, asJson: boolean): Promise<void> {
  const child = spawn('nitro-cli', ['console', '--enclave-id', EnclaveID], {
    env,
    stdio: ['inherit', asJson ? 2 : 'inherit', 'inherit'],
  });
  process.once('SIGTERM', () => child.kill('SIGTERM'));
  await once(child, 'close');
}

if (import.meta.main) await runAsProcess(main);
