/**
 * Parses YAML files that people write for a command. Has schemas of common values, and the errors' base
 * class.
 */
import { EnclaveError } from 'sui-enclave/errors';
import { parseYaml } from 'sui-enclave-server/parse_yaml';
import * as v from 'valibot';
import { EXIT } from '../command.ts';
import { printable } from '../printable.ts';
import { enclaveUrl } from '../values.ts';
import { chooseNode, NETWORKS } from './network.ts';

/** Error for a file that can't be used. The command has tried nothing. */
export abstract class YamlFileError extends EnclaveError {
  readonly exit = EXIT.notTried;
}

/** A string that must be in quotes: YAML reads 0x… and digits without quotes as numbers, and loses digits. */
export const quoted = v.string('must be a string, in quotes');

export const network = v.picklist(NETWORKS, `must be one of ${NETWORKS.join(', ')}`);

export const filePath = v.pipe(
  v.string('must be the path of a file'),
  v.nonEmpty('must be the path of a file'),
);

export function integer(from: number, to: number) {
  const message = `must be an integer from ${from} to ${to}`;
  return v.pipe(v.number(message), v.integer(message), v.minValue(from, message), v.maxValue(to, message));
}

const NODE_URL_MESSAGE =
  'must be an https URL, or an http URL of this machine, without user name, query and fragment';

const MAX_NODES = 8;

/** One URL or a list of URLs, without user names, since a node's URL must not contain a secret. */
export const nodeUrls = v.pipe(
  v.union([v.string(), v.array(v.string())], 'must be a URL, or a list of URLs'),
  v.transform((urls) => (typeof urls === 'string' ? [urls] : urls)),
  v.minLength(1, 'must have at least one URL'),
  v.maxLength(MAX_NODES, `must have at most ${MAX_NODES} URLs`),
  v.check((urls) => urls.every(isNodeUrl), NODE_URL_MESSAGE),
  v.check((urls) => areDifferent(urls), 'has a URL twice'),
);

function isNodeUrl(url: string): boolean {
  try {
    chooseNode(undefined, url);
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns the URLs in their normal form, to compare them. Checks of a whole list also see the texts that
 * other checks refuse, so a text that is not a URL stays as it is.
 */
export function normalizeUrls(urls: readonly string[]): string[] {
  return urls.map((url) => URL.parse(url)?.href ?? url);
}

function areDifferent(urls: readonly string[]): boolean {
  return new Set(normalizeUrls(urls)).size === urls.length;
}

/** Returns the schema of a list of base URLs of different enclaves. */
export function enclaveUrls(maxCount: number) {
  return v.pipe(
    v.array(v.pipe(v.string('must be a URL'), enclaveUrl), 'must be a list of URLs'),
    v.minLength(1, 'must have at least one URL'),
    v.maxLength(maxCount, `must have at most ${maxCount} URLs`),
    v.check((urls) => areDifferent(urls), 'has a URL twice'),
  );
}

/**
 * Parses the text of a file and checks it against a schema.
 *
 * @param path the file's path, for messages
 * @param FileError class of the error, whose message names the property and what it must be
 */
export function parseYamlFile<const S extends v.GenericSchema>(
  schema: S,
  yaml: string,
  path: string,
  FileError: new (message: string, options?: ErrorOptions) => YamlFileError,
): v.InferOutput<S> {
  let data: unknown;
  try {
    data = parseYaml(yaml);
  } catch (cause) {
    throw new FileError(`${path} is not YAML, or has custom tags`, { cause });
  }
  // valibot would accept a list as an object, so null replaces a list.
  const parsed = v.safeParse(schema, Array.isArray(data) ? null : data);
  if (!parsed.success) throw new FileError(`${path}: ${describeIssue(parsed.issues[0])}`);
  return parsed.output;
}

/** Describes an issue as "registers.pcr0 must be …". */
function describeIssue(issue: v.BaseIssue<unknown>): string {
  const path = v.getDotPath(issue);
  if (path === null) return 'must be a map of properties';
  const name = printable(path);
  if (issue.kind !== 'schema' || issue.type !== 'strict_object') return `${name} ${issue.message}`;
  if (issue.expected === 'never') return `there is no property ${name}`;
  return issue.received === 'undefined' ? `${name} is missing` : `${name} must be a map`;
}
