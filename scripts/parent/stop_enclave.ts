/** On the parent: ends what run_enclave and expose_enclave started. */
import { readArguments, runMain } from '../command.ts';
import { enclavesNamed, terminateEnclave } from './nitro_cli.ts';
import { stateFolder, stopServices } from './services.ts';

const USAGE = `usage: npm run stop_enclave -- [--name sui-enclave]

Ends the enclaves of that name and what was started for them, and nothing else.`;

async function main(): Promise<void> {
  const { values } = readArguments(USAGE, { name: { type: 'string', default: 'sui-enclave' } });
  for (const name of await stopServices(stateFolder(process.env, values.name)))
    console.log(`${name}: stopped`);
  const enclaves = enclavesNamed(values.name);
  for (const { EnclaveID } of enclaves) {
    terminateEnclave(EnclaveID);
    console.log(`${EnclaveID}: terminated`);
  }
  if (enclaves.length === 0) console.log(`no enclave named ${values.name} runs`);
}

await runMain(main);
