/** `sui-enclave release`: signs releases, verifies who vouches for an image, and withdraws releases. */
import type { KeyObject } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { hexToBytes } from '@noble/curves/utils.js';
import type { VerifiedRelease } from 'sui-enclave/release';
import { digestSubjects, type LogEntry } from 'sui-enclave/release/log';
import { readLog } from 'sui-enclave/release/log_file';
import { VERSION } from 'sui-enclave/release/statement';
import { replaceFile } from 'sui-enclave-service/replace_file';
import * as v from 'valibot';
import { command, type Result, readFileArgument, runAsProcess, UsageError } from '../command.ts';
import type { OptionValues } from '../command_line.ts';
import { integer, path, text } from '../values.ts';
import { ReleaseCommandError } from './errors.ts';
import { LOG_OPTIONS, readSeen, readSigner, readVerifiedRelease, writeSeen } from './read_release.ts';
import { append, describeRelease, formatLog, formatPublicKey, formatRelease, readKey } from './sign.ts';

const ACTIONS = ['sign', 'verify', 'list', 'withdraw', 'renew'] as const;
type Action = (typeof ACTIONS)[number];
/** Those that need the author's key. */
const SIGNING: readonly Action[] = ['sign', 'withdraw', 'renew'];
/** Those that are about the whole log. */
const OF_LOG: readonly Action[] = ['list', 'renew'];

const OPTIONS = {
  ...LOG_OPTIONS,
  key: {
    value: '<file>',
    help: 'the private key: Ed25519 in PEM, as openssl genpkey -algorithm ed25519 writes it',
    schema: path,
  },
  days: {
    value: '<n>',
    help: 'the number of days until the head of the log expires',
    schema: integer(1, 366),
    default: '30',
  },
  out: { value: '<folder>', help: 'sign: the folder of the build', schema: path, default: 'out' },
  schema: {
    value: '<file>',
    help: "sign: the application's schema.json",
    schema: path,
    default: 'schema.json',
  },
  bytecode: {
    value: '<file>',
    help: 'sign: a Move package that compile wrote; may be given more than once',
    schema: path,
    repeated: true,
  },
  repository: {
    value: '<url>',
    help: 'sign: the public repository',
    schema: v.pipe(v.string(), v.regex(/^https:\/\/[!-~]{1,190}$/, 'must be an https URL')),
  },
} as const;
type ReleaseOptions = OptionValues<typeof OPTIONS>;

export const main = command({
  name: 'release',
  purpose: `sign      writes release.json for the image in out/, signed by a key, and appends it to the log
verify    verifies a release: who signed it, of which commit, and that the log has it and does not withdraw it
list      prints the log, if its head is fresh
withdraw  appends a withdrawal to the log
renew     signs the head of the log anew, before it expires`,
  example: 'verify release.json --log releases.json --signer release-signer.json',
  arguments: {
    action: { schema: v.picklist(ACTIONS, `must be one of ${ACTIONS.join(', ')}`) },
    subject: { schema: text, optional: true },
  },
  forms: [
    'sign <version> --repository <url> --log <file> --key <file>',
    'verify <release.json> --log <file> --signer <file> [--seen <file>]',
    'list --log <file> --signer <file> [--seen <file>]',
    'withdraw <version> --log <file> --key <file>',
    'renew --log <file> --key <file>',
  ],
  options: OPTIONS,
  notes:
    'A true release says who vouches for an image; only an audit, which builds it again, proves its source.',
  handlesSecrets: true,
  async run({ args: { action, subject }, options }) {
    checkForm(action, subject, options);
    switch (action) {
      case 'verify':
        return reportRelease(await readVerifiedRelease(subject ?? '', options));
      case 'list':
        return await listLog(options);
      case 'sign':
        return await signRelease(readTag(subject), options);
      case 'withdraw':
        return await withdraw(readTag(subject), options);
      default:
        return await renew(options);
    }
  },
});

/** @throws UsageError */
function checkForm(action: Action, subject: string | undefined, { log, key, signer }: ReleaseOptions): void {
  if (log === undefined) throw new UsageError('missing: --log <file>');
  const needsKey = SIGNING.includes(action);
  if (needsKey && key === undefined) throw new UsageError(`${action} needs --key <file>`);
  if (!needsKey && signer === undefined) throw new UsageError(`${action} needs --signer <file>`);
  if (!needsKey && key !== undefined) throw new UsageError(`${action} takes no --key`);
  const isOfLog = OF_LOG.includes(action);
  if (!isOfLog && subject === undefined) throw new UsageError(`${action} needs a version or a file`);
  if (isOfLog && subject !== undefined) throw new UsageError(`unexpected argument: ${subject}`);
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

/** The entries of the author's own log, whose head may have expired; none if there is no log yet. */
async function readOwnLog(log: string, key: KeyObject): Promise<readonly LogEntry[]> {
  if (!existsSync(log)) return [];
  const signer = { publicKey: hexToBytes(formatPublicKey(key)) };
  return (await readLog(await readFileArgument(log), { signer, now: 0, seen: undefined })).entries;
}

async function renew({ log = '', key: keyFile = '', days }: ReleaseOptions): Promise<Result> {
  const key = readKey(keyFile);
  const entries = await readOwnLog(log, key);
  if (entries.length === 0) {
    throw new ReleaseCommandError('LOGGED', `${log} has no entry: sign a release first`);
  }
  return writeLog(log, entries, formatLog(entries, key, days));
}

async function withdraw(
  version: string,
  { log = '', key: keyFile = '', days }: ReleaseOptions,
): Promise<Result> {
  const key = readKey(keyFile);
  const entries = await readOwnLog(log, key);
  const logged = entries.findLast((entry) => entry.version === version);
  if (logged?.kind !== 'release') {
    throw new ReleaseCommandError('LOGGED', `the log has no release ${version} that could be withdrawn`);
  }
  const appended = append(entries, 'withdrawal', version, logged.subjects);
  return writeLog(log, appended, formatLog(appended, key, days));
}

async function signRelease(version: string, options: ReleaseOptions): Promise<Result> {
  const { log = '', key: keyFile = '', days, out, schema, bytecode = [], repository } = options;
  if (repository === undefined) throw new UsageError('sign needs --repository <url>');
  const key = readKey(keyFile);
  const entries = await readOwnLog(log, key);
  if (entries.some((entry) => entry.version === version)) {
    const message = `the log has ${version} already, and a released version is final: choose another`;
    throw new ReleaseCommandError('LOGGED', message);
  }
  const statements = await describeRelease(version, repository, { out, schema, bytecode });
  const [{ subjects }] = statements;
  const appended = append(entries, 'release', version, digestSubjects(subjects));
  const file = join(out, 'release.json');
  replaceFile(file, formatRelease(statements, key));
  const publicKey = formatPublicKey(key);
  const { json } = writeLog(log, appended, formatLog(appended, key, days));
  return {
    json: { file, publicKey, ...json },
    text: `wrote ${file} and ${log}\npublic key: ${publicKey}`,
  };
}

function writeLog(log: string, entries: readonly LogEntry[], content: string): Result {
  replaceFile(log, content);
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
