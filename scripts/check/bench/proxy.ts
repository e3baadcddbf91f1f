/**
 * A proxy for peers, in a process of its own. It sends their requests for api.weatherapi.com to the fake at
 * `FAKE`, and refuses all others. It has a TLS certificate of an authority of its own, and writes the
 * authority's certificate to the file `AUTHORITY`.
 */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Socket } from 'node:net';
import { UPSTREAM_HOST } from '../../../src/apps/weather/upstream.ts';
import { forwardTls, makeTls } from '../../../src/testing/tls.ts';
import { listenAndAnnounce } from './announce.ts';

const tls = makeTls([UPSTREAM_HOST]);
writeFileSync(process.env['AUTHORITY'] ?? '', tls.ca);

const server = createServer((_request, response) => response.writeHead(403).end());
server.on('connect', ({ url }, socket) => {
  if (url !== `${UPSTREAM_HOST}:443`) {
    socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
    return;
  }
  socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
  forwardTls(socket as Socket, process.env['FAKE'] ?? '', tls);
});
listenAndAnnounce(server);
