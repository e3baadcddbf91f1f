/**
 * The default way to send a request in Node: `node:http` and `node:https`, which decode nothing. Node's own
 * fetch decodes what a server declares in `Content-Encoding`, even if the request accepts `identity` only,
 * and a dispatcher can't prevent that. This is the only module of the library that imports from Node: see
 * `imports` in package.json.
 */
import * as http from 'node:http';
import * as https from 'node:https';

/**
 * Headers that the Fetch standard ("HTTP-network-or-cache fetch") adds with `cache: 'no-store'`, and those by
 * which Node's fetch identifies itself.
 */
const DEFAULT_HEADERS = {
  accept: '*/*',
  'user-agent': 'node',
  'cache-control': 'no-cache',
  pragma: 'no-cache',
} as const;

/**
 * Headers about the connection, which does not belong to the caller. Node's fetch refuses all of them except
 * `trailer`.
 */
const REFUSED_HEADERS = ['expect', 'keep-alive', 'trailer', 'transfer-encoding', 'upgrade'];
/** Headers that this module sets itself: see the forbidden request-headers of the Fetch standard. */
const REPLACED_HEADERS = ['connection', 'content-length', 'host'];

/** Statuses of redirects (Fetch standard, "redirect status"). */
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
/** Statuses of answers without a body (Fetch standard, "null body status"). */
const WITHOUT_BODY: readonly number[] = [204, 205, 304];

/** Ports to which no request is sent (Fetch standard, "port blocking"). */
const BAD_PORTS = new Set([
  1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104,
  109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515,
  526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049,
  3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
]);

/** Time limit of DNS query, connection and TLS handshake, in milliseconds, as in Node's fetch. */
const CONNECT_MS = 10_000;

/**
 * Sends a request over http or https, as `fetch` does. It asks for `identity`, and refuses an answer with any
 * other `Content-Encoding` before its body is read. It fails like Node's fetch: with a TypeError whose cause
 * says why, or with the signal's reason. It follows no redirect: `redirect` must be `error` or `manual`. It
 * has no cache and no cookies.
 */
export const platformFetch: typeof globalThis.fetch = async (input, init) => {
  // The constructor checks method, headers, body and URL as fetch does.
  const request = new Request(input, init);
  if (request.redirect === 'follow') throw new TypeError("redirect must be 'error' or 'manual'");
  const url = new URL(request.url);
  const body = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer());
  request.signal.throwIfAborted();
  try {
    return await exchange(createRequest(url, request, body?.length), body, request);
  } catch (cause) {
    if (request.signal.aborted) throw request.signal.reason;
    throw new TypeError('fetch failed', { cause });
  }
};

/** Creates a request, which sends nothing until `end` is called. @param length of the body, in bytes */
function createRequest(
  url: URL,
  { method, headers }: Request,
  length: number | undefined,
): http.ClientRequest {
  if (!/^https?:$/.test(url.protocol)) throw new Error('unknown scheme');
  if (BAD_PORTS.has(Number(url.port))) throw new Error('bad port');
  const refusedHeader = REFUSED_HEADERS.find((name) => headers.has(name));
  if (refusedHeader !== undefined) throw new Error(`invalid ${refusedHeader} header`);
  const fields = { ...DEFAULT_HEADERS, ...Object.fromEntries(headers), 'accept-encoding': 'identity' };
  for (const name of REPLACED_HEADERS) Reflect.deleteProperty(fields, name);
  // Without a length, Node sends the body of a DELETE as if it were the next request.
  const framing = length === undefined ? {} : { 'content-length': length };
  const request = url.protocol === 'https:' ? https.request : http.request;
  // The global agents keep connections open, and use proxies in the same cases as Node's fetch.
  const clientRequest = request(url, { method, headers: { ...fields, ...framing } });
  // Limit only the size of headers, not their number: Node would leave out headers beyond 2000, and one of
  // those could be Content-Encoding.
  clientRequest.maxHeadersCount = 0;
  return clientRequest;
}

function limitConnecting(clientRequest: http.ClientRequest): void {
  clientRequest.once('socket', (socket) => {
    if (!socket.connecting) return;
    const error = Object.assign(new Error('no connection in time'), {
      code: 'ETIMEDOUT',
      syscall: 'connect',
    });
    const timer = setTimeout(() => clientRequest.destroy(error), CONNECT_MS);
    const stop = () => clearTimeout(timer);
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', stop);
    clientRequest.once('close', stop);
  });
}

