/** On the parent: runs the image in an enclave. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { command, type Environment, integer, runAsProcess } from '../command.ts';
import type { RunningEnclave } from './nitro_cli.ts';

export const main = command({
  usage: `usage: npm run run_enclave -- [--debug] [--eif out/nitro.eif] [--name sui-enclave] [--cpus 2] [--memory MIB]

Runs the image in an enclave of that name, by default with four times the image's size of memory, and listens for its
reports. --debug shows its console; its registers are zero then, and it must not be registered.`,
  options: {
    debug: { type: 'boolean', default: false },
    eif: { type: 'string', default: 'out/nitro.eif' },
    name: { type: 'string', default: 'sui-enclave' },
    cpus: { type: 'string', default: '2' },
    memory: { type: 'string' },
  },
  async run({ values }, { env, io, asJson }) {
    const { loadImage } = await import('./image.ts');
    const { enclavesNamed, memoryOf, terminateEnclave } = await import('./nitro_cli.ts');
    const { ParentError } = await import('./errors.ts');
    const { name, eif, debug } = values;
    const {
      bytes,
      registers: { pcr0 },
    } = loadImage(eif);
    const memoryMib = memoryOf(values.memory, bytes);
    const cpus = integer('cpus', values.cpus, 1, 1024);
    if (enclavesNamed(env, name).length > 0) {
      throw new ParentError('WRONG_STATE', `an enclave named ${name} runs already: run stop_enclave first`);
    }
    const enclave = await start(env, { name, eif, cpus, memoryMib, debug });
    const measured = enclavesNamed(env, name)[0]?.Measurements?.PCR0;
    if (!debug && measured !== undefined && measured !== pcr0) {
      terminateEnclave(env, enclave.EnclaveID);
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
      io.log(`PCR0 ${pcr0}\nNext: npm run expose_enclave -- --secrets FILE`);
    }
    const { EnclaveID: id, EnclaveCID: cid } = enclave;
    return { json: { id, cid, memoryMib, debug, ...(!debug && { pcr0 }) } };
  },
});

interface Start {
  readonly name: string;
  readonly eif: string;
  readonly cpus: number;
  readonly memoryMib: number;
  readonly debug: boolean;
}

/** @throws ParentError: NITRO_FAILED, with what the enclave reported if it ended during its boot */
async function start(env: Environment, options: Start): Promise<RunningEnclave> {
  const { ParentError } = await import('./errors.ts');
  const { runEnclave } = await import('./nitro_cli.ts');
  const { lastEnd, reportsService, reportsSize } = await import('./reports.ts');
  const { ensureRunning, stateFolder } = await import('./services.ts');
  const dir = stateFolder(env, options.name);
  await ensureRunning(env, dir, [reportsService(dir)]);
  const before = reportsSize(dir);
  try {
    return runEnclave(env, options);
  } catch (error) {
    const end = lastEnd(dir, before);
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
