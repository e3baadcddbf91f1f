/** Tests the requests to the NSM at the server's start. */
import { encode } from 'cborg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Clock, CONFIRM_EVERY_MS } from '../../../../src/server/nsm/clock.ts';
import { Documents } from '../../../../src/server/nsm/documents.ts';
import { NsmError, NsmIo, unavailable } from '../../../../src/server/nsm/errors.ts';
import { Nsm } from '../../../../src/server/nsm/nsm.ts';
import { keepClockConfirmed, readNsmRegisters, readRandom } from '../../../../src/server/nsm/nsm_steps.ts';
import { createLog } from '../../../../src/service/log.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';

/** Creates an NSM that fails at every request. */
const failing = (error: Error) => new Nsm({ transact: () => Promise.reject(error), close() {} });
const MISSING = unavailable('there is no /dev/nsm');
const BROKEN = new NsmIo('ioctl', 'EIO');

function recorded() {
  let printed = '';
  const log = createLog('info', {
    write(line) {
      printed += line;
    },
  });
  return { log, printed: () => printed };
}

describe('the random bytes', () => {
  test('are those of the NSM', async () => {
    expect((await readRandom(new Nsm(new EmulatedNsm()), true))?.length).toBe(256);
  });

  test('are left out if there is no NSM, unless one is required', async () => {
    expect(await readRandom(failing(MISSING), false)).toBeUndefined();
    await expect(readRandom(failing(MISSING), true)).rejects.toBe(MISSING);
  });

  test('stop the start if an NSM is there and fails, required or not', async () => {
    for (const required of [true, false]) {
      await expect(readRandom(failing(BROKEN), required)).rejects.toBe(BROKEN);
    }
  });
});

describe('the clock', () => {
  const createDocuments = (nsm: Nsm) =>
    new Documents(nsm, { publicKey: new Uint8Array(32), userData: new Uint8Array() });

  test('is confirmed immediately, and then every minute until the confirmations are ended', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const nsm = new Nsm(new EmulatedNsm());
    const attestation = vi.spyOn(nsm, 'attestation');
    const clock = new Clock(undefined);
    expect(() => clock.requireConfirmed()).toThrow(expect.objectContaining({ code: 'CLOCK_UNCONFIRMED' }));
    const end = await keepClockConfirmed(clock, createDocuments(nsm), recorded().log, true);
    clock.requireConfirmed();
    expect(attestation).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(CONFIRM_EVERY_MS);
    await expect.poll(() => attestation).toHaveBeenCalledTimes(2);
    end();
    vi.advanceTimersByTime(10 * CONFIRM_EVERY_MS);
    expect(attestation).toHaveBeenCalledTimes(2);
    const nonces = attestation.mock.calls.map(([{ nonce }]) =>
      Buffer.from(nonce as Uint8Array).toString('hex'),
    );
    expect(new Set(nonces).size).toBe(2);
  });

  test('stops the start if a required NSM does not confirm it; otherwise the failure is logged, and the clock stays unconfirmed', async () => {
    const clock = new Clock(undefined);
    const { log, printed } = recorded();
    await expect(keepClockConfirmed(clock, createDocuments(failing(BROKEN)), log, true)).rejects.toBe(BROKEN);
    expect(printed()).toBe('');
    const end = await keepClockConfirmed(clock, createDocuments(failing(BROKEN)), log, false);
    onTestFinished(end);
    expect(printed()).toMatch(/the NSM did not confirm the clock/);
    expect(() => clock.requireConfirmed()).toThrow(expect.objectContaining({ code: 'CLOCK_UNCONFIRMED' }));
  });
});

describe('the registers', () => {
  test('are PCR0 to PCR2', async () => {
    const registers = await readNsmRegisters(new Nsm(new EmulatedNsm()), true);
    expect(registers?.map(({ length }) => length)).toEqual([48, 48, 48]);
  });

  test('cause an error if an NSM is required and they are not SHA-384 digests; otherwise they are left out', async () => {
    const short = encode({ DescribePCR: { lock: true, data: new Uint8Array(32) } });
    const nsm = new Nsm({ transact: async () => short, close() {} });
    await expect(readNsmRegisters(nsm, true)).rejects.toThrow(NsmError);
    expect(await readNsmRegisters(nsm, false)).toBeUndefined();
    expect(await readNsmRegisters(failing(MISSING), false)).toBeUndefined();
  });
});
