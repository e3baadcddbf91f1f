/** On the parent: stops what run_enclave and expose_enclave started. */
import { command, runAsProcess } from '../command.ts';

export const main = command({
  usage: `usage: npm run stop_enclave -- [--name sui-enclave]

Stops the enclaves of that name and what was started for them, and nothing else.`,
  options: { name: { type: 'string', default: 'sui-enclave' } },
  async run({ values: { name } }, { env, io }) {
    const { enclavesNamed, terminateEnclave } = await import('./nitro_cli.ts');
    const { stateFolder, stopServices } = await import('./services.ts');
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
