import { constants } from 'node:os';
import { decode, encode } from 'cborg';
import { describe, expect, test } from 'vitest';
import { NsmDevice } from '../../../../src/server/nsm/device.ts';
import { NsmError } from '../../../../src/server/nsm/errors.ts';
import { addonPath, addonRunsHere, type Reply } from './driver.ts';
import { description, exchanges, filled, hex, unhex } from './exchanges.ts';
import { start } from './start.ts';

const { EACCES, EIO, EMSGSIZE, ENODEV, ENXIO, ETIMEDOUT } = constants.errno;
const after = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Holds the child's calls until the test gives an answer to each. */
function heldAnswers() {
  const waiting: ((reply: Uint8Array | Reply) => void)[] = [];
  return {
    answer: () => new Promise<Uint8Array | Reply>((resolve) => waiting.push(resolve)),
    give: (reply: Uint8Array | Reply) => waiting.shift()?.(reply),
  };
}

describe('without an NSM', () => {
  const missing = (missingPart: string) =>
    `The NSM driver is missing: ${missingPart}. This is expected outside a Nitro Enclave, for example when running locally.`;

  test('a missing addon is reported as a missing driver', async () => {
    const device = new NsmDevice({ addonPath: '/no/such/nsm.node' });
    const error = await device.transact(filled(1)).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(NsmError);
    expect(error).toMatchObject({
      code: 'NSM_UNAVAILABLE',
      name: 'NsmError',
      message: missing('the native addon cannot be loaded'),
    });
    expect((error as Error).cause).toBeInstanceOf(Error);
  });

  test.each([
    ['a deadline of 0 ms', { deadlineMs: 0 }],
    ['a deadline that is not a number', { deadlineMs: Number.NaN }],
    ['a deadline that timers cannot hold', { deadlineMs: 2 ** 31 }],
    ['a negative queue', { maxWaiting: -1 }],
    ['a queue of half a place', { maxWaiting: 0.5 }],
    ['a relative path of the addon', { addonPath: 'build/nsm.node' }],
  ])('%s is refused', (_, options) => {
    expect(() => new NsmDevice({ addonPath, ...options })).toThrow(
      expect.objectContaining({ code: 'NSM_INPUT' }),
    );
  });

  test.each([
    ['empty', filled(0)],
    ['too long', filled(0x1001)],
    ['not bytes', 'request' as never],
    ['missing', undefined as never],
  ])('rejects a request that is %s', async (_, request) => {
    await expect(new NsmDevice({ addonPath }).transact(request)).rejects.toMatchObject({ code: 'NSM_INPUT' });
  });

  test('a closed device rejects calls', async () => {
    const device = new NsmDevice({ addonPath });
    device.close();
    device.close();
    await expect(device.transact(filled(1))).rejects.toMatchObject({ code: 'NSM_CLOSED' });
  });

  // The other tests need the addon: Linux, and the pinned Node for x64 that it is built with.
  test.skipIf(!addonRunsHere)('a missing device node is reported as a missing driver', async () => {
    const { child } = start();
    const error = await child
      .run(({ NsmDevice, addonPath }) =>
        new NsmDevice({ addonPath, path: '/no/such/device' }).transact(new Uint8Array(1)),
      )
      .catch((error: unknown) => error);
    expect(error).toMatchObject({
      code: 'NSM_UNAVAILABLE',
      message: missing('the device /no/such/device does not exist'),
    });
  });

  test.skipIf(!addonRunsHere).each([
    ['ENXIO', ENXIO],
    ['ENODEV', ENODEV],
  ])('a device node without a driver (%s) is reported as a missing driver', async (_, errno) => {
    const { driver, child } = start();
    driver.openErrno = errno;
    await expect(child.run(({ nsm }) => nsm.getRandom())).rejects.toMatchObject({
      code: 'NSM_UNAVAILABLE',
      message: missing('the device /dev/nsm does not exist'),
    });
  });
});

