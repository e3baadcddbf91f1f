/** The weather application, and ways to end the server and to fill the bridge to an endpoint: for out/test.eif alone. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { totalmem } from 'node:os';
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
      endpoint({ method: 'GET', path: '/inside', handle: async () => lookAround() }),
      endpoint({
        method: 'POST',
        path: '/bulk',
        body: v.strictObject({ bytes: v.pipe(v.number(), v.safeInteger(), v.minValue(1)) }),
        handle: ({ bytes }) => exchange(bytes),
      }),
    ],
  }),
});

/** Sends bytes to the endpoint while it sends, ends its own side, and reports what came. */
function exchange(bytes: number): Promise<object> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: 'bulk.example.com', port: 443, allowHalfOpen: true });
    const digest = createHash('sha256');
    let received = 0;
    let left = bytes;
    const send = () => {
      while (left > 0) {
        const chunk = Buffer.alloc(Math.min(left, 64 * 1024), left % 251);
        left -= chunk.length;
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

/** The identity and rights of this process. */
function lookAround(): object {
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
