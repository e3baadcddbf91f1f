/** `sui-enclave stop_enclave`: on the parent instance, stops what run_enclave and expose_enclave started. */
import { command, runAsProcess } from '../command.ts';
import { enclaveName } from '../values.ts';
import { enclavesNamed, terminateEnclave } from './nitro_cli.ts';
import { stateFolder, stopServices } from './services.ts';

export const main = command({
  name: 'stop_enclave',
  purpose: 'Stops the enclaves of this name and the processes that were started for them, and nothing else.',
  arguments: {},
  options: {
    name: { value: '<name>', help: 'their name', schema: enclaveName, default: 'sui-enclave' },
  },
  async run({ options: { name } }, { env, io }) {
    const stopped = await stopServices(stateFolder(env, name));
    for (const service of stopped) io.log(`${service}: stopped`);
    const enclaves = enclavesNamed(env, name);
    for (const { EnclaveID } of enclaves) {
      terminateEnclave(env, EnclaveID);
      io.log(`${EnclaveID}: terminated`);
    }
    if (enclaves.length === 0) io.log(`no enclave named ${name} runs`);
    return { json: { stopped, terminated: enclaves.map(({ EnclaveID }) => EnclaveID) } };
  },
});

if (import.meta.main) await runAsProcess(main);