describe.skipIf(!addonRunsHere)('with a driver that behaves', () => {
  test('every operation gets its recorded answer', async () => {
    const random = exchanges.find(({ request }) => request === '6947657452616e646f6d');
    const { driver, child } = start((request) => {
      const recorded = exchanges.find((e) => e.request === hex(request) && e.answerComplete);
      if (recorded) {
        return unhex(recorded.answer);
      }
      const nsmRequest: unknown = decode(request);
      if (nsmRequest === 'GetRandom') {
        const whole = new Uint8Array(random?.answerLength ?? 0);
        whole.set(unhex(random?.answer ?? ''));
        return whole;
      }
      return nsmRequest === 'DescribeNSM'
        ? encode({ DescribeNSM: description })
        : encode({ Attestation: { document: encode(nsmRequest) } });
    });
    const answers = await child.run(async ({ nsm }) => ({
      nsm: await nsm.describeNsm(),
      random: await nsm.getRandom(),
      pcr0: await nsm.describePcr(0),
      extended: await nsm.extendPcr(16, new TextEncoder().encode('hello')),
      lock: await nsm.lockPcr(16),
      locks: await nsm.lockPcrs(18),
      document: await nsm.attestation({
        publicKey: new Uint8Array(1024).fill(3),
        nonce: new Uint8Array(512).fill(2),
        userData: new Uint8Array(512).fill(1),
      }),
    }));

    expect(answers.nsm).toEqual({
      versionMajor: 1,
      versionMinor: 2,
      versionPatch: 3,
      moduleId: 'i-0123456789abcdef0-enc0123456789abcdef',
      maxPcrs: 32,
      lockedPcrs: [0, 1, 2],
      digest: 'SHA384',
    });
    expect(answers.random).toHaveLength(256);
    expect(hex(answers.random)).toMatch(/^0de032eb0ab638c4/);
    expect(answers.pcr0.lock).toBe(true);
    expect(hex(answers.pcr0.data)).toMatch(/^7923a148c54dcbdce940a1e2/);
    expect(hex(answers.extended)).toMatch(/^30e84b2d7eeffe6d90a475797b/);
    expect(answers.lock).toBeUndefined();
    expect(answers.locks).toBeUndefined();
    // This driver puts the fields of the request into the document.
    expect(decode(answers.document)).toEqual({
      Attestation: { public_key: filled(1024, 3), nonce: filled(512, 2), user_data: filled(512, 1) },
    });
    expect(driver.opens).toHaveLength(1);
  });

  test('a hundred calls at once are sent one by one, in order, and each gets its own answer', async () => {
    const { driver, child } = start(async (request) => {
      await after(1);
      return encode({ GetRandom: { random: request } });
    });
    const answers = await child.run(({ device }) =>
      Promise.all(Array.from({ length: 100 }, (_, n) => device.transact(Uint8Array.of(1, n)))),
    );
    expect(answers.map((answer) => decode(answer))).toEqual(
      Array.from({ length: 100 }, (_, n) => ({ GetRandom: { random: Uint8Array.of(1, n) } })),
    );
    expect(driver.requests).toEqual(Array.from({ length: 100 }, (_, n) => Uint8Array.of(1, n)));
    expect(driver.mostAtOnce).toBe(1);
    expect(driver.opens).toHaveLength(1);
  });

  test('a request is sent with the bytes at the time of the call, even if the array changes later', async () => {
    const { driver, child } = start();
    await child.run(async ({ device }) => {
      const first = device.transact(Uint8Array.of(1));
      const request = Uint8Array.of(2);
      const second = device.transact(request);
      request[0] = 3;
      await Promise.all([first, second]);
    });
    expect(driver.requests.map(hex)).toEqual(['01', '02']);
  });
});

