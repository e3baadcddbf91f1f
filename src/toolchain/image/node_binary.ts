/** Reads and checks a Node binary that an image has in place of the Node that the lock file pins. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import { path } from 'sui-enclave-cli/values';
import { pinnedNodeVersion } from './source.ts';

/** Command line option of the command that builds. */
export const NODE_OPTION = {
  node: {
    value: '<file>',
    help: 'a Node binary in place of the pinned one; the commit alone then does not determine the registers, not even PCR1',
    schema: path,
    variable: 'NODE_BINARY',
  },
} as const;

export interface NodeBinary {
  /** Version of Node, such as 24.1.2. */
  readonly version: string;
  /** SHA-256 of the binary in hexadecimal. */
  readonly sha256: string;
  readonly bytes: Uint8Array;
}

/**
 * Reads a binary, and runs it to see whether it is a suitable Node.
 *
 * @param file a Node for Linux on x64, with the same major version as the pinned Node
 * @throws ConfigError if the file is anything else
 */
export function readNodeBinary(file: string, framework: string): NodeBinary {
  const bytes = read(file);
  // The file must be a little-endian ELF-64 file (System V ABI, "ELF Header"), and not a script that starts
  // Node.
  const isElf = bytes.subarray(0, 6).equals(Buffer.from('\x7fELF\x02\x01', 'latin1'));
  if (!isElf || bytes.length < 20 || bytes.readUInt16LE(18) !== 62)
    throw invalid(file, 'is not an ELF binary');
  const [name, version = '', platform, arch] = describe(resolve(file));
  if (name !== 'node' || platform !== 'linux' || arch !== 'x64') throw invalid(file, 'is not a Node');
  const pinned = pinnedNodeVersion(framework);
  const [major] = pinned.split('.');
  if (!/^\d+\.\d+\.\d+$/.test(version) || version.split('.')[0] !== major) {
    throw invalid(file, `is Node ${version}, and ${pinned} is pinned: use a release of Node ${major}`);
  }
  return { version, sha256: createHash('sha256').update(bytes).digest('hex'), bytes };
}

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new ConfigError(`NODE_BINARY: ${file} can't be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/** Asks a Node for its name, version, platform and architecture. Returns an empty list if it does not run. */
function describe(file: string): string[] {
  const code =
    'const { release, versions, platform, arch } = process; [release.name, versions.node, platform, arch].join()';
  try {
    return execFileSync(file, ['-p', code], { env: {}, encoding: 'utf8', timeout: 10_000, stdio: 'pipe' })
      .trim()
      .split(',');
  } catch {
    return [];
  }
}

function invalid(file: string, fault: string): ConfigError {
  return new ConfigError(
    `NODE_BINARY: ${file} ${fault}: it must be a Node for Linux on x64 that runs on this machine`,
  );
}
