/**
 * The only way to send requests to a host of app.yaml, for applications and for probes of their endpoints.
 */
import type {
  AxiosInstance,
  AxiosRequestConfig,
  AxiosResponse,
  AxiosResponseDefault,
  CreateAxiosDefaults,
} from 'axios';
import { ApplicationMistake, ConfigError } from 'sui-enclave/errors';
import { isTimeout, TIMEOUT_RANGE } from 'sui-enclave/fetch';
import { loadAxios } from './axios.cjs';
import { createExchange, type Exchange } from './exchange.ts';
import { ADAPTER, createAxios, type Site } from './upstream_client.ts';
import { type RefusedOption, requireOptions } from './upstream_request.ts';

export { isUpstreamError, parseJson, type UpstreamError } from './upstream_answer.ts';

// biome-ignore lint/suspicious/noExplicitAny: as axios declares its methods
type Any = any;
type Response<T, R, D> = Promise<R extends AxiosResponseDefault ? AxiosResponse<T, D> : R>;
type Options<D, P> = Omit<AxiosRequestConfig<D, P>, RefusedOption>;
type Get = <T = Any, R = AxiosResponseDefault, D = Any, P = Any>(
  url: string,
  config?: Options<D, P>,
) => Response<T, R, D>;
type Post = <T = Any, R = AxiosResponseDefault, D = Any, P = Any>(
  url: string,
  data?: D,
  config?: Options<D, P>,
) => Response<T, R, D>;

/** An instance of axios. The types of its methods omit the options that it refuses. */
export interface UpstreamClient extends AxiosInstance {
  /** Sends a GET, with the options of axios. */
  get: Get;
  /** Sends a DELETE, with the options of axios. */
  delete: Get;
  /** Sends a HEAD, whose answer has no body. */
  head: Get;
  /** Sends an OPTIONS, with the options of axios. */
  options: Get;
  /** Sends a POST, with the options of axios. */
  post: Post;
  /** Sends a PUT, with the options of axios. */
  put: Post;
  /** Sends a PATCH, with the options of axios. */
  patch: Post;
  /** Sends a QUERY, with the options of axios. */
  query: Post;
  /** Sends a POST with a form as its body. */
  postForm: Post;
  /** Sends a PUT with a form as its body. */
  putForm: Post;
  /** Sends a PATCH with a form as its body. */
  patchForm: Post;
  /** Creates a client of the same host with other defaults. */
  create(config?: Omit<CreateAxiosDefaults, RefusedOption>): UpstreamClient;
}

/** The hosts to which a server may send requests. A manifest has these properties. */
export interface UpstreamHosts {
  /** Host names, which get requests by https on port 443. */
  readonly endpoints: readonly string[];
  /** PEM of certificate authorities, by host. For that host, no other authority is trusted. */
  readonly authorities?: Readonly<Record<string, string>>;
}

/** Limits of the requests to an upstream. */
export interface UpstreamBounds {
  /**
   * Time limit of the whole exchange in milliseconds, from the DNS query to the last byte of the answer. A
   * request's `timeout` may lower it. Default: 5000.
   */
  readonly timeoutMs?: number;
  /** Maximum size of an answer's body, in bytes. Default: 65536. */
  readonly maxSize?: number;
  /**
   * Called before each request is sent. It throws if the request must not be sent: see budget.ts. Default: no
   * limit.
   */
  readonly budget?: () => void;
}

/**
 * Makes a client for one host: an instance of axios that sends, by exchange.ts, the requests that
 * upstream_request.ts allows. The client throws:
 *
 * - UpstreamError if there is no answer that the request accepts;
 * - axios' CanceledError if the request's signal was aborted;
 * - ConfigError for an option that it refuses;
 * - ApplicationMistake for a value that is not allowed;
 * - the error of its budget.
 */
export type Upstreams = (host: string, bounds?: UpstreamBounds) => UpstreamClient;

