/**
 * Answers and errors of an upstream's client. They have the form of axios' answers and errors, but
 * printing them shows neither request nor body.
 */
import { isUtf8 } from 'node:buffer';
import { STATUS_CODES } from 'node:http';
import { Readable } from 'node:stream';
import { inspect } from 'node:util';
import type { AxiosError, AxiosResponse, InternalAxiosRequestConfig } from 'axios';
import { parseJsonText } from 'sui-enclave/json_text';
import { loadAxios } from './axios.cjs';
import type { ExchangeAnswer, ExchangeFailed } from './exchange.ts';
import { codeOf } from './thrown.ts';

type Config = InternalAxiosRequestConfig;

/** An error of axios: `code`, `status`, `response` and `config` are as in axios. */
export interface UpstreamError<T = unknown> extends AxiosError<T> {
  /**
   * `unreachable`: no connection, or it ended before the status line; `timeout`: no status line in time;
   * `broken`: the connection ended within the body; `slow body`: the body was not complete in time;
   * `too large`: the body is larger than `maxSize`; `status`: `validateStatus` refuses the status;
   * `malformed`: the body is not JSON, has a property name that `parseJsonText` refuses, is not UTF-8, or is
   * compressed.
   */
  readonly reason: ExchangeFailed['reason'] | 'status' | 'malformed';
}

const errors = new WeakSet<object>();

/** Returns whether the error says that an upstream gave no answer that the request accepts. */
export function isUpstreamError(thrown: unknown): thrown is UpstreamError {
  return errors.has(thrown as object);
}

/** Creates an UpstreamError. @param details `cause` is Node's error. Its message may contain addresses */
export function upstreamError(
  reason: UpstreamError['reason'],
  config: Config,
  details: { readonly response?: AxiosResponse; readonly status?: number; readonly cause?: unknown } = {},
): UpstreamError {
  const { response, cause, status = response?.status } = details;
  const { AxiosError } = loadAxios();
  const { ECONNABORTED, ERR_BAD_REQUEST, ERR_BAD_RESPONSE, ERR_NETWORK } = AxiosError;
  const isRefused = reason === 'status' && Number(status) >= 400 && Number(status) < 500;
  const failureCode = status || reason === 'too large' ? ERR_BAD_RESPONSE : (codeOf(cause) ?? ERR_NETWORK);
  const isLate = reason === 'timeout' || reason === 'slow body';
  const text = reason === 'status' ? `Request failed with status code ${status}` : undefined;
  const error = new AxiosError(
    text ?? `an upstream gave no usable answer: ${reason}`,
    isRefused ? ERR_BAD_REQUEST : isLate ? ECONNABORTED : failureCode,
  );
  Object.assign(error, { reason }, status !== undefined && { status });
  if (cause !== undefined) Object.defineProperty(error, 'cause', { value: cause });
  const { message, name, code } = error;
  hide(error, { config, response, toJSON: () => ({ message, name, code, status, reason }) });
  errors.add(error);
  return error as UpstreamError;
}

/**
 * Adds properties that code can read and set by name. Nothing else shows them, since no printer calls a
 * getter.
 */
function hide(target: object, properties: object): void {
  for (const [name, value] of Object.entries(properties)) {
    let current: unknown = value;
    const set = (changed: unknown) => {
      current = changed;
    };
    Object.defineProperty(target, name, { get: () => current, set, configurable: true });
  }
}

/**
 * Prototype of a request's options. They are enumerable, so that an application can send them again. Their
 * prototype keeps printers from showing them.
 */
export const HIDDEN = Object.create(null, {
  toJSON: { value: () => ({}) },
  [inspect.custom]: { value: () => ({}) },
  hasOwnProperty: { value: Object.prototype.hasOwnProperty },
});

/** An AxiosResponse that shows only its status when it is printed, serialised or copied. */
export class UpstreamResponse implements AxiosResponse {
  readonly status: number;
  readonly statusText: string;
  #data: unknown;
  #headers: AxiosResponse['headers'];
  #config: Config;

  constructor({ status, headers }: ExchangeAnswer, data: unknown, config: Config) {
    this.status = status;
    this.statusText = STATUS_CODES[status] ?? '';
    this.#data = data;
    this.#headers = headers as AxiosResponse['headers'];
    this.#config = config;
  }

  get data(): unknown {
    return this.#data;
  }

  /** Replaces the data by what `transformResponse` returned; called by axios. */
  set data(data) {
    this.#data = data;
  }

  get headers(): AxiosResponse['headers'] {
    return this.#headers;
  }

  set headers(headers) {
    this.#headers = headers;
  }

  get config(): Config {
    return this.#config;
  }
}

/**
 * Reads the body of an answer.
 *
 * @param isParsed whether to return JSON parsed. If it is false, JSON is returned as text
 * @returns the data, and whether they have the form that the request expects. Otherwise, the data are the
 *   body's text, or undefined
 */
export function parseData(
  { status, headers, body }: ExchangeAnswer,
  method: string,
  { responseType, parseReviver }: Config,
  isParsed: boolean,
): { readonly data: unknown; readonly isUsable: boolean } {
  if (responseType === 'arraybuffer') return { data: body, isUsable: true };
  if (responseType === 'stream') return { data: Readable.from(body), isUsable: true };
  const { 'content-encoding': encoding = 'identity' } = headers;
  const text = encoding === 'identity' && isUtf8(body) ? body.toString() : undefined;
  if (responseType === 'text' || text === undefined) return { data: text, isUsable: text !== undefined };
  // By RFC 9110, sections 9.3.2 and 15, these answers have no body.
  const isEmpty = method === 'HEAD' || status === 204 || status === 205 || status === 304;
  if (text === '') return { data: undefined, isUsable: isEmpty };
  try {
    const data: unknown = parseJsonText(text, parseReviver);
    return { data: isParsed ? data : text, isUsable: true };
  } catch {
    return { data: text, isUsable: false };
  }
}

/** Returns the parsed body; undefined if it is not JSON in UTF-8. */
export function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) return undefined;
  try {
    return parseJsonText(body.toString());
  } catch {
    return undefined;
  }
}
