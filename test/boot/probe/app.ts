/** The weather application, and ways to end the server and to fill the bridge to an endpoint: for out/test.eif alone. */
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import * as v from 'valibot';
import { type AppContext, type Application, endpoint } from '../../../src/app.ts';
import { create as createWeather, signs } from '../../../src/apps/weather/app.ts';

export { signs };

const ENDS = {
  exit: () => process.exit(7),
  abort: () => process.abort(),
  throw: () => {
    setImmediate(() => {
      throw new Error('this text must not be seen');
    });
  },
};

export function create(context: AppContext): Application {
  return {
    ...createWeather(context),
    endpoints: [
      endpoint({
        method: 'POST',
        path: '/end',
        body: v.strictObject({ how: v.picklist(['exit', 'abort', 'throw']) }),
        async handle({ how }) {
          setTimeout(ENDS[how], 100);
          return { ending: how };
        },
      }),
      endpoint({
        method: 'POST',
        path: '/bulk',
        body: v.strictObject({ bytes: v.pipe(v.number(), v.safeInteger(), v.minValue(1)) }),
        handle: ({ bytes }) => exchange(bytes),
      }),
    ],
  };
}

/** Sends bytes to the endpoint while it sends, ends its own side, and tells what came. */
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
