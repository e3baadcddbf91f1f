/**
 * Runs the fake weather service, which answers after 40 ms. On the soak's command, it hangs, lies or
 * recovers.
 */
import { createServer, type ServerResponse } from 'node:http';
import { computeTemperature } from '../../../src/testing/weather_api.ts';
import { UPSTREAM_MS } from './settings.ts';

type Mode = 'well' | 'hangs' | 'lies';

let mode: Mode = 'well';
let held: (() => void)[] = [];
let lies = 0;

/** Answers that the server must refuse, since they contain no valid reading. */
const LIES: readonly ((response: ServerResponse, place: string) => void)[] = [
  (response) => response.end('<html>it is sunny</html>'),
  (response) => response.writeHead(500).end('{"error":{"code":9999}}'),
  (response) => response.end('{"current":{}}'),
  (response, place) => response.end(formatReading(place, { temp_c: '13' })),
  (response, place) => response.end(formatReading(place, { temp_c: 1e30 })),
  (response, place) => response.end(formatReading(place, { last_updated_epoch: 1 })),
  (response) => response.end(JSON.stringify({ padding: 'x'.repeat(70_000) })),
  (response) => response.writeHead(302, { location: '/v1/current.json?q=Paris' }).end(),
  (response) => response.destroy(),
];

function formatReading(place: string, changes: object = {}): string {
  const epoch = Math.floor(Date.now() / 1000);
  const current = { temp_c: computeTemperature(place), last_updated_epoch: epoch, ...changes };
  return JSON.stringify({ current });
}

const server = createServer((request, response) => {
  const place = new URL(request.url ?? '/', 'http://fake').searchParams.get('q') ?? '';
  const answer = () => {
    response.setHeader('content-type', 'application/json');
    if (mode !== 'lies') response.end(formatReading(place));
    else LIES[lies++ % LIES.length]?.(response, place);
  };
  if (mode === 'hangs') held.push(answer);
  else setTimeout(answer, UPSTREAM_MS);
});

process.on('message', (message: { mode: Mode }) => {
  mode = message.mode;
  if (mode === 'hangs') return;
  for (const answer of held) answer();
  held = [];
});
process.on('disconnect', () => process.exit());
const port = Number(process.env['PORT']);
server.listen(port, '127.0.0.1', () => process.send?.({ origin: `http://127.0.0.1:${port}` }));
