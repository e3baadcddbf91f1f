import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { describe, expect, test } from 'vitest';
import { addonPath, addonRunsHere } from './driver.ts';
import { exchanges, filled, hex, unhex } from './exchanges.ts';
import { start } from './start.ts';

const { EACCES, EIO, EMSGSIZE, ENODEV, ETIMEDOUT } = constants.errno;

const O_RDWR_CLOEXEC = 0o2 | 0o2000000;

test.runIf(addonRunsHere)('the addon is built, so that no test below is skipped unnoticed', () => {
  expect(existsSync(addonPath), 'run `make build/nsm.node`').toBe(true);
});

// The addon needs Linux, and the headers of the pinned Node, which exists only for x64.
describe.skipIf(!addonRunsHere)('the native addon', () => {
  test('passes the recorded requests and answers through unchanged', async () => {
    const complete = exchanges.filter((e) => e.requestComplete && e.answerComplete);
    expect(complete.length).toBeGreaterThan(10);
    let next = 0;
    const { driver, child } = start(() => unhex(complete[next++]?.answer as string));

    const answers = await child.run(
      async ({ addon, argument }) => {
        const device = new addon.Device('/dev/nsm');
        const received: Uint8Array[] = [];
        for (const request of argument) {
          received.push(await device.transact(request));
        }
        return received;
      },
      complete.map(({ request }) => unhex(request)),
    );

    expect(driver.requests.map(hex)).toEqual(complete.map(({ request }) => request));
    expect(answers.map(hex)).toEqual(complete.map(({ answer }) => answer));
  });

  test('opens the device for reading and writing, close-on-exec', async () => {
    const { driver, child } = start();
    await child.run(({ addon }) => void new addon.Device('/dev/nsm'));
    expect(driver.opens).toEqual([O_RDWR_CLOEXEC]);
  });

  test('always gives the driver a buffer of 0x3000 bytes', async () => {
    const { driver, child } = start();
    await child.run(({ addon }) => new addon.Device('/dev/nsm').transact(new Uint8Array(1)));
    expect(driver.bufferSizes).toEqual([0x3000]);
  });

  test.each([0, 1, 4096, 0x2fff, 0x3000])('returns an answer of %i bytes unchanged', async (length) => {
    const bytes = Uint8Array.from({ length }, (_, at) => at % 251);
    const { child } = start(() => bytes);
    const answer = await child.run(({ addon }) => new addon.Device('/dev/nsm').transact(new Uint8Array(1)));
    expect(hex(answer)).toBe(hex(bytes));
  });

  test('gets no more bytes than its buffer holds, even if the driver has more', async () => {
    const { child } = start(() => filled(0x5000));
    const answer = await child.run(({ addon }) => new addon.Device('/dev/nsm').transact(new Uint8Array(1)));
    expect(answer).toHaveLength(0x3000);
  });

  test.each([0x3001, 0x10000, 0xffff_fffe])(
    'refuses a reported length of %i bytes',
    async (reportedLength) => {
      const { child } = start(() => ({ bytes: filled(8), reportedLength }));
      await expect(
        child.run(({ addon }) => new addon.Device('/dev/nsm').transact(new Uint8Array(1))),
      ).rejects.toMatchObject({ code: 'ERR_NSM_LENGTH' });
    },
  );

  test('a reported length beyond the answer yields zeros, not old memory', async () => {
    const { child } = start(() => ({ bytes: filled(8), reportedLength: 0x3000 }));
    const answer = await child.run(async ({ addon }) => {
      const device = new addon.Device('/dev/nsm');
      await device.transact(new Uint8Array(4096).fill(0x55));
      return device.transact(new Uint8Array(4096).fill(0x55));
    });
    expect(hex(answer)).toBe('07'.repeat(8) + '00'.repeat(0x3000 - 8));
  });

  test.each([
    ['EIO', EIO],
    ['EMSGSIZE', EMSGSIZE],
    ['ETIMEDOUT', ETIMEDOUT],
    ['ENODEV', ENODEV],
    ['512', 512],
  ])('an ioctl that fails with %s throws its name and number', async (code, errno) => {
    const { child } = start(() => ({ errno }));
    await expect(
      child.run(({ addon }) => new addon.Device('/dev/nsm').transact(new Uint8Array(1))),
    ).rejects.toMatchObject({
      name: 'Error',
      code,
      errno: -errno,
      syscall: 'ioctl',
      message: `ioctl: ${code}`,
    });
  });

  test('the constructor throws if open fails', async () => {
    const { driver, child } = start();
    driver.openErrno = EACCES;
    await expect(child.run(({ addon }) => void new addon.Device('/dev/nsm'))).rejects.toMatchObject({
      code: 'EACCES',
      errno: -EACCES,
      syscall: 'open',
    });
    await expect(child.run(({ addon }) => void new addon.Device('/no/such/device'))).rejects.toMatchObject({
      code: 'ENOENT',
      syscall: 'open',
    });
  });

  test('invalid arguments throw TypeErrors', async () => {
    const { driver, child } = start();
    const names = await child.run(({ addon }) => {
      const device = new addon.Device('/dev/nsm');
      const detached = new Uint8Array(8);
      structuredClone(detached, { transfer: [detached.buffer] });
      const buffer = new ArrayBuffer(8, { maxByteLength: 16 });
      const outOfBounds = new Uint8Array(buffer, 4, 4);
      buffer.resize(2);
      const Plain = addon.Device as unknown as (path: string) => unknown;
      return [
        () => new addon.Device(),
        () => new addon.Device(5),
        () => new addon.Device(''),
        () => new addon.Device('/dev/nsm\0.txt'),
        () => new addon.Device('/dev/nsm', 1),
        () => new addon.Device({ toString: () => '/dev/nsm' }),
        () => Plain('/dev/nsm'),
        () => device.transact(),
        () => device.transact('request'),
        () => device.transact([1, 2]),
        () => device.transact(new ArrayBuffer(2)),
        () => device.transact(new DataView(new ArrayBuffer(2))),
        () => device.transact(new Uint16Array(2)),
        () => device.transact(new Uint8ClampedArray(2)),
        () => device.transact(new Proxy(new Uint8Array(2), {})),
        () => device.transact(new Uint8Array(0)),
        () => device.transact(new Uint8Array(0x1001)),
        () => device.transact(new Uint8Array(1), new Uint8Array(1)),
        () => device.transact(detached),
        () => device.transact(outOfBounds),
        () => device.transact.call({} as never, new Uint8Array(1)),
        () => device.transact.call(Object.create(addon.Device.prototype), new Uint8Array(1)),
        () => device.close.call(new Uint8Array(1) as never),
      ].map((call) => {
        try {
          call();
          return 'nothing thrown';
        } catch (error) {
          return (error as Error).name;
        }
      });
    });
    expect(names).toEqual(names.map(() => 'TypeError'));
    expect(driver.requests).toEqual([]);
  });

  test('sends the part of a buffer that a view covers, with its bytes at the time of the call', async () => {
    const { driver, child } = start();
    await child.run(async ({ addon }) => {
      const device = new addon.Device('/dev/nsm');
      const view = Buffer.from('0123456789').subarray(3, 6);
      const first = device.transact(view);
      view.fill('x');
      await first;
      await device.transact(new Uint8Array(new SharedArrayBuffer(4), 1, 2).fill(9));
    });
    expect(driver.requests.map(hex)).toEqual(['333435', '0909']);
  });

  test('a closed device rejects calls, and closing twice has no effect', async () => {
    const { driver, child } = start();
    await expect(
      child.run(({ addon }) => {
        const device = new addon.Device('/dev/nsm');
        device.close();
        device.close();
        return device.transact(new Uint8Array(1));
      }),
    ).rejects.toMatchObject({ message: 'the device is closed' });
    await expect.poll(() => driver.openNow).toBe(0);
  });

  test('a call in flight survives closing and keeps the descriptor until it returns', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { driver, child } = start(async () => {
      await held;
      return filled(3);
    });
    const answer = child.run(({ addon }) => {
      const device = new addon.Device('/dev/nsm');
      const answer = device.transact(new Uint8Array(1));
      device.close();
      return answer;
    });
    await expect.poll(() => driver.requests.length).toBe(1);
    await child.run(({ pause }) => pause(50));
    expect(driver.openNow).toBe(1);
    release();
    expect(await answer).toEqual(filled(3));
    await expect.poll(() => driver.openNow).toBe(0);
  });

  test('an unreferenced device is closed with its last call', async () => {
    const { driver, child } = start(() => filled(3));
    const answer = await child.run(async ({ addon, pause }) => {
      const { setFlagsFromString } = process.getBuiltinModule('node:v8');
      const { runInNewContext } = process.getBuiltinModule('node:vm');
      setFlagsFromString('--expose-gc');
      const collect = runInNewContext('gc');
      const answer = new addon.Device('/dev/nsm').transact(new Uint8Array(1));
      for (let round = 0; round < 5; round += 1) {
        collect();
        await pause(10);
      }
      return answer;
    });
    expect(answer).toEqual(filled(3));
    await expect.poll(() => driver.openNow).toBe(0);
  });

  test('the event loop continues while the driver blocks', async () => {
    const { child } = start(async () => {
      await new Promise((resolve) => setTimeout(resolve, 2000));
      return filled(1);
    });
    const { ticks, longestGap } = await child.run(async ({ addon }) => {
      let ticks = 0;
      let longestGap = 0;
      let last = performance.now();
      const timer = setInterval(() => {
        ticks += 1;
        longestGap = Math.max(longestGap, performance.now() - last);
        last = performance.now();
      }, 10);
      await new addon.Device('/dev/nsm').transact(new Uint8Array(1));
      clearInterval(timer);
      return { ticks, longestGap };
    });
    expect(ticks).toBeGreaterThan(20);
    expect(longestGap).toBeLessThan(1900);
  });

  describe.each([
    ['answered', { bytes: filled(1) }],
    ['failed', { errno: EIO }],
    ['answered with a wrong length', { bytes: filled(1), reportedLength: 0x3001 }],
  ])('a call that is %s only', (_, reply) => {
    const late = async () => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      return reply;
    };

    test('when its worker thread has ended does not crash the process', async () => {
      const { driver, child } = start(late);
      await child.run(async ({ addonPath }) => {
        const { Worker } = process.getBuiltinModule('node:worker_threads');
        const worker = new Worker(
          `const { Device } = require(${JSON.stringify(addonPath)});
           new Device('/dev/nsm').transact(new Uint8Array(1));
           require('node:worker_threads').parentPort.postMessage('sent');`,
          { eval: true },
        );
        await new Promise((resolve) => worker.once('message', resolve));
        await worker.terminate();
      });
      await expect.poll(() => driver.openNow).toBe(0);
      expect(driver.requests).toHaveLength(1);
      expect(await child.run(() => true)).toBe(true);
      expect(await child.end()).toBe(0);
    });

    test('when process.exit() was called does not change the exit code', async () => {
      const { driver, child } = start(late);
      const ended = new Promise((resolve) => child.process.once('close', resolve));
      const exiting = child.run(({ addon }) => {
        void new addon.Device('/dev/nsm').transact(new Uint8Array(1));
        process.exit(7);
      });
      await expect(exiting).rejects.toThrow('the child process ended');
      expect(await ended).toBe(7);
      expect(child.errors).toBe('');
      expect(driver.requests).toHaveLength(1);
    });
  });
});
