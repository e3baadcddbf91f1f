/** `sui-enclave stop_enclave`: on the parent instance, stops what run_enclave and expose_enclave started. */
import { command, runAsProcess } from '../command.ts';
import { enclaveName } from '../values.ts';
import { enclavesNamed, terminateEnclave } from './nitro_cli.ts';
import { removeConf } from './relay.ts';

export const main = command({
  name: 'stop_enclave',
  purpose:
    "Stops the enclaves of this name, and closes what was open for them, and nothing else. After the last one, this instance's\nrelay is stopped too.",
  example: '--name sui-enclave',
  arguments: {},
  options: {
    name: { value: '<name>', help: 'their name', schema: enclaveName, default: 'sui-enclave' },
  },
  async run({ options: { name } }, { env, io }) {
    const enclaves = enclavesNamed(env, name);
    for (const { EnclaveID } of enclaves) {
      terminateEnclave(env, EnclaveID);
      io.log(`${EnclaveID}: terminated`);
    }
    if (enclaves.length === 0) io.log(`no enclave named ${name} runs`);
    const stopped = (await removeConf(env, name)) ? ['relay'] : [];
    for (const service of stopped) io.log(`${service}: stopped`);
    return { json: { stopped, terminated: enclaves.map(({ EnclaveID }) => EnclaveID) } };
  },
});

if (import.meta.main) await runAsProcess(main);