describe.skipIf(!addonRunsHere)('with a driver that fails', () => {
  test.each([
    ['EIO', EIO],
    ['EMSGSIZE', EMSGSIZE],
    ['ETIMEDOUT', ETIMEDOUT],
  ])('names %s, and the next call reopens the device', async (errno, number) => {
    const replies: (Uint8Array | Reply)[] = [encode('LockPCR'), { errno: number }, encode('LockPCR')];
    const { driver, child } = start(() => replies.shift() as Uint8Array);
    await child.run(({ nsm }) => nsm.lockPcr(16));
    await expect(child.run(({ nsm }) => nsm.lockPcr(17))).rejects.toMatchObject({
      code: 'NSM_IO',
      name: 'NsmIo',
      errno,
      syscall: 'ioctl',
      message: `The NSM device failed: ioctl returned ${errno}.`,
    });
    expect(driver.opens).toHaveLength(1);
    await child.run(({ nsm }) => nsm.lockPcr(18));
    expect(driver.opens).toHaveLength(2);
    expect(driver.openNow).toBe(1);
  });

  test('a forbidden open is not reported as a missing driver, and the next call retries it', async () => {
    const { driver, child } = start(() => encode('LockPCR'));
    driver.openErrno = EACCES;
    await expect(child.run(({ nsm }) => nsm.lockPcr(16))).rejects.toMatchObject({
      code: 'NSM_IO',
      errno: 'EACCES',
      syscall: 'open',
    });
    driver.openErrno = 0;
    await child.run(({ nsm }) => nsm.lockPcr(16));
  });

  test.each([
    ['no bytes at all', filled(0)],
    ['a single byte', filled(1, 0xa1)],
    ['garbage', filled(100, 0xff)],
    ['a cut answer', encode({ GetRandom: { random: filled(256) } }).subarray(0, 200)],
    ['an answer that the driver had to cut', encode({ GetRandom: { random: filled(0x4000) } })],
    ['another operation', encode('LockPCR')],
    ['a wrong type', encode({ GetRandom: { random: 'text' } })],
    ['an impossible length', { bytes: filled(8), reportedLength: 0x3001 }],
    ['a length beyond the answer', { bytes: encode('GetRandom'), reportedLength: 100 }],
    ['an unknown error name', encode({ Error: 'Nonsense' })],
  ])('%s is a protocol error', async (_, reply) => {
    const { child } = start(() => reply);
    await expect(child.run(({ nsm }) => nsm.getRandom())).rejects.toMatchObject({ code: 'NSM_PROTOCOL' });
  });

  test.each([
    ['InvalidArgument', 'NSM_INVALID_ARGUMENT'],
    ['InvalidIndex', 'NSM_INVALID_INDEX'],
    ['InvalidResponse', 'NSM_INVALID_RESPONSE'],
    ['ReadOnlyIndex', 'NSM_READ_ONLY_INDEX'],
    ['InvalidOperation', 'NSM_INVALID_OPERATION'],
    ['BufferTooSmall', 'NSM_BUFFER_TOO_SMALL'],
    ['InputTooLarge', 'NSM_INPUT_TOO_LARGE'],
    ['InternalError', 'NSM_INTERNAL_ERROR'],
  ])('the error %s has its own code', async (answer, code) => {
    const { child } = start(() => encode({ Error: answer }));
    await expect(
      child.run(({ nsm }) => nsm.extendPcr(16, new TextEncoder().encode('x'))),
    ).rejects.toMatchObject({ code, message: `The NSM refused ExtendPCR: ${answer}.` });
  });

  test('an error from the NSM does not close the descriptor', async () => {
    const { driver, child } = start(() => encode({ Error: 'InternalError' }));
    for (const _ of [1, 2]) {
      await expect(child.run(({ nsm }) => nsm.getRandom())).rejects.toMatchObject({
        code: 'NSM_INTERNAL_ERROR',
      });
    }
    expect(driver.opens).toHaveLength(1);
  });
});

