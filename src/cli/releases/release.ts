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
import { describeRelease } from './build.ts';
import { ReleaseCommandError } from './errors.ts';
import { LOG_OPTIONS, readRelease, readSeen, readSigner, writeSeen } from './read_release.ts';
import { append, digestLast, formatLog, formatPublicKey, formatRelease, readKey } from './sign.ts';

const ACTIONS = ['sign', 'verify', 'list', 'withdraw', 'renew'] as const;
type Action = (typeof ACTIONS)[number];
/** Actions that are about the whole log. */
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
    help: 'the number of days until the head of the log expires (default: 30)',
    schema: integer(1, 366),
  },
  out: { value: '<folder>', help: 'sign: the folder of the build (default: out)', schema: path },
  schema: {
    value: '<file>',
    help: "sign: the application's schema.json (default: schema.json)",
    schema: path,
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
type OptionName = keyof ReleaseOptions;

/** Options of each action besides `--log`: those that it needs, and those that it may have. */
const TAKES: Readonly<
  Record<Action, { readonly needs: readonly OptionName[]; readonly allows: readonly OptionName[] }>
> = {
  sign: { needs: ['key', 'repository'], allows: ['seen', 'days', 'out', 'schema', 'bytecode'] },
  verify: { needs: ['signer'], allows: ['seen'] },
  list: { needs: ['signer'], allows: ['seen'] },
  withdraw: { needs: ['key'], allows: ['seen', 'days'] },
  renew: { needs: ['key'], allows: ['seen', 'days'] },
};

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
    'sign <version> --repository <url> --log <file> --key <file> [--seen <file>]',
    'verify <release.json> --log <file> --signer <file> [--seen <file>]',
    'list --log <file> --signer <file> [--seen <file>]',
    'withdraw <version> --log <file> --key <file> [--seen <file>]',
    'renew --log <file> --key <file> [--seen <file>]',
  ],
  options: OPTIONS,
  notes:
    'A true release says who vouches for an image; only an audit, which builds it again, proves its source.',
  handlesSecrets: true,
  async run({ args: { action, subject }, options }) {
    checkForm(action, subject, options);
    switch (action) {
      case 'verify':
        return await verifyRelease(subject, options);
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
function checkForm(action: Action, subject: string | undefined, options: ReleaseOptions): void {
  const present = (Object.keys(options) as OptionName[]).filter((name) =>
    name === 'bytecode' ? options.bytecode.length > 0 : options[name] !== undefined,
  );
  const { needs, allows } = TAKES[action];
  const needed = ['log' as const, ...needs];
  const missing = needed.find((name) => !present.includes(name));
  if (missing !== undefined) throw new UsageError(`${action} needs --${missing} ${OPTIONS[missing].value}`);
  const needless = present.find((name) => !needed.includes(name) && !allows.includes(name));
  if (needless !== undefined) throw new UsageError(`${action} takes no --${needless}`);
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

async function verifyRelease(release: string | undefined, options: ReleaseOptions): Promise<Result> {
  const { log, signer, seen } = options;
  const vouched = await readRelease({ release, log, signer, seen });
  if (vouched === undefined) throw new UsageError('verify needs a file');
  return reportRelease(vouched.release);
}

/**
 * Reads the entries of the author's own log, whose head may have expired; none if there is no log yet. An old
 * copy would get a fresh head: `--seen` refuses it.
 */
async function readOwnLog({ log = '', seen }: ReleaseOptions, key: KeyObject): Promise<readonly LogEntry[]> {
  const seenHead = await readSeen(seen);
  if (!existsSync(log) && seenHead === undefined) return [];
  const signer = { publicKey: hexToBytes(formatPublicKey(key)) };
  return (await readLog(await readFileArgument(log), { signer, now: 0, seen: seenHead })).entries;
}

async function renew(options: ReleaseOptions): Promise<Result> {
  const key = readKey(options.key ?? '');
  const entries = await readOwnLog(options, key);
  if (entries.length === 0) {
    throw new ReleaseCommandError('LOGGED', `${options.log} has no entry: sign a release first`);
  }
  return writeLog(entries, key, options);
}

async function withdraw(version: string, options: ReleaseOptions): Promise<Result> {
  const key = readKey(options.key ?? '');
  const entries = await readOwnLog(options, key);
  const logged = entries.findLast((entry) => entry.version === version);
  if (logged?.kind !== 'release') {
    throw new ReleaseCommandError('LOGGED', `the log has no release ${version} that could be withdrawn`);
  }
  return writeLog(append(entries, 'withdrawal', version, logged.subjects), key, options);
}

async function signRelease(version: string, options: ReleaseOptions): Promise<Result> {
  const { out = 'out', schema = 'schema.json', bytecode, repository = '' } = options;
  const key = readKey(options.key ?? '');
  const entries = await readOwnLog(options, key);
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
  const { json } = writeLog(appended, key, options);
  // A log that is new by mistake, such as a misspelt one, lacks withdrawals.
  const verb = entries.length === 0 ? 'began the log' : 'wrote';
  return {
    json: { file, publicKey, ...json },
    text: `wrote ${file}\n${verb} ${json.log}\npublic key: ${publicKey}`,
  };
}

function writeLog(
  entries: readonly LogEntry[],
  key: KeyObject,
  { log = '', seen, days = 30 }: ReleaseOptions,
) {
  replaceFile(log, formatLog(entries, key, days));
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
