/** On the parent: forwards to the server and to its endpoints, and passes the secrets to the enclave. */
import { readFileSync, writeFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import type { Manifest } from '../../src/app.ts';
import { type Context, command, type Environment, integer, runAsProcess, UsageError } from '../command.ts';
import type { EnclaveImage } from './image.ts';
import type { RunningEnclave } from './nitro_cli.ts';

interface Options {
  readonly eif: string;
  readonly name: string;
  readonly debug: boolean;
  readonly secrets?: string | undefined;
  readonly 'secret-id'?: string | undefined;
}

export const main = command({
  usage: `usage: npm run expose_enclave -- [--secrets FILE | --secrets - | --secret-id ID] [--eif out/nitro.eif]
         [--name sui-enclave] [--address 0.0.0.0] [--port 3000] [--debug]

Forwards the parent's port to the server in the enclave, and the endpoints that its image names to their hosts; then
passes the secrets to the enclave, from a file, standard input or AWS Secrets Manager. May be run again at any time:
what runs as it should is left alone. --debug passes secrets to an enclave in debug mode too: its memory and console
can be read.`,
  options: {
    secrets: { type: 'string' },
    'secret-id': { type: 'string' },
    eif: { type: 'string', default: 'out/nitro.eif' },
    name: { type: 'string', default: 'sui-enclave' },
    debug: { type: 'boolean', default: false },
    address: { type: 'string', default: '0.0.0.0' },
    port: { type: 'string', default: '3000' },
  },
  async run({ values }, context) {
    const { env, io } = context;
    if (!isIPv4(values.address)) throw new UsageError('--address must be an IPv4 address');
    const port = integer('port', values.port, 1, 65_535);
    const listen = { address: values.address, port };
    const { handOver, isReady, proxyConfig, proxyConfigPath, servicesOf } = await import('./expose.ts');
    const { loadImage, manifestOf } = await import('./image.ts');
    const { reportsPath } = await import('./reports.ts');
    const { ensureRunning, requireRunning, stateFolder } = await import('./services.ts');
    const image = loadImage(values.eif);
    const manifest = manifestOf(image.eif);
    // Checked before anything is started: a mistake in the secrets must not leave only some services running.
    const secrets = manifest.secrets.length === 0 ? undefined : await readSecrets(values, manifest, context);
    const { EnclaveCID: cid } = await runningEnclave(env, values, image, secrets !== undefined);
    const dir = stateFolder(env, values.name);
    writeFileSync(proxyConfigPath(dir), proxyConfig(manifest));
    const services = servicesOf(env, cid, manifest, listen, dir);
    let hasSecrets = true;
    const states = await ensureRunning(env, dir, services);
    for (const [index, { name }] of services.entries()) io.log(`${name}: ${states[index]}`);
    if (await isReady(listen)) {
      io.log('The enclave has its secrets.');
    } else if (secrets === undefined) {
      hasSecrets = false;
      io.log(
        `The enclave waits for its secrets: ${manifest.secrets.join(', ')}. Give --secrets or --secret-id.`,
      );
    } else {
      await handOver(env, cid, secrets, listen);
      io.log('The enclave has accepted its secrets.');
    }
    requireRunning(dir, services);
    io.log(`It answers on port ${port}; its reports are in ${reportsPath(dir)}.`);
    return {
      json: {
        services: Object.fromEntries(services.map(({ name }, index) => [name, states[index]])),
        hasSecrets,
        port,
        reports: reportsPath(dir),
      },
    };
  },
});

/** @throws ParentError: WRONG_STATE, if none or another image runs, or if one in debug mode would get secrets */
async function runningEnclave(
  env: Environment,
  { eif, name, debug }: Options,
  image: EnclaveImage,
  getsSecrets: boolean,
): Promise<RunningEnclave> {
  const { ParentError } = await import('./errors.ts');
  const { enclavesNamed } = await import('./nitro_cli.ts');
  const { lastEnd } = await import('./reports.ts');
  const { stateFolder } = await import('./services.ts');
  const enclave = enclavesNamed(env, name)[0];
  if (!enclave) {
    const end = lastEnd(stateFolder(env, name));
    const last = end === undefined ? '' : `; the last one reported: ${end}`;
    throw new ParentError('WRONG_STATE', `no enclave named ${name} runs: run run_enclave first${last}`);
  }
  if (enclave.Flags?.includes('DEBUG_MODE') && getsSecrets && !debug) {
    throw new ParentError(
      'WRONG_STATE',
      'the enclave runs in debug mode, and can keep no secret: give --debug to pass them anyway',
    );
  }
  const pcr0 = enclave.Measurements?.PCR0;
  if (pcr0 !== undefined && pcr0 !== image.pcr0) {
    throw new ParentError('WRONG_STATE', `another image than ${eif} runs: its PCR0 is ${pcr0}`);
  }
  return enclave;
}

/** Reads the secrets from a file, standard input or Secrets Manager: every process could read an argument. */
async function readSecrets(
  { secrets, 'secret-id': id }: Options,
  manifest: Manifest,
  { env, io }: Context,
): Promise<string | undefined> {
  const { checkSecrets } = await import('./expose.ts');
  if (secrets !== undefined && id !== undefined) throw new UsageError('give either --secrets or --secret-id');
  if (id !== undefined) return checkSecrets(await fromSecretsManager(env, id), manifest);
  if (secrets === undefined) return undefined;
  try {
    return checkSecrets(secrets === '-' ? io.stdin() : readFileSync(secrets, 'utf8'), manifest);
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) throw new UsageError(`${secrets} can't be read`);
    throw error;
  }
}

async function fromSecretsManager(env: Environment, id: string): Promise<string> {
  const { ParentError } = await import('./errors.ts');
  const { run } = await import('./programs.ts');
  const get = ['secretsmanager', 'get-secret-value', '--secret-id', id];
  const { status, stdout } = run(env, 'aws', [...get, '--query', 'SecretString', '--output', 'text']);
  if (status !== 0) {
    throw new ParentError(
      'PROGRAM_FAILED',
      `aws could not read the secret ${id}: does this instance's role allow it?`,
    );
  }
  return stdout;
}

if (import.meta.main) await runAsProcess(main);
