/** `sui-enclave release`: signs releases, verifies who vouches for an image, and withdraws releases. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { bytesToHex } from '@noble/curves/utils.js';
import { type VerifiedRelease, verifyRelease } from 'sui-enclave/release';
import { digestSubjects, type LogEntry } from 'sui-enclave/release/log';
import { readLog } from 'sui-enclave/release/log_file';
import { VERSION } from 'sui-enclave/release/statement';
import { replaceFile } from 'sui-enclave-service/replace_file';
import * as v from 'valibot';
import {
  command,
  type Environment,
  type Result,
  readFileArgument,
  runAsProcess,
  UsageError,
} from '../command.ts';
import type { OptionValues } from '../command_line.ts';
import { integer, path, secureUrl, text } from '../values.ts';
import { compareBuilds, describeRelease, formatSubjects, type ReleaseFiles, readBuild } from './build.ts';
import { ReleaseCommandError } from './errors.ts';
import { LOG_OPTIONS, readRelease, readSeen, readSigner, writeSeen } from './read_release.ts';
import { readRun, type WorkflowRun } from './run.ts';
import {
  append,
  createKeySigner,
  createWorkflowSigner,
  digestLast,
  formatLog,
  formatRelease,
  readKey,
  type Signing,
} from './sign.ts';

/** Addresses of the public Sigstore. */
const SIGSTORE = { fulcio: 'https://fulcio.sigstore.dev', rekor: 'https://rekor.sigstore.dev' } as const;

const ACTIONS = ['sign', 'verify', 'list', 'withdraw', 'renew', 'subjects'] as const;
type Action = (typeof ACTIONS)[number];
/** Actions that take no version and no file. */
const WITHOUT_SUBJECT: readonly Action[] = ['list', 'renew', 'subjects'];

const OPTIONS = {
  ...LOG_OPTIONS,
  key: {
    value: '<file>',
    help: 'the private key: Ed25519 in PEM, as openssl genpkey -algorithm ed25519 writes it. Without it, the run of the GitHub workflow in --signer signs',
    schema: path,
  },
  days: {
    value: '<n>',
    help: 'the number of days until the head of the log expires (default: 30)',
    schema: integer(1, 366),
  },
  out: { value: '<folder>', help: 'the folder of the build (default: out)', schema: path },
  schema: { value: '<file>', help: "the application's schema.json (default: schema.json)", schema: path },
  bytecode: {
    value: '<file>',
    help: 'a Move package that compile wrote; may be given more than once',
    schema: path,
    repeated: true,
  },
  rebuilt: {
    value: '<file>',
    help: 'sign: the output of subjects for another build: refuse to sign if a byte differs',
    schema: path,
  },
  repository: {
    value: '<url>',
    help: 'sign: the public repository',
    schema: v.pipe(v.string(), v.regex(/^https:\/\/[!-~]{1,190}$/, 'must be an https URL')),
  },
  fulcio: {
    value: '<url>',
    help: `without --key: the certificate authority (default: ${SIGSTORE.fulcio})`,
    schema: secureUrl,
  },
  rekor: {
    value: '<url>',
    help: `without --key: the transparency log (default: ${SIGSTORE.rekor})`,
    schema: secureUrl,
  },
} as const;
type ReleaseOptions = OptionValues<typeof OPTIONS>;
type OptionName = keyof ReleaseOptions;

const SIGNING: readonly OptionName[] = ['key', 'signer', 'seen', 'days', 'fulcio', 'rekor'];
const FILES: readonly OptionName[] = ['out', 'schema', 'bytecode'];

/** Options that each action needs, and further options that it accepts. */
const TAKES: Readonly<
  Record<Action, { readonly needs: readonly OptionName[]; readonly allows: readonly OptionName[] }>
> = {
  sign: { needs: ['log', 'repository'], allows: [...SIGNING, ...FILES, 'rebuilt'] },
  verify: { needs: ['log', 'signer'], allows: ['seen'] },
  list: { needs: ['log', 'signer'], allows: ['seen'] },
  withdraw: { needs: ['log'], allows: SIGNING },
  renew: { needs: ['log'], allows: SIGNING },
  subjects: { needs: [], allows: FILES },
};

