/** Serves as the floor for refusals: a bare Node server that answers every request with the same 503. */
import { createServer } from 'node:http';
import { listenAndAnnounce } from '../../../scripts/check/bench/announce.ts';
import { SLOTS } from './settings.ts';

const body = JSON.stringify({
  error: `the server is busy with ${SLOTS} requests: try again`,
  code: 'OVERLOADED',
});

const server = createServer((_request, response) => {
  response.writeHead(503, [
    'content-type',
    'application/json; charset=utf-8',
    'content-length',
    String(Buffer.byteLength(body)),
    'retry-after',
    '1',
    'cache-control',
    'no-store',
  ]);
  response.end(body);
});
listenAndAnnounce(server);
