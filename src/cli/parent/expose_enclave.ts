import { certificatesFromPem } from 'sui-enclave/attestation';
import { type ProvisionerKey, sealSecrets } from 'sui-enclave/sealing/secrets';
import type { Manifest } from 'sui-enclave-server/manifest';
import {
  type Context,
  command,
  type Environment,
  readFileArgument,
  runAsProcess,
  UsageError,
} from '../command.ts';
import { attest, type Requirements } from '../provision/enclave.ts';
import { readProvisionerKey } from '../provision/files.ts';
import {
  CONFIG_OPTIONS,
  type ConfigOptions,
  checkConfigOptions,
  requireNoOpenConfig,
} from '../provision/open_config.ts';
import { readRegularFile } from '../read_file.ts';
import { enclaveName, integer, ipv4, path, text } from '../values.ts';
import { ParentError } from './errors.ts';
import {
  checkSecrets,
  createExposedConf,
  formatUrl,
  handOver,
  type Listen,
  waitForServer,
} from './expose.ts';
import { type EnclaveImage, loadImage, readConfig, readManifest } from './image.ts';
import { enclavesNamed, type RunningEnclave } from './nitro_cli.ts';
import { run } from './programs.ts';
import { ensureRelay, findRelay, reportsFolder, requireRelay, writeConf } from './relay.ts';
import { lastEnd, reportsPath } from './reports.ts';
import { stateFolder } from './services.ts';

/** Time limit of a request for the attestation document, in milliseconds. */
const ATTEST_MS = 10_000;

const PROXY_LINES = `Only programs on this instance, such as your proxy, can reach it: the image has TRUSTED_PROXIES, so callers who reach the port
themselves could write their own address into X-Forwarded-For. For a proxy on another host, give --address with this
instance's private address, and let its security group admit that proxy alone.`;

interface Options extends ConfigOptions {
  readonly eif: string;
  readonly name: string;
  readonly debug: boolean;
  readonly secrets?: string | undefined;
  readonly 'secret-id'?: string | undefined;
  readonly 'provisioner-key'?: string | undefined;
  readonly root?: string | undefined;
}

