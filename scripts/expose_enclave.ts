/**
 * On the parent: `npm run expose_enclave -- [--secrets FILE | --secrets - | --secret-id ID] [--app weather]
 * [--name sui-enclave] [--address 0.0.0.0] [--port 3000]`. May be run again: what runs as it should is left alone.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Manifest, parseManifest } from '../src/app.ts';
import { runMain } from './command.ts';
import { ProgramFailed, Usage, WrongState } from './parent/errors.ts';
import {
  checkSecrets,
  handOver,
  isReady,
  proxyConfig,
  proxyConfigPath,
  servicesOf,
} from './parent/expose.ts';
import { enclavesNamed } from './parent/nitro_cli.ts';
import { run } from './parent/programs.ts';
import { lastEnd, reportsPath } from './parent/reports.ts';
import { ensureRunning, stateFolder } from './parent/services.ts';

const APPS = fileURLToPath(new URL('../src/apps', import.meta.url));

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      secrets: { type: 'string' },
      'secret-id': { type: 'string' },
      app: { type: 'string', default: 'weather' },
      name: { type: 'string', default: 'sui-enclave' },
      address: { type: 'string', default: '0.0.0.0' },
      port: { type: 'string', default: '3000' },
    },
  });
  if (!/^[1-9]\d{0,4}$/.test(values.port)) throw new Usage('--port must be a port');
  if (!/^[\d.]{7,15}$/.test(values.address)) throw new Usage('--address must be an IPv4 address');
  const port = Number(values.port);
  const manifest = readManifest(values.app);
  // Before anything is started: a mistake in the file should not leave half of it.
  const secrets = manifest.secrets.length === 0 ? undefined : readSecrets(values, manifest);
  const enclave = enclavesNamed(values.name)[0];
  const dir = stateFolder(process.env);
  if (!enclave) {
    const end = lastEnd(dir);
    const last = end === undefined ? '' : `; the last one said: ${end}`;
    throw new WrongState(`no enclave named ${values.name} runs: run run_enclave first${last}`);
  }
  writeFileSync(proxyConfigPath(dir), proxyConfig(manifest));
  for (const service of servicesOf(enclave.EnclaveCID, manifest, { address: values.address, port }, dir)) {
    console.log(`${service.name}: ${await ensureRunning(dir, service)}`);
  }
  if (await isReady(port)) {
    console.log('The enclave has its secrets.');
  } else if (secrets === undefined) {
    console.log(
      `The enclave waits for its secrets: ${manifest.secrets.join(', ')}. Give --secrets or --secret-id.`,
    );
  } else {
    handOver(enclave.EnclaveCID, secrets);
    console.log('The enclave has taken its secrets.');
  }
  console.log(`It answers on port ${port}; its reports are in ${reportsPath(dir)}.`);
}

function readManifest(app: string): Manifest {
  if (!/^[a-z][a-z0-9_-]{0,63}$/.test(app)) throw new Usage('--app must be a folder of src/apps');
  try {
    return parseManifest(readFileSync(join(APPS, app, 'app.yaml'), 'utf8'));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      throw new Usage(`there is no application ${app} in src/apps`);
    }
    throw error;
  }
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
