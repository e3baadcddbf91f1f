/** The only way to send requests to a host of app.yaml, for applications and for probes of their endpoints. */
import { isUtf8 } from 'node:buffer';
import { STATUS_CODES } from 'node:http';
import type {
  AxiosAdapter,
  AxiosHeaders,
  AxiosInstance,
  AxiosResponse,
  InternalAxiosRequestConfig,
} from 'axios';
import { ApplicationMistake, ConfigError } from 'sui-enclave/errors';
import { isTimeout, TIMEOUT_RANGE } from 'sui-enclave/fetch';
import { loadAxios } from './axios.cjs';
import { createExchange, type Exchange, type ExchangeAnswer, ExchangeFailed } from './exchange.ts';
import { readRequest, requireOptions, type UpstreamRequest } from './upstream_request.ts';

export { ExchangeFailed };

/** The hosts that a server may ask; a manifest is one. */
export interface UpstreamHosts {
  /** Host names, asked by https on port 443. */
  readonly endpoints: readonly string[];
  /** By pinned host: PEM of the only authorities that are trusted for it. */
  readonly authorities?: Readonly<Record<string, string>>;
}

export interface UpstreamBounds {
  /**
   * For the whole exchange in milliseconds, from the DNS query to the last byte of the answer. A request's `timeout`
   * may lower it. Default: 5000.
   */
  readonly timeoutMs?: number;
  /** Maximum size of an answer's body, in bytes. Default: 65536. */
  readonly maxSize?: number;
  /** Called before each request that is sent, and throws if it must not be: see budget.ts. Default: no limit. */
  readonly budget?: () => void;
}

/**
 * A client for one host: an instance of axios that sends nothing but what upstream_request.ts allows, by exchange.ts.
 * It throws ExchangeFailed if there is no answer that the request accepts; ConfigError for an option or a method that
 * it lacks; ApplicationMistake for a value that is not allowed; what its budget throws; the reason of its signal.
 */
export type Upstreams = (host: string, bounds?: UpstreamBounds) => AxiosInstance;

/**
 * @param origins for development and tests: the origin to use in place of `https://<host>`
 * @param hosts how many hosts the server asks in all. Default: the endpoints
 * @param onExchange told of each request that was sent, where it was sent, once it is over
 * @returns makes clients; throws ApplicationMistake for a host that is not in app.yaml
 */
export function createUpstreams(
  { endpoints, authorities = {} }: UpstreamHosts,
  origins: Readonly<Record<string, string>> = {},
  hosts = endpoints.length,
  onExchange?: (isAnswered: boolean) => void,
): Upstreams {
  const upstreams = new Map(
    endpoints.map((host) => [
      host,
      createUpstream(origins[host] ?? `https://${host}`, authorities[host], hosts, onExchange),
    ]),
  );
  return (host, bounds) => {
    const upstream = upstreams.get(host);
    if (!upstream) throw new ApplicationMistake(`${host} is not among the endpoints of app.yaml`);
    return upstream(bounds);
  };
}

/**
 * @param authority PEM of the authorities to trust for this host. Default: the public authorities
 * @param hosts how many hosts the server asks in all: they share its open files
 * @returns makes clients that share their connections
 */
export function createUpstream(
  origin: string,
  authority?: string,
  hosts = 1,
  onExchange?: (isAnswered: boolean) => void,
): (bounds?: UpstreamBounds) => AxiosInstance {
  const asked = createExchange(origin, authority, hosts);
  const exchange = onExchange ? observed(asked, onExchange) : asked;
  return (bounds) => createClient(exchange, bounds);
}

function observed(exchange: Exchange, onExchange: (isAnswered: boolean) => void): Exchange {
  return async (request) => {
    try {
      const answer = await exchange(request);
      onExchange(true);
      return answer;
    } catch (error) {
      onExchange(false);
      throw error;
    }
  };
}

