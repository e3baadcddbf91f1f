/**
 * Builds a request from axios' options, after axios has merged and transformed them. Throws an error that
 * says why a request is not sent.
 */
import * as http from 'node:http';
import { types } from 'node:util';
import type { AxiosBasicCredentials, AxiosRequestConfig, InternalAxiosRequestConfig } from 'axios';
import { ApplicationMistake, ConfigError } from 'sui-enclave/errors';
import { quantity } from 'sui-enclave/wording';
import { append } from './append.ts';
import { untilAborted } from './waiting.ts';

/** Options that would change where or how a request is sent, by the reason for their refusal. */
const REFUSED = {
  'upstream() always uses its own adapter': ['adapter', 'env', 'fetchOptions', 'transport', 'beforeRedirect'],
  'it has connections of its own, without a proxy': [
    ...([
      'proxy',
      'httpAgent',
      'httpsAgent',
      'socketPath',
      'allowedSocketPaths',
      'lookup',
      'family',
    ] as const),
    ...(['httpVersion', 'http2Options', 'insecureHTTPParser', 'maxRate'] as const),
  ],
  'it does not follow redirects': ['maxRedirects'],
  'it does not decode answers, which are UTF-8': ['decompress', 'responseEncoding'],
  'it sends and receives bodies whole': ['onUploadProgress', 'onDownloadProgress'],
  'maxSize of upstream() limits its answers': ['maxContentLength'],
} as const satisfies Readonly<Record<string, readonly (keyof AxiosRequestConfig)[]>>;

export type RefusedOption = (typeof REFUSED)[keyof typeof REFUSED][number];

const REASONS: ReadonlyMap<string, string> = new Map(
  Object.entries(REFUSED).flatMap(([reason, names]) => names.map((name) => [name, reason] as const)),
);

/** Values of refused options that change nothing. */
const HARMLESS: ReadonlySet<unknown> = new Set([undefined, null, false, 0, -1]);

/**
 * Matches headers that name the host, control the connection or delimit the body. It also matches the header
 * that asks for a compressed answer, which nothing here would decompress.
 */
const FORBIDDEN_HEADER =
  /^(host|connection|keep-alive|transfer-encoding|te|trailer|content-length|upgrade|http2-settings|expect|accept-encoding|proxy-.*)$/i;

/** Checks that no option is refused. @param adapter the only allowed adapter @throws ConfigError */
export function requireOptions(options: object, adapter: unknown): void {
  for (const name of Object.keys(options)) {
    const reason = REASONS.get(name);
    if (reason === undefined) continue;
    const value = options[name as keyof typeof options] as unknown;
    if (name === 'adapter' ? value === adapter : HARMLESS.has(value)) continue;
    throw new ConfigError(`an upstream request can not have the option ${name}: ${reason}`);
  }
}