/**
 * Maximum number of interim answers (RFC 9110, section 15.2). Each costs time, and servers send only one or
 * two.
 */
const MAX_INTERIM = 16;

/** Sends a request with its body. @throws the error of Node; an Error for an answer that is refused */
function exchange(
  clientRequest: http.ClientRequest,
  body: Uint8Array | undefined,
  { redirect, signal }: Request,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const abort = () => clientRequest.destroy(signal.reason);
    signal.addEventListener('abort', abort);
    clientRequest.on('error', (error) => reject(withoutBytes(error)));
    clientRequest.on('close', () => {
      signal.removeEventListener('abort', abort);
      // There is no error if the answer switches to another protocol.
      reject(new Error('closed without an answer'));
    });
    let interim = 0;
    clientRequest.on('information', () => {
      if (++interim <= MAX_INTERIM) return;
      reject(new Error('too many interim answers'));
      clientRequest.destroy();
    });
    clientRequest.on('response', (message) => {
      try {
        checkAnswer(message, redirect);
        resolve(createResponse(clientRequest, message, signal));
      } catch (error) {
        reject(error);
        clientRequest.destroy();
      }
    });
    limitConnecting(clientRequest);
    clientRequest.end(body);
  });
}

/** Checks redirect and encoding of an answer. @throws Error, which `unreachableReason` recognises */
function checkAnswer({ statusCode = 0, headers }: http.IncomingMessage, redirect: RequestRedirect): void {
  if (redirect === 'error' && REDIRECTS.includes(statusCode)) throw new Error('unexpected redirect');
  // By RFC 9110, section 8.4, this is a list in upper or lower case, whose elements may be empty.
  const codings = (headers['content-encoding'] ?? '').split(',').map((coding) => coding.trim().toLowerCase());
  if (!codings.every((coding) => coding === '' || coding === 'identity')) {
    throw Object.assign(new Error('unexpected content encoding'), { code: 'CONTENT_ENCODING' });
  }
}

function createResponse(
  clientRequest: http.ClientRequest,
  message: http.IncomingMessage,
  signal: AbortSignal,
): Response {
  const { statusCode = 0, statusMessage = '', rawHeaders } = message;
  const headers = new Headers();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    headers.append(rawHeaders[index] ?? '', rawHeaders[index + 1] ?? '');
  }
  const isBodiless = WITHOUT_BODY.includes(statusCode);
  // The constructor accepts no status above 599, whereas Node's fetch returns any status that a server sends.
  const status = Math.min(statusCode, 599);
  const response = new Response(isBodiless ? null : createStream(clientRequest, message, signal), {
    status,
    statusText: statusMessage,
    headers,
  });
  if (status !== statusCode) Object.defineProperty(response, 'status', { value: statusCode });
  // The caller does not read a body that the status forbids.
  if (isBodiless) message.on('error', () => {}).resume();
  return response;
}

/** Returns a stream of the answer's body, which reads a piece only when the stream's reader asks for it. */
function createStream(
  clientRequest: http.ClientRequest,
  message: http.IncomingMessage,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  // The stream reports an error to its reader, even if the error arrives before the body is read.
  message.on('error', () => {});
  const chunks: AsyncIterator<Uint8Array> = message[Symbol.asyncIterator]();
  return new ReadableStream(
    {
      async pull(controller) {
        const { value, done } = await chunks.next().catch((cause) => {
          throw signal.aborted ? signal.reason : new TypeError('terminated', { cause: withoutBytes(cause) });
        });
        if (!done) {
          controller.enqueue(value);
          return;
        }
        controller.close();
        // The server may have answered without reading the whole request, and would keep the connection
        // open without limit.
        if (!clientRequest.writableFinished) clientRequest.destroy();
      },
      cancel() {
        message.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}

/**
 * Removes the bytes that the parser could not read and attached to its error: a server may have repeated the
 * request in them.
 */
function withoutBytes(error: unknown): unknown {
  if (error instanceof Error && 'rawPacket' in error) delete error.rawPacket;
  return error;
}
