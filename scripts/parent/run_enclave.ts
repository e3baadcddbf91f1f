/** On the parent: runs the image in an enclave. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readArguments, runMain, Usage, wholeNumber } from '../command.ts';
import { NitroFailed, WrongState } from './errors.ts';
import { loadImage } from './image.ts';
import { type Enclave, enclavesNamed, memoryFor, runEnclave, terminateEnclave } from './nitro_cli.ts';
import { lastEnd, reportsService, reportsSize } from './reports.ts';
import { ensureRunning, stateFolder } from './services.ts';

const USAGE = `usage: npm run run_enclave -- [--debug] [--eif out/nitro.eif] [--name sui-enclave] [--cpus 2] [--memory MIB]

Runs the image in an enclave of that name, with four times its size of memory unless told, and listens for
what it reports. --debug shows its console; its registers are zero then, and it must not be registered.`;

async function main(): Promise<void> {
  const { values } = readArguments(USAGE, {
    debug: { type: 'boolean', default: false },
    eif: { type: 'string', default: 'out/nitro.eif' },
    name: { type: 'string', default: 'sui-enclave' },
    cpus: { type: 'string', default: '2' },
    memory: { type: 'string' },
  });
  const { name, eif, debug } = values;
  const { bytes, pcr0 } = loadImage(eif);
  const needed = memoryFor(bytes);
  const memoryMib = values.memory === undefined ? needed : wholeNumber('memory', values.memory, 1, 1024 ** 2);
  if (memoryMib < needed) throw new Usage(`--memory must be at least ${needed} MiB: four times the image`);
  if (enclavesNamed(name).length > 0) {
    throw new WrongState(`an enclave named ${name} runs already: run stop_enclave first`);
  }
  const cpus = wholeNumber('cpus', values.cpus, 1, 1024);
  const dir = stateFolder(process.env, name);
  await ensureRunning(dir, reportsService(dir));
  const told = reportsSize(dir);
  let enclave: Enclave;
  try {
    enclave = runEnclave({ name, eif, cpus, memoryMib, debug });
  } catch (error) {
    const end = lastEnd(dir, told);
    if (!(error instanceof NitroFailed) || end === undefined) throw error;
    throw new NitroFailed(`${error.message}\nThe enclave said: ${end}`);
  }
  const measured = enclavesNamed(name)[0]?.Measurements?.PCR0;
  if (!debug && measured !== undefined && measured !== pcr0) {
    terminateEnclave(enclave.EnclaveID);
    throw new WrongState(`the enclave was ended: its PCR0 is ${measured}, and the image's is ${pcr0}`);
  }
  console.log(`${enclave.EnclaveID} runs as CID ${enclave.EnclaveCID} with ${memoryMib} MiB.`);
  if (debug) {
    console.log(
      'It runs in debug mode: its registers are zero, it proves nothing, and it must not be registered.',
    );
    await showConsole(enclave);
  } else {
    console.log(`PCR0 ${pcr0}\nNext: npm run expose_enclave -- --secrets FILE`);
  }
}

/** Until it ends, or this process is to end: then its console ends with it. */
async function showConsole({ EnclaveID }: Enclave): Promise<void> {
  const child = spawn('nitro-cli', ['console', '--enclave-id', EnclaveID], { stdio: 'inherit' });
  process.once('SIGTERM', () => child.kill('SIGTERM'));
  await once(child, 'close');
}

await runMain(main);
