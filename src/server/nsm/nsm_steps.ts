/**
 * Requests to the NSM at the server's start: for random bytes, for documents that confirm the clock, and for
 * the registers. Outside an enclave, there is no NSM.
 */
import { randomBytes } from 'node:crypto';
import type { EnclaveState } from 'sui-enclave/sealing/secrets';
import type { Logger } from 'sui-enclave-service/log';
import { type Clock, CONFIRM_EVERY_MS } from './clock.ts';
import { type Documents, readTimestamp } from './documents.ts';
import { NsmError, unusableAnswer } from './errors.ts';
import type { Nsm } from './nsm.ts';

/** Size in bytes of the nonce in the document with which the clock is compared. */
const CLOCK_NONCE_BYTES = 16;

/**
 * Reads random bytes for the keys.
 *
 * @param required `NSM_REQUIRED`
 * @returns undefined if there is no NSM, and none is required
 * @throws NsmError if an NSM is required and missing, or fails
 */
export async function readRandom(nsm: Nsm, required: boolean): Promise<Uint8Array | undefined> {
  return await nsm.getRandom().catch((error: unknown) => {
    const isAbsent = error instanceof NsmError && error.code === 'NSM_UNAVAILABLE';
    if (isAbsent && !required) return undefined;
    throw error;
  });
}

/**
 * Compares the clock with the NSM's clock now, and then every minute.
 *
 * @param required whether a failure stops the start; otherwise it is logged. Callers need the attestation of
 *   the key, so an NSM that can't attest is useless
 * @returns a function that ends the comparisons
 * @throws NsmError
 */
export async function keepClockConfirmed(
  clock: Clock,
  documents: Documents,
  log: Logger,
  required: boolean,
): Promise<() => void> {
  const confirm = async () => {
    const nonce = randomBytes(CLOCK_NONCE_BYTES);
    const requestedAt = Date.now();
    const document = await documents.urgent(nonce);
    clock.compare(readTimestamp(document), requestedAt, Date.now());
  };
  const warn = (err: unknown) => log.warn({ err }, 'the NSM did not confirm the clock');
  await confirm().catch((error: unknown) => {
    if (required) throw error;
    warn(error);
  });
  const confirming = setInterval(() => void confirm().catch(warn), CONFIRM_EVERY_MS).unref();
  return () => clearInterval(confirming);
}

const REGISTER_BYTES = 48;

/**
 * Reads PCR0 to PCR2.
 *
 * @returns undefined if they can't be read, and no NSM is required
 * @throws NsmError
 */
export async function readNsmRegisters(
  nsm: Nsm,
  required: boolean,
): Promise<EnclaveState['registers'] | undefined> {
  try {
    return await readRegisters(nsm);
  } catch (error) {
    if (required) throw error;
    return undefined;
  }
}

async function readRegisters(nsm: Nsm): Promise<EnclaveState['registers']> {
  const read = async (index: number) => {
    const { data } = await nsm.describePcr(index);
    if (data.length !== REGISTER_BYTES) throw unusableAnswer(`PCR${index} is not a SHA-384 digest`);
    return data;
  };
  return [await read(0), await read(1), await read(2)];
}
