/** Checks what a request to an upstream says: no option of axios is obeyed that is not listed here. */
import * as http from 'node:http';
import { ApplicationMistake, ConfigError } from 'sui-enclave/errors';
import { isTimeout } from 'sui-enclave/fetch';
import type { ExchangeRequest } from './exchange.ts';

export interface UpstreamRequest extends Omit<ExchangeRequest, 'maxSize'> {
  readonly responseType: 'json' | 'text' | 'arraybuffer';
  /** Whether the application takes an answer with this status. Null: any. */
  readonly validateStatus: ((status: number) => boolean) | null;
}

const OPTIONS: ReadonlySet<unknown> = new Set([
  'url',
  'method',
  'params',
  'headers',
  'data',
  'timeout',
  'signal',
  'validateStatus',
  'responseType',
]);
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
const RESPONSE_TYPES = ['json', 'text', 'arraybuffer'] as const;

/** They say which host is asked, how the connection is used or where the body ends, or ask for what is not decoded. */
const FORBIDDEN_HEADER =
  /^(host|connection|keep-alive|transfer-encoding|te|trailer|content-length|upgrade|http2-settings|expect|accept-encoding|proxy-.*)$/;

/** What axios itself adds to each request, by name: with any other value, it is an option like others. */
export type OwnOptions = Readonly<Record<string, unknown>>;

/**
 * Checks what an application gave, before axios reads it: axios would drop control characters from headers silently,
 * and obey other options in part.
 *
 * @param given the defaults of a client, or the options of a request
 * @throws ConfigError for an option that there is not, ApplicationMistake for a value
 */
export function requireOptions(given: unknown, own: OwnOptions): void {
  requireNames(given, own);
  for (const [name, value] of entriesOf(ownOf(given, 'headers'))) {
    // Defaults for a method, or for all: `common`.
    if (isObject(value)) for (const [inner, text] of Object.entries(value)) requireHeader(inner, text);
    else requireHeader(name, value);
  }
}

/**
 * The request that axios' merged options describe, after all interceptors. It shares nothing with them that code
 * could change later.
 *
 * @param timeoutMs the limit that a request may lower
 * @throws ConfigError for an option that there is not, ApplicationMistake for a value
 */
export function readRequest(given: unknown, own: OwnOptions, timeoutMs: number): UpstreamRequest {
  requireNames(given, own);
  const headers = headersOf(ownOf(given, 'headers'));
  const method = methodOf(ownOf(given, 'method'));
  return {
    method,
    path: pathOf(ownOf(given, 'url'), ownOf(given, 'params')),
    body: bodyOf(ownOf(given, 'data'), method, headers),
    headers,
    timeoutMs: timeoutOf(ownOf(given, 'timeout'), timeoutMs),
    signal: signalOf(ownOf(given, 'signal')),
    validateStatus: validateStatusOf(ownOf(given, 'validateStatus')),
    responseType: responseTypeOf(ownOf(given, 'responseType')),
  };
}

/** Never what `Object.prototype` has. */
function ownOf(given: object, name: string): unknown {
  return Object.hasOwn(given, name) ? given[name as keyof typeof given] : undefined;
}

