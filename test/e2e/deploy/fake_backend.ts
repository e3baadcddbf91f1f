/**
 * A fake backend: a process that speaks the backend's HTTP contract, and takes a given time for a proof. Its
 * "proof" is a hash of the request, so that a test notices the answer to another request. It prints a line
 * when it begins a request, when it ends one, and when a caller leaves before the end. It listens once it has
 * loaded its key, as a backend does.
 *
 * Arguments: address, port, time of a proof in ms, time that loading takes in ms.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const [host = '', port = '', proofMs = '', loadMs = '0'] = process.argv.slice(2);
let proving = 0;

const computeTag = (body: Buffer) => createHash('sha256').update(body).digest('hex');
const printLine = (text: string) => void process.stdout.write(`${text}\n`);

function answer(response: ServerResponse, status: number, body: string, headers = {}): void {
  response.writeHead(status, headers).end(body);
}

async function prove(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const tag = computeTag(body);
  const { fault } = JSON.parse(body.toString()) as { fault?: number };
  printLine(`begin ${tag} ${++proving}`);
  const closing = new AbortController();
  response.once('close', () => closing.abort());
  await sleep(Number(proofMs), undefined, { signal: closing.signal }).catch(() => {});
  proving--;
  if (closing.signal.aborted) return printLine(`gone ${tag}`);
  printLine(`end ${tag}`);
  if (fault !== undefined) return answer(response, fault, `status ${fault} of ${host}`);
  const proof = { pi_a: [tag, '1', '1'], pi_b: [], pi_c: [], protocol: 'groth16', curve: 'bn128' };
  answer(response, 200, JSON.stringify(proof), { 'content-type': 'application/json' });
}

const server = createServer((request, response) => {
  const route = `${request.method} ${request.url}`;
  if (route === 'GET /healthz') {
    answer(response, 200, JSON.stringify({ status: proving > 0 ? 'proving' : 'ready' }));
  } else if (route === 'POST /input') {
    prove(request, response).catch(() => response.destroy());
  } else {
    answer(response, 404, 'not found');
  }
});
await sleep(Number(loadMs));
server.listen(Number(port), host, () => printLine('listening'));