/**
 * Creates the upstreams of a server.
 *
 * @param origins for development and tests: the origin to use in place of `https://<host>`
 * @param hosts number of all hosts to which the server sends requests. Default: the number of endpoints
 * @param onExchange called when a request that was sent has ended, in the asynchronous context of its sender
 * @returns a function that makes clients. It throws ApplicationMistake for a host that is not in app.yaml
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
      createUpstream(
        origins[host] ?? `https://${host}`,
        authorities[host],
        hosts,
        onExchange,
        `https://${host}`,
      ),
    ]),
  );
  return (host, bounds) => {
    const upstream = upstreams.get(host);
    if (!upstream) throw new ApplicationMistake(`${host} is not among the endpoints of app.yaml`);
    return upstream(bounds);
  };
}

/**
 * Creates the upstream of one host.
 *
 * @param origin the origin to which requests are sent
 * @param authority PEM of the authorities to trust for this host. Default: the public authorities
 * @param hosts number of all hosts to which the server sends requests; they share its open files
 * @param namedOrigin the origin in the URLs of requests. Default: `origin`
 * @returns a function that makes clients, which share their connections
 */
export function createUpstream(
  origin: string,
  authority?: string,
  hosts = 1,
  onExchange?: (isAnswered: boolean) => void,
  namedOrigin = origin,
): (bounds?: UpstreamBounds) => UpstreamClient {
  const exchangeWithHost = createExchange(origin, authority, hosts);
  const exchange = onExchange ? observe(exchangeWithHost, onExchange) : exchangeWithHost;
  return (bounds = {}) => {
    const site = { exchange, origin: new URL(namedOrigin).origin, ...requireBounds(bounds) };
    return createClient(() => createAxios(site), site);
  };
}

function observe(exchange: Exchange, onExchange: (isAnswered: boolean) => void): Exchange {
  return (request) => {
    const answer = exchange(request);
    answer.then(
      () => onExchange(true),
      () => onExchange(false),
    );
    return answer;
  };
}

const METHODS = ['request', 'postForm', 'putForm', 'patchForm', 'getUri'] as const;
const WITHOUT_DATA = ['get', 'delete', 'head', 'options'];
const WITH_DATA = ['post', 'put', 'patch', 'query'];

function toMethods<Name extends string>(names: readonly Name[], method: (name: Name) => unknown): object {
  return Object.fromEntries(names.map((name) => [name, method(name)]));
}

/** Loads axios when the client is first used. */
function createClient(load: () => ReturnType<typeof createAxios>, site: Site): UpstreamClient {
  let loaded: ReturnType<typeof createAxios> | undefined;
  const client = () => {
    loaded ??= load();
    return loaded;
  };
  const call =
    (name: (typeof METHODS)[number]) =>
    (...parameters: unknown[]) =>
      Reflect.apply(client().axios[name], client().axios, parameters);
  const request = call('request');
  const instance = Object.assign(
    call('request'),
    toMethods(METHODS, call),
    // These methods work as in axios. axios itself merges their options twice, which takes a tenth of the
    // time of a call.
    toMethods(
      WITHOUT_DATA,
      (method) => (url: string, options?: object) => request({ ...options, method, url }),
    ),
    toMethods(
      WITH_DATA,
      (method) => (url: string, data?: unknown, options?: object) =>
        request({ ...options, method, url, data }),
    ),
    {
      create(options: CreateAxiosDefaults = {}) {
        requireOptions(options, ADAPTER);
        const merged = loadAxios().mergeConfig(client().axios.defaults as object, options as object);
        return createClient(() => createAxios(site, merged), site);
      },
    },
  );
  // The defaults are not enumerable, since they may contain a key.
  Object.defineProperties(instance, {
    defaults: { get: () => client().axios.defaults },
    interceptors: { get: () => client().interceptors },
  });
  return instance as unknown as UpstreamClient;
}

/** Checks the bounds, since every exchange must be bounded in time and size. */
function requireBounds({ timeoutMs = 5000, maxSize = 65_536, budget = () => {} }: UpstreamBounds) {
  if (!isTimeout(timeoutMs)) throw new ConfigError(`timeoutMs of an upstream must be ${TIMEOUT_RANGE}`);
  if (!Number.isSafeInteger(maxSize) || maxSize < 0) {
    throw new ConfigError('maxSize of an upstream must be an integer number of bytes');
  }
  return { timeoutMs, maxSize, budget };
}
