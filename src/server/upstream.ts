/** The only way to send requests to a host of app.yaml, for applications and for probes of their endpoints. */
import { isUtf8 } from 'node:buffer';
import { STATUS_CODES } from 'node:http';
import type { Axios, AxiosAdapter, AxiosHeaders, AxiosInstance, InternalAxiosRequestConfig } from 'axios';
import type { Manifest } from '../app.ts';
import { ApplicationMistake, ConfigError } from '../errors.ts';
import { isTimeout, TIMEOUT_RANGE } from '../fetch.ts';
import { loadAxios } from './axios.cjs';
import { createExchange, type Exchange, type ExchangeAnswer, ExchangeFailed } from './exchange.ts';
import { readRequest, requireOptions, type UpstreamRequest } from './upstream_request.ts';

export { ExchangeFailed };

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
 * @returns makes clients; throws ApplicationMistake for a host that is not in app.yaml
 */
export function createUpstreams(
  { endpoints, authorities = {} }: Pick<Manifest, 'endpoints' | 'authorities'>,
  origins: Readonly<Record<string, string>> = {},
  hosts = endpoints.length,
): Upstreams {
  const upstreams = new Map(
    endpoints.map((host) => [
      host,
      createUpstream(origins[host] ?? `https://${host}`, authorities[host], hosts),
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
): (bounds?: UpstreamBounds) => AxiosInstance {
  const exchange = createExchange(origin, authority, hosts);
  return (bounds) => createClient(exchange, bounds);
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
    ...Object.fromEntries(['get', 'delete', 'head', 'options'].map((name) => [name, withoutData(name)])),
    ...Object.fromEntries(['post', 'put', 'patch', 'query'].map((name) => [name, withData(name)])),
    ...Object.fromEntries(LACKING.map((name) => [name, lacking(name)])),
  });
  // Not enumerable: defaults may contain a key.
  Object.defineProperties(instance, {
    defaults: { get: () => client().defaults },
    interceptors: { get: () => client().interceptors },
  });
  return instance as unknown as AxiosInstance;
}

/** A client of another host, with other bounds, is made by upstream(); there are no multipart bodies. */
const LACKING = ['create', 'getUri', 'postForm', 'putForm', 'patchForm'];

function lacking(name: string) {
  return () => {
    throw new ConfigError(`a client of upstream() has no ${name}()`);
  };
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

/** axios itself, and the interceptors of the application. */
function createAxios(exchange: Exchange, limits: Required<UpstreamBounds>) {
  const { Axios, AxiosHeaders } = loadAxios();
  const axios = new Axios({ adapter: refuse, headers: { common: {} } } as object);
  const { defaults, interceptors } = axios;
  const none = Object.freeze(new AxiosHeaders());

  const request = async (...given: [unknown, unknown?]) => {
    requireOptions(defaults, OWN_OPTIONS);
    for (const options of given) if (typeof options !== 'string') requireOptions(options ?? {}, OWN_OPTIONS);
    return await Reflect.apply(axios.request, axios, given);
  };

  const last = async (config: InternalAxiosRequestConfig) => {
    const changed = await intercept(interceptors.request, config);
    const checked = readRequest(changed, OWN_OPTIONS, limits.timeoutMs);
    const adapter = async () => ({ headers: none, answer: await answerTo(checked, exchange, limits) });
    // A new object, which interceptors have never seen, and which contains nothing of the request.
    return Object.assign(Object.create(null), { adapter });
  };
  const first = ({ answer: { status, data, headers } }: { answer: UpstreamAnswer }) =>
    new Answer(status, data, () => new AxiosHeaders(headers as Record<string, string>));
  axios.interceptors = {
    // To axios this is the only interceptor of requests. It calls those of the application: however they are ordered
    // or removed, and wherever they fail, it is the last.
    request: { forEach: (use: Use) => use({ fulfilled: last }) },
    // Until then axios handles a substitute, since it would copy and change all headers of each answer.
    response: {
      forEach: (use: Use) => {
        use({ fulfilled: first });
        handlersOf(interceptors.response).forEach(use);
      },
    },
  } as unknown as Axios['interceptors'];
  return { defaults, interceptors: Object.freeze(interceptors), request };
}

interface Handler {
  // biome-ignore lint/suspicious/noExplicitAny: as axios declares them
  readonly fulfilled?: ((value: any) => any) | null;
  // biome-ignore lint/suspicious/noExplicitAny: as axios declares them
  readonly rejected?: ((error: any) => any) | null;
  readonly runWhen?: ((config: InternalAxiosRequestConfig) => boolean) | null;
}

type Use = (handler: Handler) => void;

/** axios' declarations lack the method `forEach`, and `handlers` has holes. */
function handlersOf(manager: { readonly handlers?: readonly (Handler | null)[] }): Handler[] {
  return (manager.handlers ?? []).filter((handler) => handler !== null);
}

/** Calls the interceptors as axios does: the one that was added last is the first. */
function intercept(
  manager: Parameters<typeof handlersOf>[0],
  config: InternalAxiosRequestConfig,
): Promise<unknown> {
  return handlersOf(manager)
    .filter(({ runWhen }) => runWhen?.(config) !== false)
    .reduceRight<Promise<unknown>>(
      (before, { fulfilled, rejected }) => before.then(fulfilled, rejected),
      Promise.resolve(config),
    );
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
