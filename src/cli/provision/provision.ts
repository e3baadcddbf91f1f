/** `sui-enclave provision`: seals secrets for an attested enclave. */
import { AttestationError, certificatesFromPem, type Image, parsePcrs } from 'sui-enclave/attestation';
import { ClientError, EnclaveUnreachableError } from 'sui-enclave/client/errors';
import { baseUrl, type Http } from 'sui-enclave/client/http';
import type { EnclaveError } from 'sui-enclave/errors';
import { type ProvisionerKey, sealSecrets } from 'sui-enclave/sealing/secrets';
import { SuiError } from 'sui-enclave/sui/errors';
import { endOnSignal } from 'sui-enclave-service/signals';
import {
  type Context,
  command,
  type Environment,
  EXIT,
  type Result,
  readFileArgument,
  runAsProcess,
  UsageError,
} from '../command.ts';
import { PCRS_HINT } from '../places.ts';
import { SuiCommandError } from '../sui/errors.ts';
import { enclaveUrl, integer, path } from '../values.ts';
import { attest, deliver, needsSecrets, type Recipient, type Requirements } from './enclave.ts';
import { parseSecrets, readProvisionerKey, readSecretsFile } from './files.ts';
import { Metrics } from './metrics.ts';
import {
  CONFIG_OPTIONS,
  type ConfigOptions,
  checkConfigOptions,
  requireNoOpenConfig,
} from './open_config.ts';
import { type PollResult, watch } from './watch.ts';

const NOT_PROVEN = 3;
const UNREACHABLE = 4;
const UNCONFIRMED = 5;

const TIMEOUT_MS = 10_000;

interface Options extends ConfigOptions {
  readonly pcrs: readonly string[];
  readonly secrets: string | undefined;
  readonly key: string | undefined;
  readonly root: string | undefined;
  readonly watch: boolean;
  /** Pause between two polls, in seconds. */
  readonly interval: number | undefined;
  readonly 'metrics-port': number | undefined;
}

export const main = command({
  name: 'provision',
  purpose: `Attests the enclave, seals the secrets to it, and checks the sealed receipt that the enclave sends. Neither the host nor
a proxy on the path can read, change or replace the secrets. They are sealed for one start of the enclave: repeat the
command after each start.`,
  example: 'https://weather.example --pcrs out/nitro.pcrs --secrets secrets.json --key provisioner.pem',
  arguments: { url: { schema: enclaveUrl, optional: true } },
  forms: [
    '<url> --pcrs out/nitro.pcrs --secrets secrets.json [options]',
    '--print-key --key provisioner.pem',
  ],
  options: {
    pcrs: {
      value: '<file>',
      help: 'the registers of an image that may get the secrets',
      schema: path,
      repeated: true,
    },
    secrets: {
      value: '<file>',
      help: 'a JSON object with the names of app.yaml, in a file that only its owner can read; - is standard input',
      schema: path,
    },
    key: {
      value: '<file>',
      help: "the provisioner's Ed25519 private key, in a file that only its owner can read: see below",
      schema: path,
    },
    watch: {
      help: 'poll the enclave and provision it after each start, until SIGTERM',
    },
    interval: {
      value: '<seconds>',
      help: 'with --watch: how often to poll, 1 to 3600 (default: 10)',
      schema: integer(1, 3600),
    },
    'metrics-port': {
      value: '<port>',
      help: 'with --watch: serve metrics on this port of 127.0.0.1 (default: none)',
      schema: integer(1, 65_535),
    },
    root: {
      value: '<file>',
      help: "trust the certificates of this PEM file in place of AWS's root (development)",
      schema: path,
    },
    ...CONFIG_OPTIONS,
    'print-key': {
      help: 'only print the public key of --key, for the list provisioners in app.yaml',
    },
  },
  notes: `--key is PEM, as openssl genpkey -algorithm ed25519 -out provisioner.pem writes it, or 64 hexadecimal digits.

No secrets are sent if a file of deployments/, or the network of --network, says that the config of the application is
open (CONFIG_OPEN).

exit codes: 0 the enclave has its secrets; 1 it does not accept them, or gave no valid receipt; 2 not tried (invalid
command line, a file that can't be read or that others can read, or a config that is or may be open); 3 it does not
prove that it runs the image; 4 it can't be reached; 5 unconfirmed: /readyz, which a host can forge, says that the
enclave has secrets, so nothing was sent`,
  // A message may contain a part of a secret.
  handlesSecrets: true,
  chooseExit,
  report(error, failure) {
    if (failure === undefined || !hasServerCode(error)) return failure;
    return { ...failure, json: { ...failure.json, serverCode: error.serverCode } };
  },
  async run({ args: { url }, options }, context) {
    if (options['print-key']) return printKey(options.key, context.env);
    return await provision(options, url, context);
  },
});

