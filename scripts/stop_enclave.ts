/** On the parent: `npm run stop_enclave -- [--name sui-enclave]`: ends what run_enclave and expose_enclave started. */
import { parseArgs } from 'node:util';
import { runMain } from './command.ts';
import { enclavesNamed, terminateEnclave } from './parent/nitro_cli.ts';
import { stateFolder, stopServices } from './parent/services.ts';

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { name: { type: 'string', default: 'sui-enclave' } } });
  for (const name of await stopServices(stateFolder(process.env))) console.log(`${name}: stopped`);
  const enclaves = enclavesNamed(values.name);
  for (const { EnclaveID } of enclaves) {
    terminateEnclave(EnclaveID);
    console.log(`${EnclaveID}: terminated`);
  }
  if (enclaves.length === 0) console.log(`no enclave named ${values.name} runs`);
}

await runMain(main);
