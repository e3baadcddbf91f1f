/** On the parent: leads the way in to the server and out to its endpoints, and hands the secrets over. */
import { readFileSync, writeFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import type { Manifest } from '../../src/app.ts';
import { readArguments, runMain, Usage, wholeNumber } from '../command.ts';
import { ProgramFailed, WrongState } from './errors.ts';
import { checkSecrets, handOver, isReady, proxyConfig, proxyConfigPath, servicesOf } from './expose.ts';
import { loadImage, manifestOf } from './image.ts';
import { enclavesNamed } from './nitro_cli.ts';
import { run } from './programs.ts';
import { lastEnd, reportsPath } from './reports.ts';
import { ensureRunning, requireRunning, stateFolder } from './services.ts';

const USAGE = `usage: npm run expose_enclave -- [--secrets FILE | --secrets - | --secret-id ID] [--eif out/nitro.eif]
         [--name sui-enclave] [--address 0.0.0.0] [--port 3000] [--debug]

Leads the parent's port to the server in the enclave, and the endpoints that its image names to their hosts;
then hands the secrets over, from a file, standard input or AWS' Secrets Manager. May be run again at any time:
what runs as it should is left alone. --debug hands secrets to an enclave in debug mode too: its memory and console
can be read.`;

async function main(): Promise<void> {
  const { values } = readArguments(USAGE, {
    secrets: { type: 'string' },
    'secret-id': { type: 'string' },
    eif: { type: 'string', default: 'out/nitro.eif' },
    name: { type: 'string', default: 'sui-enclave' },
    debug: { type: 'boolean', default: false },
    address: { type: 'string', default: '0.0.0.0' },
    port: { type: 'string', default: '3000' },
  });
  if (!isIPv4(values.address)) throw new Usage('--address must be an IPv4 address');
  const port = wholeNumber('port', values.port, 1, 65_535);
  const listen = { address: values.address, port };
  const image = loadImage(values.eif);
  const manifest = manifestOf(image.eif);
  // Before anything is started: a mistake in the file should not leave half of it.
  const secrets = manifest.secrets.length === 0 ? undefined : readSecrets(values, manifest);
  const enclave = enclavesNamed(values.name)[0];
  const dir = stateFolder(process.env, values.name);
  if (!enclave) {
    const end = lastEnd(dir);
    const last = end === undefined ? '' : `; the last one said: ${end}`;
    throw new WrongState(`no enclave named ${values.name} runs: run run_enclave first${last}`);
  }
  if (enclave.Flags?.includes('DEBUG_MODE') && secrets !== undefined && !values.debug) {
    throw new WrongState(
      'the enclave runs in debug mode, and can keep no secret: give --debug to hand them over',
    );
  }
  const pcr0 = enclave.Measurements?.PCR0;
  if (pcr0 !== undefined && pcr0 !== image.pcr0) {
    throw new WrongState(`another image than ${values.eif} runs: its PCR0 is ${pcr0}`);
  }
  writeFileSync(proxyConfigPath(dir), proxyConfig(manifest));
  const services = servicesOf(enclave.EnclaveCID, manifest, listen, dir);
  for (const service of services) {
    console.log(`${service.name}: ${await ensureRunning(dir, service)}`);
  }
  if (await isReady(listen)) {
    console.log('The enclave has its secrets.');
  } else if (secrets === undefined) {
    console.log(
      `The enclave waits for its secrets: ${manifest.secrets.join(', ')}. Give --secrets or --secret-id.`,
    );
  } else {
    await handOver(enclave.EnclaveCID, secrets, listen);
    console.log('The enclave has taken its secrets.');
  }
  requireRunning(dir, services);
  console.log(`It answers on port ${port}; its reports are in ${reportsPath(dir)}.`);
}

/** From a file, standard input or AWS' Secrets Manager: never from an argument, which every process can read. */
function readSecrets(
  { secrets, 'secret-id': id }: { secrets?: string | undefined; 'secret-id'?: string | undefined },
  manifest: Manifest,
): string | undefined {
  if (secrets !== undefined && id !== undefined) throw new Usage('give either --secrets or --secret-id');
  if (id !== undefined) {
    const query = ['--query', 'SecretString', '--output', 'text'];
    const { status, stdout } = run('aws', [
      'secretsmanager',
      'get-secret-value',
      '--secret-id',
      id,
      ...query,
    ]);
    if (status !== 0)
      throw new ProgramFailed(`aws could not read the secret ${id}: may this instance's role?`);
    return checkSecrets(stdout, manifest);
  }
  if (secrets === undefined) return undefined;
  try {
    return checkSecrets(readFileSync(secrets === '-' ? 0 : secrets, 'utf8'), manifest);
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) throw new Usage(`${secrets} can't be read`);
    throw error;
  }
}

await runMain(main);
