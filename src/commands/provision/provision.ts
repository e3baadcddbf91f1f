/**
 * `npm run provision -- <url> --pcrs out/nitro.pcrs --secrets secrets.json`: seals secrets for an attested enclave.
 *
 * Exit codes: 0 the enclave has its secrets; 1 it does not accept them, or gave no receipt; 2 not tried; 3 it does not
 * prove to be the image; 4 it can't be reached; 5 unconfirmed: whoever answered says that it has secrets.
 */
import type { Image } from 'sui-enclave/attestation';
import type { Http } from 'sui-enclave/client/http';
import { EnclaveError } from 'sui-enclave/errors';
import type { ProvisionerKey } from 'sui-enclave/sealing/secrets';
import {
  type Context,
  command,
  commandFailure,
  type Environment,
  EXIT,
  type Failure,
  INTERNAL_FAILURE,
  integer,
  PCRS_HINT,
  type Result,
  readFileArgument,
  runAsProcess,
  UsageError,
} from '../command.ts';
import type { Recipient, Requirements } from './enclave.ts';

const NOT_PROVEN = 3;
const UNREACHABLE = 4;
const UNCONFIRMED = 5;

const TIMEOUT_MS = 10_000;

const USAGE = `usage: npm run provision -- <url> --pcrs out/nitro.pcrs --secrets secrets.json [options]
       npm run provision -- --print-key --key provisioner.pem

Attests the enclave, seals the secrets for this one start of this image, and checks the enclave's sealed receipt. No host
or proxy on the way can read, change or replace them.

  --pcrs <file>     the registers of an image that may have the secrets; repeat it for several images
  --secrets <file>  one JSON object with the names of app.yaml, readable by its owner alone; - is standard input
  --key <file>      the provisioner's ed25519 key, readable by its owner alone: PEM, as
                    openssl genpkey -algorithm ed25519 -out provisioner.pem writes it, or 64 hexadecimal digits
  --watch           keep asking whether the enclave has its secrets, and provision each new start, until SIGTERM
  --interval <s>    with --watch: how often to ask, 1 to 3600 seconds (default 10)
  --root <file>     trust the certificates of this PEM file in place of AWS's root (development)
  --print-key       print the public key of --key, for the list provisioners of app.yaml, and do nothing else
  --json            print the result, or the error, as JSON
  --help            print this

exit codes: 0 the enclave has its secrets; 1 it does not accept them, or gave no receipt; 2 not tried (usage, unreadable
or open files); 3 it does not prove to be the image; 4 it can't be reached; 5 unconfirmed: /readyz, which a host can forge,
reports that it has secrets, so nothing was sent`;

interface Options {
  readonly pcrs?: readonly string[] | undefined;
  readonly secrets?: string | undefined;
  readonly key?: string | undefined;
  readonly root?: string | undefined;
  readonly watch: boolean;
  readonly interval?: string | undefined;
}

export const main = command({
  usage: USAGE,
  options: {
    pcrs: { type: 'string', multiple: true },
    secrets: { type: 'string' },
    key: { type: 'string' },
    root: { type: 'string' },
    watch: { type: 'boolean', default: false },
    interval: { type: 'string' },
    'print-key': { type: 'boolean', default: false },
  },
  positionals: ['url'],
  optional: 1,
  async run({ values, positionals: [url] }, context) {
    if (values['print-key']) return await printKey(values.key, context.env);
    return await provision(values, url, context);
  },
  report,
});

async function printKey(path: string | undefined, env: Environment): Promise<Result> {
  if (path === undefined) throw new UsageError('--print-key needs --key', USAGE);
  const { readProvisionerKey } = await import('./files.ts');
  const key = Buffer.from(readProvisionerKey(path, env).publicKey).toString('hex');
  return { json: { key }, text: key };
}

/** All that is needed to provision, read once. */
interface Work {
  readonly http: Http;
  readonly requirements: Requirements;
  readonly secrets: Readonly<Record<string, string>>;
  readonly provisioner: ProvisionerKey | undefined;
}

