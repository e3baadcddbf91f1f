/**
 * Runs two lying hosts, each a proxy in front of an emulated enclave of `play`. One host changes signed
 * answers, and the other repeats an earlier answer. Pages must refuse the answers of both.
 */
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { readBody } from 'sui-enclave-testing/loopback';

/** Maximum size of a request in bytes, the same as the enclave's. */
const MAX_REQUEST = 1024 * 1024;
/** Maximum number of answers that the host remembers. */
const MAX_ANSWERS = 100;
/** Headers that the proxy does not forward, since they belong to one connection or one message. */
const PER_CONNECTION = ['connection', 'keep-alive', 'transfer-encoding', 'content-length', 'date'];

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: Buffer;
}

interface Call {
  readonly request: IncomingMessage;
  readonly body: Buffer;
  /** Sends the request to the enclave. */
  forward(): Promise<Answer>;
}

/** Changes a signed answer, and forwards everything else. */
export function createChangingProxy(enclaveUrl: string): Server {
  return createProxy(enclaveUrl, async ({ forward }) => {
    const answer = await forward();
    return { ...answer, body: changeSigned(answer.body) };
  });
}

/** Repeats the first signed answer of each endpoint, whatever the request. */
export function createReplayingProxy(enclaveUrl: string): Server {
  const answers = new Map<string, Answer>();
  return createProxy(enclaveUrl, async ({ request: { method, url = '' }, forward }) => {
    const endpoint = `${method} ${url.replace(/\?.*/s, '')}`;
    const earlier = answers.get(endpoint);
    if (earlier) return earlier;
    const answer = await forward();
    if (readSigned(answer.body) && answers.size < MAX_ANSWERS) answers.set(endpoint, answer);
    return answer;
  });
}

function createProxy(enclaveUrl: string, answer: (call: Call) => Promise<Answer>): Server {
  const handle = async (incoming: IncomingMessage, response: ServerResponse) => {
    const body = await readBody(incoming, response, MAX_REQUEST);
    if (body === null) return;
    const forward = () => ask(enclaveUrl, incoming, body);
    const { status, headers, body: content } = await answer({ request: incoming, body, forward });
    response.writeHead(status, headers as Record<string, string>).end(content);
  };
  return createServer((incoming, response) => {
    handle(incoming, response).catch(() => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502, { 'content-type': 'text/plain' }).end('The enclave did not answer.\n');
    });
  });
}

/** Sends a request to the enclave. @throws Node's errors about the connection */
async function ask(
  enclaveUrl: string,
  { method, url = '/', headers }: IncomingMessage,
  body: Buffer,
): Promise<Answer> {
  const { host, hostname, port } = new URL(enclaveUrl);
  const requestHeaders = Object.entries(headers).filter(
    ([name]) => !PER_CONNECTION.includes(name) && name !== 'host',
  );
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request({
      hostname,
      port,
      method,
      path: url,
      headers: { ...Object.fromEntries(requestHeaders), host, 'content-length': body.length },
    });
    sent.once('response', resolve).once('error', reject).end(body);
  });
  const responseHeaders = Object.entries(response.headers).filter(([name]) => !PER_CONNECTION.includes(name));
  return {
    status: response.statusCode ?? 502,
    headers: Object.fromEntries(responseHeaders) as Answer['headers'],
    body: await buffer(response),
  };
}

interface Signed {
  readonly response: { readonly data: Record<string, unknown> };
  readonly signature: string;
}

/** Returns the signed answer in a body; undefined for any other body. */
function readSigned(body: Buffer): Signed | undefined {
  try {
    const answer = JSON.parse(body.toString());
    const isSigned = typeof answer.signature === 'string' && typeof answer.response.data === 'object';
    return isSigned && answer.response.data !== null ? answer : undefined;
  } catch {
    return undefined;
  }
}

/** Changes the last field of the signed data, and leaves the signature unchanged. */
function changeSigned(body: Buffer): Buffer {
  const answer = readSigned(body);
  const name = Object.keys(answer?.response.data ?? {}).at(-1);
  if (answer === undefined || name === undefined) return body;
  const { data } = answer.response;
  data[name] = changeValue(data[name]);
  return Buffer.from(JSON.stringify(answer));
}

/** Returns another value of the same type, so that only the signature reveals the change. */
function changeValue(value: unknown): unknown {
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'string') return /^\d+$/.test(value) ? `${BigInt(value) + 1n}` : `${value}!`;
  if (Array.isArray(value)) return value.length > 0 ? value.map(changeValue) : [0];
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, changeValue(part)]));
  }
  return value;
}