describe.skipIf(!addonRunsHere)('with a driver that blocks', () => {
  test('callers in flight and in the queue get a time-out, and the device recovers', async () => {
    const held = heldAnswers();
    const { driver, child } = start(held.answer);
    const { messages, waited, ticks } = await child.run(async ({ NsmDevice, addonPath }) => {
      const device = new NsmDevice({ addonPath, deadlineMs: 400 });
      Object.assign(globalThis, { device });
      let ticks = 0;
      const timer = setInterval(() => {
        ticks += 1;
      }, 10);
      const started = performance.now();
      const settled = await Promise.allSettled([1, 2, 3].map((n) => device.transact(Uint8Array.of(n))));
      clearInterval(timer);
      return {
        messages: settled.map((outcome) => outcome.status === 'rejected' && outcome.reason.message),
        waited: performance.now() - started,
        ticks,
      };
    });
    expect(messages).toEqual(Array(3).fill('The NSM did not answer within 400 ms.'));
    expect(waited).toBeGreaterThan(390);
    expect(waited).toBeLessThan(3000);
    expect(ticks).toBeGreaterThan(10);

    // A call that comes while the driver still blocks waits for the driver.
    const next = child.run(() =>
      (globalThis as unknown as { device: NsmDevice }).device.transact(Uint8Array.of(4)),
    );
    await after(100);
    expect(driver.requests.map(hex)).toEqual(['01']);
    // That call gets its own answer, not the late one. The calls that timed out in the queue are never sent.
    held.give(filled(1, 0x11));
    await expect.poll(() => driver.requests.length).toBe(2);
    held.give(filled(1, 0x44));
    expect(await next).toEqual(filled(1, 0x44));
    expect(driver.requests.map(hex)).toEqual(['01', '04']);
    expect(driver.opens).toHaveLength(1);
  });

  test('after a late failure of a call that timed out, the next call opens a new descriptor', async () => {
    const held = heldAnswers();
    const { driver, child } = start(held.answer);
    const timedOut = child.run(({ NsmDevice, addonPath }) => {
      const device = new NsmDevice({ addonPath, deadlineMs: 200 });
      Object.assign(globalThis, { device });
      return device.transact(Uint8Array.of(1));
    });
    await expect(timedOut).rejects.toMatchObject({ code: 'NSM_TIMEOUT', name: 'NsmError' });
    held.give({ errno: ETIMEDOUT });
    const next = child.run(() =>
      (globalThis as unknown as { device: NsmDevice }).device.transact(Uint8Array.of(2)),
    );
    await expect.poll(() => driver.requests.length).toBe(2);
    held.give(filled(1));
    await next;
    expect(driver.opens).toHaveLength(2);
  });

  test('the queue is bounded: one more call is rejected immediately and never sent', async () => {
    const held = heldAnswers();
    const { driver, child } = start(held.answer);
    const running = child.run(async ({ NsmDevice, addonPath }) => {
      const device = new NsmDevice({ addonPath, maxWaiting: 2 });
      const settled = await Promise.allSettled([1, 2, 3, 4, 5].map((n) => device.transact(Uint8Array.of(n))));
      return settled.map((outcome) =>
        outcome.status === 'rejected' ? outcome.reason.message : outcome.value[0],
      );
    });
    for (const n of [1, 2, 3]) {
      await expect.poll(() => driver.requests.length).toBe(n);
      held.give(filled(1, n));
    }
    const busy = 'The NSM is busy, with 2 calls in its queue.';
    expect(await running).toEqual([1, 2, 3, busy, busy]);
    expect(driver.requests.map(hex)).toEqual(['01', '02', '03']);
  });

  test('without a queue there is still one call at a time', async () => {
    const { child } = start();
    const codes = await child.run(async ({ NsmDevice, addonPath }) => {
      const device = new NsmDevice({ addonPath, maxWaiting: 0 });
      const settled = await Promise.allSettled([1, 2].map((n) => device.transact(Uint8Array.of(n))));
      await device.transact(Uint8Array.of(3));
      return settled.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.code : 'answered'));
    });
    expect(codes).toEqual(['answered', 'NSM_BUSY']);
  });

  test('closing rejects the call in flight and the queue, and closes the descriptor when the driver returns', async () => {
    const held = heldAnswers();
    const { driver, child } = start(held.answer);
    const codes = child.run(async ({ nsm, pause }) => {
      const calls = [nsm.getRandom(), nsm.getRandom(), nsm.getRandom()];
      await pause(100);
      nsm.close();
      const settled = await Promise.allSettled([...calls, nsm.getRandom()]);
      return settled.map((outcome) => outcome.status === 'rejected' && outcome.reason.code);
    });
    expect(await codes).toEqual(Array(4).fill('NSM_CLOSED'));
    expect(driver.requests).toHaveLength(1);
    expect(driver.openNow).toBe(1);
    held.give(encode({ GetRandom: { random: filled(256) } }));
    await expect.poll(() => driver.openNow).toBe(0);
    expect(driver.requests).toHaveLength(1);
    expect(driver.opens).toHaveLength(1);
  });

  test('nothing keeps the process alive after the last answer', async () => {
    const { child } = start(() => encode({ GetRandom: { random: filled(256) } }));
    await child.run(({ nsm }) => nsm.getRandom());
    const started = performance.now();
    expect(await child.end()).toBe(0);
    expect(performance.now() - started).toBeLessThan(3000);
  });
});