async function provision(options: Options, url: string | undefined, context: Context): Promise<Result> {
  const work = await prepare(options, url, context);
  const { attest, needsSecrets } = await import('./enclave.ts');
  if (options.watch) return await watchEnclave(work, options, context);
  const names = Object.keys(work.secrets);
  // First, so that wrong registers are reported even if the enclave has its secrets already.
  const recipient = await attest(work.http, work.requirements);
  if (!(await needsSecrets(work.http))) {
    const text =
      'Unconfirmed: /readyz reports that the enclave has secrets, so nothing was sent. A host can forge that answer, and nothing proves which secrets they are.';
    return { exit: UNCONFIRMED, json: { status: 'unconfirmed', names: [] }, text };
  }
  await send(work, recipient);
  return { json: { status: 'provisioned', names }, text: `The enclave has its secrets: ${names.join(', ')}` };
}

async function prepare(options: Options, url: string | undefined, { env, io }: Context): Promise<Work> {
  const { pcrs = [], secrets, key, root, watch, interval } = options;
  if (url === undefined) throw new UsageError('missing: <url>', USAGE);
  if (pcrs.length === 0)
    throw new UsageError('--pcrs is needed: only a known image may have the secrets', USAGE);
  if (secrets === undefined) throw new UsageError('--secrets is needed', USAGE);
  if (interval !== undefined && !watch) throw new UsageError('--interval goes with --watch', USAGE);
  const { baseUrl } = await import('sui-enclave/client/http');
  const { certificatesFromPem } = await import('sui-enclave/attestation');
  const { parseSecrets, readProvisionerKey, readSecretsFile } = await import('./files.ts');
  const images = await Promise.all(pcrs.map(readImage));
  const roots =
    root === undefined ? undefined : certificatesFromPem((await readFileArgument(root)).toString());
  if (roots) io.log(`Trusts the certificates of ${root} in place of AWS's root.`);
  return {
    http: { base: baseUrl(url), timeoutMs: TIMEOUT_MS },
    requirements: { images, roots },
    secrets: secrets === '-' ? parseSecrets(io.stdin()) : readSecretsFile(secrets, env),
    provisioner: key === undefined ? undefined : readProvisionerKey(key, env),
  };
}

async function readImage(file: string): Promise<Image> {
  const { parsePcrs } = await import('sui-enclave/attestation');
  return parsePcrs((await readFileArgument(file, PCRS_HINT)).toString());
}

async function send({ http, secrets, provisioner }: Work, { sealingKey, state }: Recipient): Promise<void> {
  const { deliver } = await import('./enclave.ts');
  const { sealSecrets } = await import('sui-enclave/sealing/secrets');
  await deliver(http, await sealSecrets(secrets, sealingKey, state, { provisioner }));
}

async function watchEnclave(work: Work, { interval = '10' }: Options, { io }: Context): Promise<Result> {
  const seconds = integer('interval', interval, 1, 3600);
  const { attest, needsSecrets } = await import('./enclave.ts');
  const { watch } = await import('./watch.ts');
  const { endOnSignal } = await import('sui-enclave-service/signals');
  const stop = new AbortController();
  const watched = {
    needsSecrets: () => needsSecrets(work.http),
    provision: async () => await send(work, await attest(work.http, work.requirements)),
    log: (line: string) => io.log(line),
  };
  const watching = watch(watched, 1000 * seconds, stop.signal);
  endOnSignal(async () => {
    stop.abort();
    await watching;
  });
  return { json: { status: 'ended', provisioned: await watching } };
}

/** Hides the message of any other error: it may contain a part of a secret. */
async function report(error: unknown): Promise<Failure> {
  const failure = commandFailure(error) ?? INTERNAL_FAILURE;
  const exit = await exitOf(error);
  const serverCode =
    error instanceof EnclaveError && 'serverCode' in error ? { serverCode: error.serverCode } : {};
  return { ...failure, exit, json: { ...failure.json, ...serverCode } };
}

const NOT_TRIED = [
  'USAGE',
  'UNREADABLE_FILE',
  'SECRETS_FILE',
  'PROVISIONER_KEY',
  'POLICY_INVALID',
  'POLICY_ZERO_IMAGE',
  'CLIENT_OPTION',
];

async function exitOf(error: unknown): Promise<number> {
  if (!(error instanceof EnclaveError)) return EXIT.failed;
  if (NOT_TRIED.includes(error.code)) return EXIT.notTried;
  if (error.code === 'CLIENT_UNREACHABLE') return UNREACHABLE;
  const { AttestationError } = await import('sui-enclave/attestation');
  const { ClientError } = await import('sui-enclave/client/errors');
  return error instanceof AttestationError || error instanceof ClientError ? NOT_PROVEN : EXIT.failed;
}

if (import.meta.main) await runAsProcess(main);
