/** Runs the salt server with production's configuration. The soak changes the issuer's keys and the clock. */
import type { ServerResponse } from 'node:http';
import { serve } from '../../../scripts/check/bench/serve.ts';
import { listenOnLoopback } from '../../../src/testing/fakes.ts';

export type KeysMode = 'well' | 'hangs' | 'dead' | 'lies';

export interface Command {
  readonly keys: KeysMode;
  /** Time by which to set the monotonic clock further ahead, in milliseconds. */
  readonly aheadMs?: number;
}

let mode: KeysMode = 'well';
let aheadMs = 0;
const trueClock = performance.now.bind(performance);
performance.now = () => trueClock() + aheadMs;

process.on('message', (command: Command) => {
  mode = command.keys;
  aheadMs += command.aheadMs ?? 0;
});

const keys = [JSON.parse(process.env['TOKEN_KEY'] ?? '{}')];
const ANSWERS: Readonly<Record<KeysMode, (response: ServerResponse) => void>> = {
  well: (response) => response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys })),
  hangs: () => {},
  dead: (response) => response.destroy(),
  lies: (response) => response.end('{"keys":[{"kty":"none"}]}'),
};
const { origin } = await listenOnLoopback((_request, response) => ANSWERS[mode](response));

const client = { issuer: 'https://accounts.google.com', client_id: 'soak', seed: 1 };
await serve(
  {
    APP: 'salt',
    CORS_ORIGINS: 'none',
    SALT_CLIENTS: JSON.stringify([client]),
    SALT_USER_REQUESTS_PER_MINUTE: '10000',
    LOG_LEVEL: 'info',
  },
  {
    origins: { 'www.googleapis.com': origin },
    secrets: { SALT_SEED: Buffer.from('seed of the soak, not a secret!!').toString('hex') },
  },
);