function requireNames(given: unknown, own: OwnOptions): asserts given is object {
  if (!isObject(given)) throw new ApplicationMistake('the options of an upstream request must be an object');
  for (const name of Object.keys(given)) {
    if (OPTIONS.has(name)) continue;
    const value = ownOf(given, name);
    if (value === undefined || (Object.hasOwn(own, name) && own[name] === value)) continue;
    throw new ConfigError(
      `an upstream request has no option ${/^\w{1,40}$/.test(name) ? name : 'of that name'}, and no adapter but its own: it takes ${[...OPTIONS].join(', ')}`,
    );
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function methodOf(given: unknown): UpstreamRequest['method'] {
  const upper = typeof given === 'string' ? given.toUpperCase() : undefined;
  const method = METHODS.find((known) => known === upper);
  if (!method) throw new ApplicationMistake(`the method of an upstream request must be ${list(METHODS)}`);
  return method;
}

/** Rejects a path that the URL parser would change, since the request would differ from what the code says. */
function pathOf(given: unknown, params: unknown): string {
  const isText = typeof given === 'string' && given.isWellFormed();
  const url = isText && PATH.test(given) ? URL.parse(`https://host.invalid${given}`) : null;
  if (url === null || url.pathname !== (given as string).split('?', 1)[0]) {
    throw new ApplicationMistake(
      'the url of an upstream request must be a path that starts with one /, is percent-encoded and has neither dot segments, a backslash, white space nor a fragment',
    );
  }
  const more = queryOf(params);
  return url.pathname + url.search + (more === '' ? '' : (url.search === '' ? '?' : '&') + more);
}

const PATH = /^\/(?!\/)[^\\#\s\p{Cc}]*$/u;

const TEXT_TYPES: ReadonlySet<string> = new Set(['string', 'number', 'boolean', 'bigint']);

/** Percent-encoded. Lists and objects have no common form in a query, so they are rejected. */
function queryOf(params: unknown): string {
  if (params === undefined || params === null) return '';
  // An object may have a method toString of its own.
  if (params instanceof URLSearchParams) return URLSearchParams.prototype.toString.call(params);
  if (!isObject(params)) throw invalidParams();
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined || value === null) continue;
    const text = TEXT_TYPES.has(typeof value) ? String(value) : undefined;
    if (!text?.isWellFormed() || !name.isWellFormed()) throw invalidParams();
    query.append(name, text);
  }
  return query.toString();
}

function invalidParams(): ApplicationMistake {
  return new ApplicationMistake(
    'params of an upstream request must be an object of strings, numbers and booleans, or URLSearchParams',
  );
}

/** In lower case, without those that were removed. */
function headersOf(given: unknown): Record<string, string> {
  const headers = [
    ['accept', '*/*'],
    ['accept-encoding', 'identity'],
    ['user-agent', 'sui-enclave'],
  ];
  for (const [name, value] of entriesOf(given)) {
    const text = requireHeader(name, value);
    if (text !== undefined) headers.push([name.toLowerCase(), text]);
  }
  return Object.fromEntries(headers);
}

/** @param headers an object; axios would parse a text */
function entriesOf(headers: unknown): [string, unknown][] {
  if (headers === undefined || headers === null) return [];
  if (!isObject(headers)) throw new ApplicationMistake('headers of an upstream request must be an object');
  return Object.entries(headers);
}

/** @returns undefined for a value with which axios removes a header */
function requireHeader(name: string, value: unknown): string | undefined {
  if (FORBIDDEN_HEADER.test(name.toLowerCase())) {
    throw new ApplicationMistake(
      `an upstream request sets ${name.toLowerCase()} itself: leave this header out`,
    );
  }
  if (value === undefined || value === null || value === false) return undefined;
  try {
    if (!TEXT_TYPES.has(typeof value)) throw new TypeError('not a text');
    const text = String(value);
    http.validateHeaderName(name);
    http.validateHeaderValue(name, text);
    return text;
  } catch {
    throw new ApplicationMistake(
      'a header of an upstream request has a name or value that is invalid in HTTP, or more than one value',
    );
  }
}

/**
 * @param headers gets the type of the body, where the body says it
 * @returns a copy: neither the bytes' owner nor properties of their object can change their length later
 */
function bodyOf(
  data: unknown,
  method: UpstreamRequest['method'],
  headers: Record<string, string>,
): Uint8Array | undefined {
  if (data === undefined || data === null) return undefined;
  if (method === 'GET' || method === 'HEAD') {
    throw new ApplicationMistake(
      'data of an upstream request must be left out with GET and HEAD, whose bodies have no meaning (RFC 9110, section 9.3.1): send it as params, or with POST',
    );
  }
  if (data instanceof URLSearchParams) {
    headers['content-type'] ??= 'application/x-www-form-urlencoded';
    return Buffer.from(URLSearchParams.prototype.toString.call(data));
  }
  const raw = rawBodyOf(data);
  const isRaw = raw !== undefined;
  const body = raw ?? jsonOf(data);
  if (!isRaw) headers['content-type'] ??= 'application/json';
  const type = headers['content-type'];
  if (body === undefined || type === undefined || (!isRaw && !JSON_TYPE.test(type))) {
    throw new ApplicationMistake(
      'data of an upstream request must be a string or Uint8Array, with a content-type among the headers; or a plain object or list, as JSON; or URLSearchParams. A string must not have a lone surrogate',
    );
  }
  return body;
}

/** Undefined for what is not text or bytes. UTF-8 can't represent a lone surrogate. */
function rawBodyOf(data: unknown): Uint8Array | undefined {
  if (typeof data === 'string') return data.isWellFormed() ? Buffer.from(data) : undefined;
  // Proxies, and objects that only inherit from Uint8Array, have no bytes.
  return ArrayBuffer.isView(data) && data instanceof Uint8Array ? new Uint8Array(data) : undefined;
}

const JSON_TYPE = /^application\/([\w.-]+\+)?json\s*(;|$)/i;

/** Undefined for what JSON can't hold, such as an instance of a class, or a bigint. */
function jsonOf(data: unknown): Uint8Array | undefined {
  const prototype: unknown = typeof data === 'object' ? Object.getPrototypeOf(data) : undefined;
  const isPlain = prototype === Object.prototype || prototype === null || Array.isArray(data);
  try {
    // A `toJSON` of its own may return nothing.
    const json: string | undefined = isPlain ? JSON.stringify(data) : undefined;
    return json === undefined ? undefined : Buffer.from(json);
  } catch {
    return undefined;
  }
}

function timeoutOf(given: unknown, limit: number): number {
  if (given === undefined) return limit;
  if (!isTimeout(given) || given > limit) {
    throw new ApplicationMistake(
      `the timeout of an upstream request must be a number of milliseconds up to ${limit}: it may only lower the limit of upstream()`,
    );
  }
  return given;
}

function signalOf(given: unknown): AbortSignal | undefined {
  if (given === undefined || given instanceof AbortSignal) return given;
  throw new ApplicationMistake('the signal of an upstream request must be an AbortSignal');
}

function validateStatusOf(given: unknown): UpstreamRequest['validateStatus'] {
  if (given === undefined) return isSuccess;
  if (given === null || typeof given === 'function') return given as UpstreamRequest['validateStatus'];
  throw new ApplicationMistake('validateStatus of an upstream request must be a function, or null');
}

/** As in axios. */
const isSuccess = (status: number) => status >= 200 && status < 300;

function responseTypeOf(given: unknown = 'json'): UpstreamRequest['responseType'] {
  const type = RESPONSE_TYPES.find((type) => type === given);
  if (!type)
    throw new ApplicationMistake(`responseType of an upstream request must be ${list(RESPONSE_TYPES)}`);
  return type;
}

function list(names: readonly string[]): string {
  return `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}
