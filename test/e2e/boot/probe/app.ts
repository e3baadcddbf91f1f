/**
 * The weather application, with endpoints that end the server or fill the bridge to an endpoint. Only
 * out/test.eif contains it.
 */
import { spawnSync } from 'node:child_process';
import { createHash, pbkdf2 } from 'node:crypto';
import { closeSync, constants, openSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { totalmem } from 'node:os';
import { promisify } from 'node:util';
import { defineApp, endpoint } from 'sui-enclave-server';
import weather from 'sui-enclave-weather/app';
import * as v from 'valibot';

const ENDS = {
  exit: () => process.exit(7),
  abort: () => process.abort(),
  throw: () => {
    setImmediate(() => {
      throw new Error('this text must not be seen');
    });
  },
};

export default defineApp({
  signs: weather.signs,
  create: (context) => ({
    endpoints: [
      ...(weather.create(context).endpoints ?? []),
      endpoint({
        method: 'POST',
        path: '/end',
        body: v.strictObject({ how: v.picklist(['exit', 'abort', 'throw']) }),
        async handle({ how }) {
          setTimeout(ENDS[how], 100);
          return { ending: how };
        },
      }),
      endpoint({ method: 'GET', path: '/inside', handle: async () => describeProcess() }),
      endpoint({ method: 'POST', path: '/work', body: v.strictObject({}), handle: useProcessors }),
      endpoint({
        method: 'POST',
        path: '/bulk',
        body: v.strictObject({ bytes: v.pipe(v.number(), v.safeInteger(), v.minValue(1)) }),
        handle: ({ bytes }) => exchange(bytes),
      }),
    ],
  }),
});

/**
 * Sends bytes to the endpoint while the endpoint sends, ends its own side, and reports the received bytes.
 */
function exchange(bytes: number): Promise<object> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: 'bulk.example.com', port: 443, allowHalfOpen: true });
    const digest = createHash('sha256');
    let received = 0;
    let remaining = bytes;
    const send = () => {
      while (remaining > 0) {
        const chunk = Buffer.alloc(Math.min(remaining, 64 * 1024), remaining % 251);
        remaining -= chunk.length;
        if (!socket.write(chunk)) return;
      }
      socket.end();
    };
    socket.on('connect', send);
    socket.on('drain', send);
    socket.on('data', (chunk) => {
      received += chunk.length;
      digest.update(chunk);
    });
    socket.on('end', () => resolve({ received, sha256: digest.digest('hex') }));
    socket.on('error', reject);
  });
}

/**
 * Occupies every thread of the pool, and reports how long each processor has worked meanwhile, in ticks of 10
 * ms.
 */
async function useProcessors(): Promise<object> {
  const before = busyTicks();
  const work = promisify(pbkdf2);
  await Promise.all(
    Array.from({ length: 16 }, (_, index) => work('x', String(index), 100_000, 64, 'sha512')),
  );
  return { ticks: busyTicks().map((ticks, index) => ticks - (before[index] ?? 0)) };
}

/** Returns the time of each processor in user mode, in ticks (proc_stat(5)). */
function busyTicks(): number[] {
  const lines = readFileSync('/proc/stat', 'utf8').match(/^cpu\d+ .*$/gm) ?? [];
  return lines.map((line) => Number(line.split(' ')[1]));
}

/** Returns the nodes of /dev that this process can open to read or to write. */
function listOpenableDevices(): string[] {
  const canOpen = (path: string, flags: number) => {
    try {
      closeSync(openSync(path, flags | constants.O_NONBLOCK | constants.O_NOCTTY));
      return true;
    } catch {
      return false;
    }
  };
  return readdirSync('/dev')
    .filter((name) => statSync(`/dev/${name}`).isCharacterDevice())
    .filter((name) =>
      [constants.O_RDONLY, constants.O_WRONLY].some((flags) => canOpen(`/dev/${name}`, flags)),
    )
    .sort();
}

/** Returns the identity and rights of this process. */
function describeProcess(): object {
  const status = readFileSync('/proc/self/status', 'utf8');
  const field = (name: string) =>
    new RegExp(`^${name}:[ \\t]*(.*)$`, 'm').exec(status)?.[1]?.replaceAll('\t', ' ');
  const canWrite = (path: string) => {
    try {
      writeFileSync(path, 'x');
      return true;
    } catch {
      return false;
    }
  };
  return {
    uid: field('Uid'),
    gid: field('Gid'),
    groups: field('Groups')?.trim(),
    capabilities: field('CapEff'),
    bounding_set: field('CapBnd'),
    may_gain: field('NoNewPrivs') !== '1',
    processes: readdirSync('/proc').filter((name) => /^\d+$/.test(name)).length,
    programs: readdirSync('/bin'),
    environment: Object.keys(process.env).sort(),
    writable: [
      '/x',
      '/app/x',
      '/etc/hosts',
      '/run/x',
      '/run/clock/x',
      '/run/clock/state',
      '/run/last_end',
      '/dev/x',
      '/tmp/x',
    ].filter(canWrite),
    devices: listOpenableDevices(),
    seccomp: field('Seccomp'),
    start_of_a_process: (spawnSync('/bin/node', ['--version']).error as NodeJS.ErrnoException | undefined)
      ?.code,
    threads: readdirSync('/proc/self/task').length,
    most_threads: /^Max processes +(\d+) +\d+/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1],
    kptr_restrict: readFileSync('/proc/sys/kernel/kptr_restrict', 'utf8').trim(),
    has_acpi: readFileSync('/proc/interrupts', 'utf8').includes('ACPI'),
    nsm: `${statSync('/dev/nsm').uid} ${(statSync('/dev/nsm').mode & 0o777).toString(8)}`,
    clock_state_owner: statSync('/run/clock/state').uid,
    descriptors: readdirSync('/proc/self/fd').length,
    memory: {
      total: totalmem(),
      available: 1024 * Number(/^MemAvailable: +(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1]),
      server: process.memoryUsage.rss(),
    },
  };
}