export const main = command({
  name: 'release',
  purpose: `sign      writes release.json for the image in out/, signed by a key or a workflow, and appends it to the log
verify    verifies a release: its signer, its commit, and that the log lists it and does not withdraw it
list      prints the log, if its head is fresh
withdraw  appends a withdrawal to the log
renew     signs the head of the log again, before it expires
subjects  prints the SHA-256 of each file of the build in out/, to compare it with another build`,
  example: 'verify release.json --log releases.json --signer release-signer.json',
  arguments: {
    action: { schema: v.picklist(ACTIONS, `must be one of ${ACTIONS.join(', ')}`) },
    subject: { schema: text, optional: true },
  },
  forms: [
    'sign <version> --repository <url> --log <file> (--key <file> | --signer <file>) [options]',
    'verify <release.json> --log <file> --signer <file> [--seen <file>]',
    'list --log <file> --signer <file> [--seen <file>]',
    'withdraw <version> --log <file> (--key <file> | --signer <file>) [--seen <file>]',
    'renew --log <file> (--key <file> | --signer <file>) [--seen <file>]',
    'subjects [--out <folder>] [--schema <file>] [--bytecode <file>]',
  ],
  options: OPTIONS,
  notes:
    'A verified release shows who vouches for an image; only an audit, which builds it again, proves its source.',
  handlesSecrets: true,
  async run({ args: { action, subject }, options }, { env }) {
    checkForm(action, subject, options);
    switch (action) {
      case 'verify':
        return await verifyFile(subject, options);
      case 'list':
        return await listLog(options);
      case 'subjects':
        return await listSubjects(options);
      case 'sign':
        return await signRelease(readTag(subject), options, await openSigner(options, env));
      case 'withdraw':
        return await withdraw(readTag(subject), options, await openSigner(options, env));
      default:
        return await renew(options, await openSigner(options, env));
    }
  },
});

/** @throws UsageError */
function checkForm(action: Action, subject: string | undefined, options: ReleaseOptions): void {
  const present = (Object.keys(options) as OptionName[]).filter((name) =>
    name === 'bytecode' ? options.bytecode.length > 0 : options[name] !== undefined,
  );
  const { needs, allows } = TAKES[action];
  const missing = needs.find((name) => !present.includes(name));
  if (missing !== undefined) throw new UsageError(`${action} needs --${missing} ${OPTIONS[missing].value}`);
  const needless = present.find((name) => !needs.includes(name) && !allows.includes(name));
  if (needless !== undefined) throw new UsageError(`${action} takes no --${needless}`);
  if (allows.includes('key')) checkSigner(action, options);
  const hasNoSubject = WITHOUT_SUBJECT.includes(action);
  if (!hasNoSubject && subject === undefined) throw new UsageError(`${action} needs a version or a file`);
  if (hasNoSubject && subject !== undefined) throw new UsageError(`unexpected argument: ${subject}`);
}

/** @throws UsageError */
function checkSigner(action: Action, { key, signer, fulcio, rekor }: ReleaseOptions): void {
  if ((key === undefined) === (signer === undefined)) {
    throw new UsageError(`${action} needs --key <file>, or in a workflow --signer <file>`);
  }
  if (key !== undefined && (fulcio ?? rekor) !== undefined) {
    throw new UsageError('--fulcio and --rekor are for a workflow, which signs without --key');
  }
}

/** @throws UsageError */
function readTag(subject: string | undefined): string {
  if (subject !== undefined && VERSION.test(subject)) return subject;
  throw new UsageError('<version> must be a version such as v1.2.0');
}

async function listLog({ log = '', signer = '', seen }: ReleaseOptions): Promise<Result> {
  const options = { signer: await readSigner(signer), now: Date.now(), seen: await readSeen(seen) };
  const { entries, head } = await readLog(await readFileArgument(log), options);
  writeSeen(seen, head);
  const lines = entries.map(({ kind, version, subjects }) => `${kind.padEnd(10)}  ${version}  ${subjects}`);
  const expires = new Date(head.expiresMs).toISOString();
  return { json: { entries, expires }, text: [...lines, `fresh until ${expires}`].join('\n') };
}

async function listSubjects(options: ReleaseOptions): Promise<Result> {
  const build = await readBuild(readFiles(options));
  return { json: Object.fromEntries(build.subjects), text: formatSubjects(build) };
}

async function verifyFile(release: string | undefined, options: ReleaseOptions): Promise<Result> {
  const { log, signer, seen } = options;
  const vouched = await readRelease({ release, log, signer, seen });
  if (vouched === undefined) throw new UsageError('verify needs a file');
  return reportRelease(vouched.release);
}

/** The signer of the command line; without a key, the run of the workflow as well. */
interface OpenSigner {
  readonly signing: Signing;
  readonly run?: WorkflowRun;
}

/** @throws UsageError, UnreadableFileError, ToolchainError; ReleaseCommandError */
async function openSigner(
  { key, signer: file = '', fulcio = SIGSTORE.fulcio, rekor = SIGSTORE.rekor }: ReleaseOptions,
  env: Environment,
): Promise<OpenSigner> {
  if (key !== undefined) return { signing: createKeySigner(readKey(key)) };
  const signer = await readSigner(file);
  if ('publicKey' in signer) throw new UsageError(`${file} names a key: sign with --key, its private part`);
  const run = readRun(env);
  return { signing: await createWorkflowSigner(signer, { fulcio, rekor }), run };
}