export const main = command({
  name: 'expose_enclave',
  purpose: `Connects a running enclave: makes this instance's relay forward a port to the enclave's server, and the enclave's
connections to the hosts that its image lists. Then passes the secrets to the enclave, from a file, standard input or AWS
Secrets Manager. May be run again at any time: it changes nothing that already runs correctly.`,
  example: '--secrets secrets.json',
  arguments: {},
  options: {
    secrets: {
      value: '<file>',
      help: "the application's secrets as a JSON object; - is standard input",
      schema: path,
    },
    'secret-id': {
      value: '<id>',
      help: 'the id of the secret in AWS Secrets Manager with that JSON object',
      schema: text,
    },
    'provisioner-key': {
      value: '<file>',
      help: 'the private key of a provisioner, for an image whose app.yaml names provisioners',
      schema: path,
    },
    root: {
      value: '<file>',
      help: "trust the certificates of this PEM file in place of AWS's root (development)",
      schema: path,
    },
    eif: { value: '<file>', help: 'the image', schema: path, default: 'out/nitro.eif' },
    name: { value: '<name>', help: 'the name of the enclave', schema: enclaveName, default: 'sui-enclave' },
    debug: {
      help: 'pass secrets even to an enclave in debug mode, whose memory and console can be read',
    },
    address: {
      value: '<address>',
      help: 'the address of this instance to listen on: see below',
      schema: ipv4,
    },
    port: {
      value: '<port>',
      help: 'the port of this instance to listen on',
      schema: integer(1, 65_535),
      default: '3000',
    },
    'metrics-port': {
      value: '<port>',
      help: 'the port on 127.0.0.1 for the metrics of an image with METRICS_PORT (default: none)',
      schema: integer(1, 65_535),
    },
    ...CONFIG_OPTIONS,
    'take-port': {
      help: 'take the port from another enclave of this instance, which this enclave replaces',
    },
  },
  notes: `The default of --address is 0.0.0.0, all addresses of the instance. For an image with TRUSTED_PROXIES it is 127.0.0.1:
such an image reads the addresses of callers from a header, in which anyone who reaches the port could write any address.

The secrets are sealed: only an enclave that attests the registers of the EIF can open them. Root on this instance can
still read them in the file or in Secrets Manager. To keep them off the instance, run provision on another machine. No
secrets are passed if a file of deployments/, or the network of --network, says that the config of the application is open
(CONFIG_OPEN).`,
  async run({ options }, context) {
    const { env, io } = context;
    const { address, port } = options;
    if (options.secrets !== undefined && options['secret-id'] !== undefined) {
      throw new UsageError('give either --secrets or --secret-id');
    }
    checkConfigOptions(options);
    if (options['metrics-port'] === port)
      throw new UsageError('give --metrics-port and --port different ports');
    const image = loadImage(options.eif);
    const manifest = readManifest(image.eif);
    const config = readConfig(image.eif);
    const isBehindProxy = config.trustedProxies > 0;
    const metricsPort = options['metrics-port'];
    if (metricsPort !== undefined && config.metricsPort === undefined) {
      throw new UsageError(
        '--metrics-port: this image has no metrics, since its server.env sets no METRICS_PORT',
      );
    }
    const listen = { address: address ?? (isBehindProxy ? '127.0.0.1' : '0.0.0.0'), port };
    // The secrets are checked before anything starts: a mistake must not leave only some services running.
    const secrets = manifest.secrets.length === 0 ? undefined : await readSecrets(options, manifest, context);
    const sealing = secrets && { secrets, ...(await prepareSealing(options, image, manifest, context)) };
    const { EnclaveCID: cid } = await findRunningEnclave(env, options, image, sealing !== undefined);
    stateFolder(env, options.name);
    const reports = reportsPath(reportsFolder(env, options.name));
    const program = findRelay(options.eif);
    const exposure = { cid, manifest, listen, metricsPort, takesPort: options['take-port'] };
    writeConf(env, options.name, await createExposedConf(env, options.name, exposure));
    const state = await ensureRelay(env, options.eif, options.name);
    io.log(`relay: ${state}`);
    const isReadyNow = await waitForServer(env, listen);
    if (!isReadyNow && sealing) {
      await requireNoOpenConfig(options, env);
      await sealAndHandOver(sealing, { relay: { env, program }, cid, listen });
    }
    const hasSecrets = isReadyNow || sealing !== undefined;
    io.log(formatSecretsState(isReadyNow, hasSecrets, manifest));
    requireRelay(env);
    io.log(`It answers on port ${port} of ${listen.address}; its reports are in ${reports}.`);
    if (isBehindProxy && address === undefined) io.log(PROXY_LINES);
    return {
      json: {
        services: { relay: state },
        hasSecrets,
        address: listen.address,
        port,
        ...(metricsPort !== undefined && { metricsPort }),
        reports,
      },
    };
  },
});

/**
 * Finds the running enclave.
 *
 * @throws ParentError: WRONG_STATE, if no enclave or another image runs, or if an enclave in debug mode would
 *   get secrets
 */
async function findRunningEnclave(
  env: Environment,
  { eif, name, debug }: Options,
  image: EnclaveImage,
  getsSecrets: boolean,
): Promise<RunningEnclave> {
  const enclave = enclavesNamed(env, name)[0];
  if (!enclave) {
    const end = lastEnd(reportsFolder(env, name));
    const endText = end === undefined ? '' : `; the last enclave reported: ${end}`;
    throw new ParentError('WRONG_STATE', `no enclave named ${name} runs: run run_enclave first${endText}`);
  }
  if (enclave.Flags?.includes('DEBUG_MODE') && getsSecrets && !debug) {
    throw new ParentError(
      'WRONG_STATE',
      'the enclave runs in debug mode, and can keep no secret: pass --debug to send secrets anyway',
    );
  }
  const pcr0 = enclave.Measurements?.PCR0;
  if (pcr0 !== undefined && pcr0 !== image.registers.pcr0) {
    throw new ParentError('WRONG_STATE', `the enclave does not run the image ${eif}: its PCR0 is ${pcr0}`);
  }
  return enclave;
}

