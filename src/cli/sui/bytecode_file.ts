/**
 * The file by which `compile` hands bytecode to publish and upgrade on a machine that has the key and no
 * compiler.
 */
import { createHash } from 'node:crypto';
import * as v from 'valibot';
import { objectId } from '../values.ts';
import { SuiCommandError } from './errors.ts';
import { NETWORKS, type Network } from './network.ts';

/** The bytecode of a package and of the unpublished packages that it depends on. */
export interface Bytecode {
  /** The packages of `move/` whose modules these are, dependencies first. */
  readonly packages: readonly string[];
  /** Modules in base64, dependencies first. */
  readonly modules: readonly string[];
  /** Ids of the published packages that the modules link to. */
  readonly dependencies: readonly string[];
}

export interface Compiled extends Bytecode {
  /** The network for which the package was compiled. */
  readonly network: Network;
  /** The version of Sui's framework that it was compiled with, for people to read. */
  readonly framework: string;
  /** Whether that framework is the stub, which only declares the interface. */
  readonly isStub: boolean;
  /** The file that records the package's address; undefined if the sources are not on this machine. */
  readonly published: string | undefined;
}

/** Maximum size of the file in bytes: more than the 128 KiB of a transaction need in base64. */
const MAX_FILE_BYTES = 1024 * 1024;

const base64 = v.pipe(
  v.string(),
  v.regex(/^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/, 'must be base64'),
);

const name = v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{1,128}$/, 'must be the name of a package'));

/** The content of a file of bytecode. */
const BytecodeFile = v.strictObject({
  format: v.literal('sui-enclave bytecode 1'),
  chain: v.picklist(NETWORKS),
  framework: v.pipe(v.string(), v.regex(/^[ -~]{1,500}$/, 'must be 1 to 500 printable ASCII characters')),
  is_stub: v.boolean(),
  packages: v.pipe(v.array(name), v.minLength(1)),
  dependencies: v.array(objectId),
  modules: v.pipe(v.array(base64), v.minLength(1)),
});

/** Writes the text of a file that `--bytecode` takes. */
export function formatBytecodeFile({ network, isStub, framework, ...bytecode }: Compiled): string {
  const { packages, dependencies, modules } = bytecode;
  const content: v.InferOutput<typeof BytecodeFile> = {
    format: 'sui-enclave bytecode 1',
    chain: network,
    framework,
    is_stub: isStub,
    packages: [...packages],
    dependencies: [...dependencies],
    modules: [...modules],
  };
  return `${JSON.stringify(content, null, 2)}\n`;
}

/** Returns the SHA-256 of a file of bytecode in hexadecimal. */
export function digestBytecodeFile(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

/**
 * Parses a file that `compile` wrote.
 *
 * @param file the file's name, for messages
 * @param packageName the package that the file must contain
 * @param digest the SHA-256 that the file must have, in hexadecimal
 * @throws SuiCommandError: BYTECODE_FILE
 */
export function parseBytecodeFile(
  content: Buffer,
  { file, packageName, digest }: { file: string; packageName: string; digest: string },
): Omit<Compiled, 'published'> {
  const createRefusal = (reason: string) => new SuiCommandError('BYTECODE_FILE', `${file} ${reason}`);
  if (content.length > MAX_FILE_BYTES) throw createRefusal(`has more than ${MAX_FILE_BYTES} bytes`);
  const actual = digestBytecodeFile(content);
  if (actual !== digest) throw createRefusal(`has the SHA-256 ${actual}, not the value of --digest`);
  let data: unknown;
  try {
    data = JSON.parse(content.toString('utf8'));
  } catch {
    throw createRefusal('is not JSON');
  }
  const parsed = v.safeParse(BytecodeFile, data);
  if (!parsed.success) {
    const [issue] = parsed.issues;
    throw createRefusal(`is not a file that compile wrote: ${v.getDotPath(issue) ?? 'it'} ${issue.message}`);
  }
  const { chain: network, is_stub: isStub, framework, packages, dependencies, modules } = parsed.output;
  const name = packages.at(-1);
  if (name !== packageName) throw createRefusal(`has the package ${name}, not ${packageName}`);
  return { network, framework, isStub, packages, dependencies, modules };
}