/** Loads axios when the client is first used. */
function createClient(exchange: Exchange, bounds: UpstreamBounds = {}): AxiosInstance {
  const limits = requireBounds(bounds);
  let made: ReturnType<typeof createAxios> | undefined;
  const client = () => {
    made ??= createAxios(exchange, limits);
    return made;
  };
  const request = (...given: [unknown, unknown?]) => client().request(...given);
  const withoutData = (method: string) => (url: unknown, config?: object) =>
    request({ ...config, method, url });
  const withData = (method: string) => (url: unknown, data?: unknown, config?: object) =>
    request({ ...config, method, url, data });
  const instance = Object.assign((...given: [unknown, unknown?]) => request(...given), {
    request,
    get: withoutData('get'),
    delete: withoutData('delete'),
    head: withoutData('head'),
    options: withoutData('options'),
    post: withData('post'),
    put: withData('put'),
    patch: withData('patch'),
    query: withData('query'),
    // A client of another host, with other bounds, is made by upstream(); there are no multipart bodies.
    create: lacking('create'),
    getUri: lacking('getUri'),
    postForm: lacking('postForm'),
    putForm: lacking('putForm'),
    patchForm: lacking('patchForm'),
  });
  addGetter(instance, 'defaults', () => client().defaults);
  addGetter(instance, 'interceptors', () => client().interceptors);
  return instance;
}

function lacking(name: string) {
  return (): never => {
    throw new ConfigError(`a client of upstream() has no ${name}()`);
  };
}

/** It is not enumerable: defaults may contain a key. */
function addGetter<Target extends object, Name extends string, Value>(
  target: Target,
  name: Name,
  get: () => Value,
): asserts target is Target & Record<Name, Value> {
  Object.defineProperty(target, name, { get });
}

/** Every exchange must be bounded in time and size. */
function requireBounds({ timeoutMs = 5000, maxSize = 65_536, budget = () => {} }: UpstreamBounds) {
  if (!isTimeout(timeoutMs)) throw new ConfigError(`timeoutMs of an upstream must be ${TIMEOUT_RANGE}`);
  if (!Number.isSafeInteger(maxSize) || maxSize < 0) {
    throw new ConfigError('maxSize of an upstream must be an integer number of bytes');
  }
  return { timeoutMs, maxSize, budget };
}

/** What axios calls if a request has not passed `readRequest`, which puts an adapter of its own in place of this one. */
const refuse: AxiosAdapter = async () => {
  throw new ApplicationMistake('a request to an upstream has skipped its checks');
};

const OWN_OPTIONS = { adapter: refuse, allowAbsoluteUrls: true };

/** axios itself, whose only interceptor is ours, and the interceptors of the application. */
function createAxios(exchange: Exchange, limits: Required<UpstreamBounds>) {
  const { Axios, AxiosHeaders } = loadAxios();
  const axios = new Axios();
  const defaults: AxiosInstance['defaults'] = {
    adapter: refuse,
    headers: {
      common: new AxiosHeaders(),
      delete: new AxiosHeaders(),
      get: new AxiosHeaders(),
      head: new AxiosHeaders(),
      post: new AxiosHeaders(),
      put: new AxiosHeaders(),
      patch: new AxiosHeaders(),
    },
  };
  axios.defaults = defaults;
  const { interceptors } = new Axios();
  const none = Object.freeze(new AxiosHeaders());

  // It calls those of the application: however they are ordered or removed, and wherever they fail, it is the last.
  axios.interceptors.request.use(async (config) => {
    const changed = await callRequestHandlers(interceptors.request, config);
    const checked = readRequest(changed, OWN_OPTIONS, limits.timeoutMs);
    // The answer is in the data of a substitute, since axios would copy and change all its headers.
    const adapter = async () => ({ headers: none, data: await answerTo(checked, exchange, limits) });
    // A new object, which interceptors have never seen, and which contains nothing of the request.
    return Object.assign(Object.create(null), { adapter });
  });

  const toAnswer = ({ data: { status, data, headers } }: AxiosResponse<UpstreamAnswer>) =>
    new Answer(status, data, () => {
      const read = new AxiosHeaders();
      for (const [name, value] of Object.entries(headers)) read.set(name, value);
      return read;
    });

  const request = async (...given: [unknown, unknown?]) => {
    requireOptions(defaults, OWN_OPTIONS);
    for (const options of given) if (typeof options !== 'string') requireOptions(options ?? {}, OWN_OPTIONS);
    const handlers = handlersOf(interceptors.response);
    return await callInTurn(handlers, Reflect.apply(axios.request, axios, given).then(toAnswer));
  };
  return { defaults, interceptors: Object.freeze(interceptors), request };
}