/** Checks the headers of options before axios reads them, since axios silently drops control characters. */
export function requireHeaders(options: unknown): void {
  requireThat(isObject(options), 'the options of an upstream request must be an object');
  const headers = Object.hasOwn(options, 'headers') ? (options as { headers: unknown }).headers : undefined;
  if (headers === undefined || headers === null) return;
  requireThat(isObject(headers), 'headers of an upstream request must be an object');
  for (const [name, value] of Object.entries(headers)) {
    // An object contains defaults for a method, or for all methods in `common`.
    if (!isObject(value)) requireHeader(name, value);
    else for (const [defaultName, text] of Object.entries(value)) requireHeader(defaultName, text);
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function requireHeader(name: string, value: unknown): void {
  if (FORBIDDEN_HEADER.test(name)) {
    throw new ApplicationMistake(`an upstream request sets ${name.toLowerCase()} itself: omit this header`);
  }
  for (const text of Array.isArray(value) ? value : [value]) {
    try {
      if (/^(object|function|symbol)$/.test(typeof (text ?? ''))) throw new TypeError('not a text');
      http.validateHeaderName(name);
      http.validateHeaderValue(name, String(text));
    } catch {
      throw new ApplicationMistake(
        'a header of an upstream request has a name or value that is invalid in HTTP',
      );
    }
  }
}

/**
 * Builds the headers to send, with lower-case names.
 *
 * @param headers axios' headers, without removed headers. A header with several values is one text
 */
export function buildHeaders(
  headers: Readonly<Record<string, unknown>>,
  auth: AxiosBasicCredentials | undefined,
): Record<string, string> {
  // The object has no prototype, since a header may be named __proto__.
  const requestHeaders: Record<string, string> = Object.assign(Object.create(null), {
    accept: '*/*',
    'accept-encoding': 'identity',
    'user-agent': 'sui-enclave',
  });
  for (const [name, value] of Object.entries(headers)) {
    requireHeader(name, value);
    requestHeaders[name.toLowerCase()] = String(value);
  }
  if (isObject(auth)) {
    const { username = '', password = '' } = Object.assign(Object.create(null), auth);
    requestHeaders['authorization'] = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  }
  return requestHeaders;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'];
const RESPONSE_TYPES = [undefined, null, 'json', 'text', 'arraybuffer', 'stream'];

/**
 * Checks the method, and the options whose values can be checked on their own. Returns the method in upper
 * case.
 */
export function checkMethod(config: InternalAxiosRequestConfig): string {
  const method = String(config.method).toUpperCase();
  const { data = null, signal, cancelToken, responseType, validateStatus } = config;
  const isBodyless = method === 'GET' || method === 'HEAD';
  requireThat(
    METHODS.includes(method),
    `the method of an upstream request must be one of ${METHODS.join(', ')}`,
  );
  requireThat(
    !isBodyless || data === null,
    'data of an upstream request must be left out with GET and HEAD, whose bodies have no meaning (RFC 9110, section 9.3.1): send it as params, or with POST',
  );
  requireThat(
    !signal || signal instanceof AbortSignal,
    'the signal of an upstream request must be an AbortSignal',
  );
  requireThat(
    !cancelToken || typeof cancelToken.toAbortSignal === 'function',
    'cancelToken must be a CancelToken of axios',
  );
  requireThat(
    RESPONSE_TYPES.includes(responseType),
    'responseType of an upstream request must be json, text, arraybuffer or stream',
  );
  requireThat(
    !validateStatus || typeof validateStatus === 'function',
    'validateStatus must be a function, or null',
  );
  return method;
}

/** Requires a condition of an upstream request. @throws ApplicationMistake */
export function requireThat(isValid: boolean, rule: string): asserts isValid {
  if (!isValid) throw new ApplicationMistake(rule);
}

/** Characters that the URL parser would drop or change. */
const UNFIT = /[\\#\s\p{Cc}\p{Cs}]/u;

/**
 * Returns the path and query of a request's whole URL. Rejects a path that the URL parser would change, since
 * the request would then differ from the application's code.
 *
 * @param url the URL in the request's options, before axios has dropped its fragment
 * @param uri the whole URL, made by axios
 */
export function resolvePath(url: unknown, uri: string, origin: string): string {
  const target = UNFIT.test(`${url}${uri}`) ? null : URL.parse(uri, origin);
  const path = uri.replace(/^https?:\/\/[^/?]*/i, '').split('?', 1)[0] || '/';
  if (target && (target.origin !== origin || target.username !== '' || target.password !== '')) {
    throw new ApplicationMistake(
      'the URL of an upstream request must have the host of upstream(), https, port 443 and no user name',
    );
  }
  if (target?.pathname !== path) {
    throw new ApplicationMistake(
      'the url of an upstream request must be percent-encoded, without dot segments, backslashes, white space or a fragment',
    );
  }
  return target.pathname + target.search;
}

/** Maximum size of a form or a stream, in bytes, unless `maxBodyLength` is set. */
const MAX_READ_BODY = 1024 * 1024;

/**
 * Reads the body of a request.
 *
 * @param data the body after the last transformation: text, bytes, a form or a stream. Forms and streams are
 *   read whole, since a body is sent with its length
 * @param headers the headers, to which the type of a form is added
 * @param createSignal called for a form or a stream. Its signal ends the reading
 * @returns a copy, whose length the application can't change later; undefined if there is no body
 * @throws ApplicationMistake for other data, or for a body that is too large; the reason of the signal
 */
export async function readBody(
  data: unknown,
  headers: Record<string, string>,
  maxBodyLength: number | undefined,
  createSignal: () => AbortSignal,
): Promise<Uint8Array | undefined> {
  if (data === undefined || data === null) return undefined;
  const isLimited = maxBodyLength !== undefined && maxBodyLength >= 0 && maxBodyLength < Infinity;
  const bytes = copyBody(data);
  if (bytes) return requireLength(bytes, isLimited ? maxBodyLength : bytes.byteLength);
  const max = isLimited ? maxBodyLength : MAX_READ_BODY;
  return await untilAborted(readForm(data, headers, max) ?? readAll(data, max), createSignal());
}

/** Copies text, bytes or URLSearchParams. Returns undefined for other data, and for malformed text. */
export function copyBody(data: unknown): Buffer | undefined {
  // UTF-8 can't represent a lone surrogate.
  if (typeof data === 'string') return data.isWellFormed() ? Buffer.from(data) : undefined;
  if (data instanceof URLSearchParams) return Buffer.from(URLSearchParams.prototype.toString.call(data));
  if (types.isAnyArrayBuffer(data)) return Buffer.copyBytesFrom(new Uint8Array(data));
  // Proxies, and objects that only inherit from Uint8Array, have no bytes.
  if (!ArrayBuffer.isView(data)) return undefined;
  const { buffer, byteOffset, byteLength } = data;
  return Buffer.copyBytesFrom(
    types.isTypedArray(data) ? data : new Uint8Array(buffer, byteOffset, byteLength),
  );
}

/**
 * Reads a form or a Blob; returns undefined for anything else. The size is checked first, since Node
 * serialises a form whole. If its stream were cancelled instead, Node would reject a promise that this code
 * can't catch.
 */
function readForm(data: unknown, headers: Record<string, string>, max: number): Promise<Buffer> | undefined {
  if (!(data instanceof FormData || data instanceof Blob)) return undefined;
  const values = data instanceof Blob ? [data] : [...data].flat();
  const size = values.reduce(
    (sum, value) => sum + (typeof value === 'string' ? value.length : value.size),
    0,
  );
  requireLength({ byteLength: size }, max);
  const form = new Response(data);
  const type = form.headers.get('content-type');
  if (type && (data instanceof FormData || headers['content-type'] === undefined))
    headers['content-type'] = type;
  return form.arrayBuffer().then((bytes) => requireLength(Buffer.from(bytes), max));
}

async function readAll(source: unknown, max: number): Promise<Buffer> {
  requireThat(
    isObject(source) && Symbol.asyncIterator in source,
    'data of an upstream request must be, after transformRequest, well-formed text, bytes, URLSearchParams, a form or a stream',
  );
  let buffer: Buffer = Buffer.alloc(0);
  let size = 0;
  for await (const chunk of source as unknown as AsyncIterable<unknown>) {
    const piece = copyBody(chunk);
    requireThat(piece !== undefined, 'a stream of an upstream request must consist of bytes or text');
    requireLength({ byteLength: size + piece.byteLength }, max);
    buffer = append(buffer, size, piece, max);
    size += piece.byteLength;
  }
  return buffer.subarray(0, size);
}

function requireLength<Bytes extends { readonly byteLength: number }>(bytes: Bytes, max: number): Bytes {
  requireThat(
    bytes.byteLength <= max,
    `data of an upstream request is larger than its maxBodyLength of ${quantity(max, 'byte')}`,
  );
  return bytes;
}
