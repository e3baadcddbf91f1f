/** `sui-enclave run_enclave`: on the parent instance, runs the image in an enclave. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { command, type Environment, runAsProcess } from '../command.ts';
import { enclaveName, integer, path } from '../values.ts';
import { ParentError } from './errors.ts';
import { loadImage, manifestOf } from './image.ts';
import {
  enclavesNamed,
  memoryOf,
  type RunningEnclave,
  runEnclave,
  runningEnclaves,
  terminateEnclave,
} from './nitro_cli.ts';
import { confOf, ensureRelay, freeCid, removeConf, writeConf } from './relay.ts';
import { lastEnd, reportsSize } from './reports.ts';
import { stateFolder } from './services.ts';

export const main = command({
  name: 'run_enclave',
  purpose:
    "Runs the image in an enclave, and keeps its reports: starts this instance's relay, if it does not run.",
  arguments: {},
  options: {
    debug: {
      help: 'run it in debug mode and show its console: its registers are zeros, and it must not be registered',
    },
    eif: { value: '<file>', help: 'the image', schema: path, default: 'out/nitro.eif' },
    name: { value: '<name>', help: 'the name of the enclave', schema: enclaveName, default: 'sui-enclave' },
    cpus: {
      value: '<number>',
      help: 'the number of CPUs for the enclave',
      schema: integer(1, 1024),
      default: '2',
    },
    memory: {
      value: '<MiB>',
      help: "memory of the enclave (default: four times the image's size)",
      schema: integer(1, 1024 ** 2),
    },
  },
  async run({ options: { debug, eif, name, cpus, memory } }, { env, io, asJson }) {
    const {
      bytes,
      eif: content,
      registers: { pcr0 },
    } = loadImage(eif);
    const memoryMib = memoryOf(memory, bytes);
    const running = runningEnclaves(env);
    if (running.some(({ EnclaveName }) => EnclaveName === name)) {
      throw new ParentError('WRONG_STATE', `an enclave named ${name} runs already: run stop_enclave first`);
    }
    const cid = freeCid(
      env,
      running.map(({ EnclaveCID }) => EnclaveCID),
    );
    // Before the enclave boots, so that its first reports are kept.
    writeConf(env, name, confOf(cid, manifestOf(content), []));
    const enclave = await start(env, { name, eif, cid, cpus, memoryMib, debug });
    const measured = enclavesNamed(env, name)[0]?.Measurements?.PCR0;
    if (!debug && measured !== undefined && measured !== pcr0) {
      terminateEnclave(env, enclave.EnclaveID);
      await removeConf(env, name);
      throw new ParentError(
        'WRONG_STATE',
        `the enclave was terminated: its PCR0 is ${measured}, and the image's is ${pcr0}`,
      );
    }
    io.log(`${enclave.EnclaveID} runs as CID ${enclave.EnclaveCID} with ${memoryMib} MiB.`);
    if (debug) {
      io.log(
        'It runs in debug mode: its registers are zero, its attestation proves nothing, and it must not be registered.',
      );
      await showConsole(env, enclave, asJson);
    } else {
      io.log(`PCR0 ${pcr0}\nNext: expose_enclave --secrets <file>`);
    }
    return { json: { id: enclave.EnclaveID, cid, memoryMib, debug, ...(!debug && { pcr0 }) } };
  },
});

interface Start {
  readonly name: string;
  readonly eif: string;
  readonly cid: number;
  readonly cpus: number;
  readonly memoryMib: number;
  readonly debug: boolean;
}

/** @throws ParentError: NITRO_FAILED, with what the enclave reported if it ended during its boot */
async function start(env: Environment, options: Start): Promise<RunningEnclave> {
  const dir = stateFolder(env, options.name);
  await ensureRelay(env, options.eif, options.name);
  const before = reportsSize(dir);
  try {
    return runEnclave(env, options);
  } catch (error) {
    const end = lastEnd(dir, before);
    await removeConf(env, options.name);
    if (!(error instanceof ParentError && error.code === 'NITRO_FAILED') || end === undefined) throw error;
    throw new ParentError('NITRO_FAILED', `${error.message}\nThe enclave reported: ${end}`);
  }
}

/**
 * Shows the console until it ends, or until SIGTERM ends this process and the console with it.
 *
 * @param asJson shows it on standard error, as standard output is for the result alone
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