/**
 * Reads the entries of the author's own log, whose head may have expired. Returns no entries before the
 * first release. Without `--seen`, an old copy of the log would be accepted, and get a fresh head.
 */
async function readOwnLog(
  { log = '', seen }: ReleaseOptions,
  { signer }: Signing,
): Promise<readonly LogEntry[]> {
  const seenHead = await readSeen(seen);
  if (!existsSync(log) && seenHead === undefined) return [];
  return (await readLog(await readFileArgument(log), { signer, now: 0, seen: seenHead })).entries;
}

async function renew(options: ReleaseOptions, { signing }: OpenSigner): Promise<Result> {
  const entries = await readOwnLog(options, signing);
  if (entries.length === 0) {
    throw new ReleaseCommandError('LOGGED', `${options.log} has no entry: sign a release first`);
  }
  return writeLog(entries, await signLog(entries, signing, options), options);
}

async function withdraw(version: string, options: ReleaseOptions, { signing }: OpenSigner): Promise<Result> {
  const entries = await readOwnLog(options, signing);
  const logged = entries.findLast((entry) => entry.version === version);
  if (logged?.kind !== 'release') {
    throw new ReleaseCommandError('LOGGED', `the log has no release ${version} that could be withdrawn`);
  }
  const appended = append(entries, 'withdrawal', version, logged.subjects);
  return writeLog(appended, await signLog(appended, signing, options), options);
}

async function signRelease(
  version: string,
  options: ReleaseOptions,
  { signing, run }: OpenSigner,
): Promise<Result> {
  const { repository = '', rebuilt } = options;
  const entries = await readOwnLog(options, signing);
  if (entries.some((entry) => entry.version === version)) {
    const message = `the log has ${version} already, and a released version is final: choose another version`;
    throw new ReleaseCommandError('LOGGED', message);
  }
  const files = readFiles(options);
  const build = await readBuild(files);
  if (rebuilt !== undefined) await compareBuilds(build, rebuilt);
  const release = await formatRelease(describeRelease({ version, repository }, build, run), signing);
  const appended = append(entries, 'release', version, digestSubjects(build.subjects));
  const log = await signLog(appended, signing, options);
  const { signer } = signing;
  // Sigstore signs for any workflow, but readers accept only the workflow that they expect.
  await verifyRelease(Buffer.from(release), { signer, log: Buffer.from(log) });
  const file = join(files.out, 'release.json');
  replaceFile(file, release);
  const { json } = writeLog(appended, log, options);
  const publicKey = 'publicKey' in signer ? bytesToHex(signer.publicKey) : undefined;
  // The text shows a log that is new by mistake, such as by a misspelt name, and so lacks withdrawals.
  const verb = entries.length === 0 ? 'began the log' : 'wrote';
  const lines = [
    `wrote ${file}`,
    `${verb} ${json.log}`,
    ...(publicKey === undefined ? [] : [`public key: ${publicKey}`]),
  ];
  return { json: { file, publicKey: publicKey ?? null, ...json }, text: lines.join('\n') };
}

function readFiles({ out = 'out', schema = 'schema.json', bytecode }: ReleaseOptions): ReleaseFiles {
  return { out, schema, bytecode };
}

/**
 * Signs the head of a log, and checks as a reader does that the signed log is accepted.
 *
 * @throws ReleaseError; ReleaseCommandError: SIGSTORE
 */
async function signLog(
  entries: readonly LogEntry[],
  signing: Signing,
  { days = 30 }: ReleaseOptions,
): Promise<string> {
  const log = await formatLog(entries, signing, days);
  await readLog(Buffer.from(log), { signer: signing.signer, now: Date.now(), seen: undefined });
  return log;
}

function writeLog(entries: readonly LogEntry[], content: string, { log = '', seen }: ReleaseOptions) {
  replaceFile(log, content);
  writeSeen(seen, { sequence: entries.length, digest: digestLast(entries) });
  return { json: { log, entries: entries.length }, text: `wrote ${log}` };
}

function reportRelease({ version, image, source, subjects, head }: VerifiedRelease): Result {
  const { url, commit, folder, frameworkVersion } = source;
  const expires = new Date(head.expiresMs).toISOString();
  return {
    json: { version, image, source, subjects: Object.fromEntries(subjects), head: { ...head, expires } },
    text: [
      `VOUCHED FOR ${version}: the signer says that this image was built from that commit. An audit proves it.`,
      `  repository  ${url}`,
      `  commit      ${commit}${folder === '' ? '' : `, folder ${folder}`}`,
      `  framework   ${frameworkVersion}`,
      `  PCR0        ${image.pcr0}`,
      `  PCR1        ${image.pcr1}`,
      `  PCR2        ${image.pcr2}`,
      `  log         entry ${head.sequence}, fresh until ${expires}`,
    ].join('\n'),
  };
}

if (import.meta.main) await runAsProcess(main);