function printKey(file: string | undefined, env: Environment): Result {
  if (file === undefined) throw new UsageError('--print-key needs --key');
  const key = Buffer.from(readProvisionerKey(file, env).publicKey).toString('hex');
  return { json: { key }, text: key };
}

/** Contents of the files and options that provisioning needs. They are read once. */
interface Work {
  readonly http: Http;
  readonly requirements: Requirements;
  readonly secrets: Readonly<Record<string, string>>;
  readonly provisioner: ProvisionerKey | undefined;
  /** Checks that the application's config is not open, since anyone could then run the image. */
  readonly checkConfig: () => Promise<void>;
}

async function provision(options: Options, url: string | undefined, context: Context): Promise<Result> {
  const work = await prepare(options, url, context);
  if (options.watch) return await watchEnclave(work, options, context);
  const names = Object.keys(work.secrets);
  // The attestation comes first, so that wrong registers are reported even if the enclave has its secrets
  // already.
  const recipient = await attest(work.http, work.requirements);
  if (!(await needsSecrets(work.http))) {
    const text =
      'Unconfirmed: /readyz reports that the enclave has secrets, so nothing was sent. A host can forge that answer, and the answer does not prove which secrets they are.';
    return { exit: UNCONFIRMED, json: { status: 'unconfirmed', names: [] }, text };
  }
  await send(work, recipient);
  return { json: { status: 'provisioned', names }, text: `The enclave has its secrets: ${names.join(', ')}` };
}

async function prepare(options: Options, url: string | undefined, { env, io }: Context): Promise<Work> {
  const { pcrs, secrets, key, root, interval } = options;
  if (url === undefined) throw new UsageError('missing: <url>');
  if (pcrs.length === 0) throw new UsageError('--pcrs is required: only a known image may have the secrets');
  if (secrets === undefined) throw new UsageError('--secrets is required');
  if (interval !== undefined && !options.watch) throw new UsageError('--interval is for --watch only');
  if (options['metrics-port'] !== undefined && !options.watch) {
    throw new UsageError('--metrics-port is for --watch only');
  }
  checkConfigOptions(options);
  const images = await Promise.all(pcrs.map(readImage));
  const roots =
    root === undefined ? undefined : certificatesFromPem((await readFileArgument(root)).toString());
  if (roots) io.log(`Trusts the certificates of ${root} in place of AWS's root.`);
  return {
    http: { base: baseUrl(url), timeoutMs: TIMEOUT_MS },
    requirements: { images, roots },
    secrets: secrets === '-' ? parseSecrets(io.stdin()) : readSecretsFile(secrets, env),
    provisioner: key === undefined ? undefined : readProvisionerKey(key, env),
    checkConfig: () => requireNoOpenConfig(options, env),
  };
}

async function readImage(file: string): Promise<Image> {
  return parsePcrs((await readFileArgument(file, PCRS_HINT)).toString());
}

async function send(
  { http, secrets, provisioner, checkConfig }: Work,
  { sealingKey, state }: Recipient,
): Promise<void> {
  await checkConfig();
  await deliver(http, await sealSecrets(secrets, sealingKey, state, { provisioner }));
}

async function watchEnclave(work: Work, options: Options, { io }: Context): Promise<Result> {
  const { interval = 10, 'metrics-port': port } = options;
  const metrics = new Metrics();
  const listener = port === undefined ? undefined : await metrics.serve(port);
  const stop = new AbortController();
  const watched = {
    needsSecrets: () => needsSecrets(work.http),
    provision: async () => await send(work, await attest(work.http, work.requirements)),
    log: (line: string) => io.log(line),
    note: (pollResult: PollResult) => metrics.note(pollResult, Date.now()),
  };
  const watching = watch(watched, 1000 * interval, stop.signal);
  endOnSignal(async () => {
    stop.abort();
    await watching;
  });
  const provisioned = await watching;
  listener?.close();
  return { json: { status: 'ended', provisioned } };
}

/** Returns whether an error has the code of an answer, which came from the enclave or anyone on the path. */
function hasServerCode(error: unknown): error is { readonly serverCode: string | null } {
  return error instanceof Error && 'serverCode' in error;
}

function chooseExit(error: EnclaveError): number | undefined {
  if (error instanceof EnclaveUnreachableError) return UNREACHABLE;
  if (error instanceof AttestationError) {
    // A file of registers or of roots can't be used, so nothing was tried.
    const isPolicy = error.code === 'POLICY_INVALID' || error.code === 'POLICY_ZERO_IMAGE';
    return isPolicy ? EXIT.notTried : NOT_PROVEN;
  }
  if (error instanceof SuiError) return EXIT.notTried;
  if (error instanceof SuiCommandError) return error.exit;
  return error instanceof ClientError ? NOT_PROVEN : undefined;
}

if (import.meta.main) await runAsProcess(main);
