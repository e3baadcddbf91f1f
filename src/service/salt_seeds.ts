/** Reads the seed of the salt service from its file, whose format the service and the commands share. */
import { createHmac } from 'node:crypto';
import { ConfigError } from 'sui-enclave/errors';

const FINGERPRINT_BYTES = 16;

/** Mark in the file with the seed of `make dev-wallet`, so that it is not used as a real seed. */
export const DEVELOPMENT_SEED_MARK = 'sui-enclave development seed: ';

/** Returns a text that identifies a seed without revealing it: 32 hex characters of HMAC-SHA-256. */
export function fingerprint(seed: Uint8Array): string {
  return createHmac('sha256', seed)
    .update('sui-enclave salt seed')
    .digest()
    .subarray(0, FINGERPRINT_BYTES)
    .toString('hex');
}

/**
 * Reads the seeds by version: the first line is version 1, the next line version 2. Each seed has 64 hex
 * characters.
 *
 * @throws ConfigError for the development seed; for an invalid line, which it names without quoting it
 */
export function parseSeeds(text: string): Buffer[] {
  if (text.includes(DEVELOPMENT_SEED_MARK)) {
    throw new ConfigError(
      'SALT_SEED is the development seed of make dev-wallet, which is for one machine only: generate a seed with `npx --offline sui-enclave salt_seed generate FILE`',
    );
  }
  const lines = text.split('\n');
  for (const [index, line] of lines.entries()) {
    const [location, firstIndex] = [`SALT_SEED, line ${index + 1},`, lines.indexOf(line)];
    if (!/^[0-9a-f]{64}$/i.test(line))
      throw new ConfigError(`${location} must be 64 hex characters (32 bytes)`);
    if (firstIndex < index) throw new ConfigError(`${location} repeats line ${firstIndex + 1}`);
  }
  return lines.map((line) => Buffer.from(line, 'hex'));
}