interface Handler {
  // biome-ignore lint/suspicious/noExplicitAny: as axios declares them
  readonly fulfilled?: ((value: any) => any) | null;
  // biome-ignore lint/suspicious/noExplicitAny: as axios declares them
  readonly rejected?: ((error: any) => any) | null;
  readonly runWhen?: ((config: InternalAxiosRequestConfig) => boolean) | null;
}

/** `handlers` has holes. */
function handlersOf(manager: { readonly handlers?: readonly (Handler | null)[] }): Handler[] {
  return (manager.handlers ?? []).filter((handler) => handler !== null);
}

/** As in axios: the one that was added last is the first. */
function callRequestHandlers(
  manager: Parameters<typeof handlersOf>[0],
  config: InternalAxiosRequestConfig,
): Promise<unknown> {
  const handlers = handlersOf(manager).filter(({ runWhen }) => runWhen?.(config) !== false);
  return callInTurn(handlers.toReversed(), Promise.resolve(config));
}

// biome-ignore lint/suspicious/noExplicitAny: as axios declares what interceptors return
function callInTurn(handlers: readonly Handler[], given: Promise<unknown>): Promise<any> {
  return handlers.reduce((before, { fulfilled, rejected }) => before.then(fulfilled, rejected), given);
}

interface UpstreamAnswer extends Omit<ExchangeAnswer, 'body'> {
  readonly data: unknown;
}

async function answerTo(
  request: UpstreamRequest,
  exchange: Exchange,
  { maxSize, budget }: Required<UpstreamBounds>,
): Promise<UpstreamAnswer> {
  const { method, signal, responseType, validateStatus } = request;
  signal?.throwIfAborted();
  budget();
  const { status, headers, body } = await exchange({ ...request, maxSize });
  const data = read(body, responseType);
  if (validateStatus && !validateStatus(status)) throw new ExchangeFailed('status', { status, data });
  // RFC 9110, sections 9.3.2 and 15: no body.
  const isEmpty = method === 'HEAD' || status === 204 || status === 205 || status === 304;
  if (data === undefined && !isEmpty) throw new ExchangeFailed('malformed', { status });
  return { status, data, headers };
}

/** Undefined if it is not of this type. */
function read(body: Buffer, responseType: UpstreamRequest['responseType']): unknown {
  if (responseType === 'arraybuffer') return body;
  if (responseType === 'json') return parseJson(body);
  return isUtf8(body) ? body.toString() : undefined;
}

/** The parsed body; undefined if it is not JSON in UTF-8. */
export function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) return undefined;
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

const NO_CONFIG = Object.freeze({});

/** Prints, serialises and copies only status and data: a header, such as Location, may repeat a key. */
class Answer {
  readonly status: number;
  readonly statusText: string;
  data: unknown;
  #headers: AxiosHeaders | (() => AxiosHeaders);

  constructor(status: number, data: unknown, headers: () => AxiosHeaders) {
    this.status = status;
    this.statusText = STATUS_CODES[status] ?? '';
    this.data = data;
    this.#headers = headers;
  }

  get headers(): AxiosHeaders {
    if (typeof this.#headers === 'function') this.#headers = this.#headers();
    return this.#headers;
  }

  /** Nothing of the request. */
  get config(): object {
    return NO_CONFIG;
  }
}
