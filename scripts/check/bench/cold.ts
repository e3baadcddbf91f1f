/**
 * Serves as the floor of a request for a new place: Node's own HTTP server, which asks the fake at `FAKE`
 * with Node's own client. With `SIGNS` it also signs its answer, as a server without BCS would.
 */
import { generateKeyPairSync, sign } from 'node:crypto';
import { Agent, createServer, type IncomingMessage, request as send } from 'node:http';
import { DEV_API_KEY } from '../../../src/testing/weather_api.ts';
import { listenAndAnnounce } from './announce.ts';

const fake = process.env['FAKE'] ?? '';
const agent = new Agent({ keepAlive: true, maxSockets: 256, maxFreeSockets: 256 });

const { privateKey } = generateKeyPairSync('ed25519');
const answerWith: (current: object) => string = process.env['SIGNS']
  ? (current) => {
      const response = JSON.stringify(current);
      const signature = sign(null, Buffer.from(response), privateKey).toString('hex');
      return `{"response":${response},"signature":"${signature}"}`;
    }
  : (current) => JSON.stringify(current);

function readJson(message: IncomingMessage, use: (json: never) => void): void {
  const chunks: Buffer[] = [];
  message.on('data', (chunk: Buffer) => chunks.push(chunk));
  message.on('end', () => use(JSON.parse(Buffer.concat(chunks).toString()) as never));
}

const server = createServer((request, response) => {
  readJson(request, ({ payload }: { payload: { location: string } }) => {
    const query = new URLSearchParams({ key: DEV_API_KEY, q: payload.location });
    send(`${fake}/v1/current.json?${query}`, { agent }, (answer) => {
      readJson(answer, ({ current }: { current: object }) => {
        const body = answerWith(current);
        response.writeHead(200, {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
        });
        response.end(body);
      });
    }).end();
  });
});
listenAndAnnounce(server);
