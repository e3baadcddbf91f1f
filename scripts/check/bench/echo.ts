/** Serves as the floor of the server: Node's own HTTP server, which returns a JSON body, and answers GET. */
import { createServer } from 'node:http';
import { listenAndAnnounce } from './announce.ts';

const PONG = 'Pong!';

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': PONG.length });
    response.end(PONG);
    return;
  }
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = JSON.stringify(JSON.parse(Buffer.concat(chunks).toString()));
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    });
    response.end(body);
  });
});
listenAndAnnounce(server);