function formatSecretsState(wasReady: boolean, hasSecrets: boolean, { secrets }: Manifest): string {
  if (secrets.length === 0) return 'The application needs no secrets.';
  if (wasReady) return 'The enclave has its secrets.';
  if (!hasSecrets) {
    return `The enclave waits for its secrets: ${secrets.join(', ')}. Give --secrets or --secret-id, or run provision elsewhere.`;
  }
  return 'The enclave has accepted its secrets. They were sealed for it: the relay read nothing. Root on this instance can read them at their source.';
}

/** The requirements of the enclave that secrets are sealed for, and the provisioner's key. */
interface Sealing {
  readonly requirements: Requirements;
  readonly provisioner: ProvisionerKey | undefined;
}

/**
 * Prepares the sealing of secrets.
 *
 * @throws UsageError, if the image needs a signature and no key is given; ProvisionFileError: PROVISIONER_KEY
 */
async function prepareSealing(
  { debug, root, 'provisioner-key': path }: Options,
  { registers }: EnclaveImage,
  { provisioners = [] }: Manifest,
  { env, io }: Context,
): Promise<Sealing> {
  if (provisioners.length > 0 && path === undefined) {
    throw new UsageError(
      'this image takes secrets from the provisioners of its app.yaml only: give --provisioner-key, or run provision elsewhere',
    );
  }
  const provisioner = path === undefined ? undefined : readProvisionerKey(path, env);
  if (provisioner && !provisioners.includes(Buffer.from(provisioner.publicKey).toString('hex'))) {
    throw new UsageError(`the app.yaml of this image does not name the key in ${path} as a provisioner`);
  }
  const roots =
    root === undefined ? undefined : certificatesFromPem((await readFileArgument(root)).toString());
  if (roots) io.log(`Trusts the certificates of ${root} in place of AWS's root.`);
  return { requirements: { images: [registers], roots, allowDebug: debug }, provisioner };
}

/**
 * Seals the secrets and sends them through the parent's own port. An enclave that does not attest the
 * registers of the EIF gets nothing.
 */
async function sealAndHandOver(
  { secrets, requirements, provisioner }: Sealing & { readonly secrets: Readonly<Record<string, string>> },
  { relay, cid, listen }: { relay: { env: Environment; program: string }; cid: number; listen: Listen },
): Promise<void> {
  const http = { base: new URL(`${formatUrl(listen)}/`), timeoutMs: ATTEST_MS };
  const { sealingKey, state } = await attest(http, requirements);
  const { json } = await sealSecrets(secrets, sealingKey, state, { provisioner });
  await handOver(relay, cid, json, listen);
}

/**
 * Reads the secrets from a file, standard input or Secrets Manager, but not from an argument, which every
 * process could read.
 */
async function readSecrets(
  { secrets, 'secret-id': id }: Options,
  manifest: Manifest,
  { env, io }: Context,
): Promise<Readonly<Record<string, string>> | undefined> {
  if (id !== undefined) return checkSecrets(await readFromSecretsManager(env, id), manifest);
  if (secrets === undefined) return undefined;
  try {
    return checkSecrets(secrets === '-' ? io.stdin() : readRegularFile(secrets).toString(), manifest);
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) throw new UsageError(`${secrets} can't be read`);
    throw error;
  }
}

async function readFromSecretsManager(env: Environment, id: string): Promise<string> {
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
