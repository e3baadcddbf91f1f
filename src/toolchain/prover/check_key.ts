/**
 * `sui-enclave prover_check_key`: identifies the proving key in a file, and says which validators accept its
 * proofs.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { quantity } from 'sui-enclave/wording';
import { command, EXIT, type Result, runAsProcess, UnreadableFileError } from 'sui-enclave-cli/command';
import { path } from 'sui-enclave-cli/values';
import { KNOWN_KEYS } from 'sui-enclave-prover/keys/known';

const CHUNK = 4 * 1024 ** 2;

export const main = command({
  name: 'prover_check_key',
  purpose: "Checks whether a file is one of zkLogin's two published proving keys, by its BLAKE2b-512.",
  example: 'main.zkey',
  arguments: { file: { schema: path } },
  options: {},
  notes:
    'exit codes: 0 a published key; 1 any other file; 2 invalid command line, or the file can not be read',
  run: async ({ args: { file } }) => judgeKey(file, await readDigest(file)),
});

export interface KeyDigest {
  readonly bytes: number;
  /** The BLAKE2b-512 digest in hexadecimal. */
  readonly blake2b: string;
}

/** Returns whether a file is a published key, by its digest, with advice if it is not. */
export function judgeKey(file: string, { bytes, blake2b }: KeyDigest): Result {
  const knownKey = KNOWN_KEYS.find((key) => key.blake2b === blake2b);
  if (knownKey === undefined) {
    return {
      exit: EXIT.failed,
      json: { published: false, network: null, bytes, blake2b },
      text: `${file} is not a published key: ${explain(bytes)}\n\n${quantity(bytes, 'byte')}\nBLAKE2b-512 ${blake2b}`,
    };
  }
  const { name, network } = knownKey;
  return {
    json: { published: true, network, bytes, blake2b },
    text: `${file} is the published key of ${network}: validators of ${network}, and of no other network, accept its proofs.
Set VERIFYING_KEY=${name} for the front end.

${quantity(bytes, 'byte')}
BLAKE2b-512 ${blake2b}`,
  };
}

function explain(bytes: number): string {
  const sameSizeKey = KNOWN_KEYS.find((key) => key.bytes === bytes);
  if (sameSizeKey !== undefined)
    return `it has the size of the key of ${sameSizeKey.network}, but other content. Download it again.`;
  const largest = Math.max(...KNOWN_KEYS.map((key) => key.bytes));
  const sizes = KNOWN_KEYS.map((key) => `${quantity(key.bytes, 'byte')} (${key.network})`).join(' and ');
  return bytes < largest
    ? `published keys have ${sizes}. If the download ended early, continue it with curl -C -.`
    : `published keys have ${sizes}.`;
}

async function readDigest(file: string): Promise<KeyDigest> {
  const hash = createHash('blake2b512');
  let bytes = 0;
  try {
    // Without this flag, opening a FIFO would wait for a writer.
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    if (!(await handle.stat()).isFile()) {
      throw Object.assign(new Error(), { code: 'NOT_A_REGULAR_FILE' });
    }
    for await (const chunk of handle.createReadStream({ highWaterMark: CHUNK })) {
      hash.update(chunk);
      bytes += chunk.length;
    }
  } catch (cause) {
    throw new UnreadableFileError(`${file} can't be read: ${(cause as NodeJS.ErrnoException).code}`, {
      cause,
    });
  }
  return { bytes, blake2b: hash.digest('hex') };
}

if (import.meta.main) await runAsProcess(main);
