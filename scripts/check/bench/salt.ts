/**
 * Starts the salt server as production configures it. It gets keys from a fake of Google on loopback, which
 * has the public key `TOKEN_KEY` (a JWK).
 */
import { listenOnLoopback } from '../../../src/testing/fakes.ts';
import { serve } from './serve.ts';

const keys = [JSON.parse(process.env['TOKEN_KEY'] ?? '{}')];
const { origin } = await listenOnLoopback((_request, response) => {
  response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys }));
});
const client = { issuer: 'https://accounts.google.com', client_id: 'bench', seed: 1 };
await serve(
  {
    APP: 'salt',
    CORS_ORIGINS: 'none',
    SALT_CLIENTS: JSON.stringify([client]),
    SALT_USER_REQUESTS_PER_MINUTE: '10000',
  },
  {
    origins: { 'www.googleapis.com': origin },
    secrets: { SALT_SEED: Buffer.from('seed of the bench, not a secret!').toString('hex') },
  },
);
