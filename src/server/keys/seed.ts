import { hkdfSync, randomBytes } from 'node:crypto';
import { quantity } from 'sui-enclave/wording';

const SEED_BYTES = 32;
/** Minimum number of bytes that GetRandom must contribute. The NSM returns up to 256 bytes. */
const MIN_NSM_RANDOM_BYTES = 32;

/**
 * Makes the seed of a key that is generated at boot, by HKDF-SHA256 (RFC 5869). Its input is 32 bytes from
 * OpenSSL's generator, which getrandom(2) seeds once the kernel's pool is ready, followed by the NSM's bytes
 * if there is an NSM. The key is as strong as the stronger of the two sources.
 *
 * @param label text that differs for each key of one boot
 * @param nsmRandom at least 32 bytes from GetRandom, which the caller wipes
 * @returns 32 bytes, which the caller wipes
 */
export function bootSeed(label: string, nsmRandom?: Uint8Array): Uint8Array {
  if (nsmRandom !== undefined && nsmRandom.length < MIN_NSM_RANDOM_BYTES) {
    throw new RangeError(
      `NSM GetRandom returned ${quantity(nsmRandom.length, 'byte')}, but the key needs ${MIN_NSM_RANDOM_BYTES} or more`,
    );
  }
  const random = randomBytes(SEED_BYTES);
  // Not Buffer.concat: its result may lie in Node's shared pool, which the code below doesn't wipe.
  const ikm = Buffer.alloc(SEED_BYTES + (nsmRandom?.length ?? 0));
  ikm.set(random);
  ikm.set(nsmRandom ?? [], SEED_BYTES);
  try {
    return new Uint8Array(hkdfSync('sha256', ikm, '', label, SEED_BYTES));
  } finally {
    random.fill(0);
    ikm.fill(0);
  }
}
