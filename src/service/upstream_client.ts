/**
 * Sets up axios for one host. axios builds requests, but the function that it calls last is always ours,
 * whatever the options and interceptors are.
 */
import type { Axios, AxiosAdapter, AxiosResponse, InternalAxiosRequestConfig as Config } from 'axios';
import { ApplicationMistake, ConfigError } from 'sui-enclave/errors';
import { isTimeout } from 'sui-enclave/fetch';
import { parseJsonText } from 'sui-enclave/json_text';
import { loadAxios } from './axios.cjs';
import { type Exchange, ExchangeFailed } from './exchange.ts';
import { HIDDEN, isUpstreamError, parseData, UpstreamResponse, upstreamError } from './upstream_answer.ts';
import {
  buildHeaders,
  checkMethod,
  copyBody,
  readBody,
  requireHeaders,
  requireOptions,
  requireThat,
  resolvePath,
} from './upstream_request.ts';
import { presentTask } from './waiting.ts';

/** A host, and the bounds of a client for it. */
export interface Site {
  readonly exchange: Exchange;
  /** Origin of the URLs that requests name. */
  readonly origin: string;
  readonly timeoutMs: number;
  readonly maxSize: number;
  readonly budget: () => void;
}

/**
 * Adapter that marks the options of a client of upstream(). It sends nothing: only axios gets the function
 * that sends a request.
 */
export const ADAPTER: AxiosAdapter = async () => {
  throw new ApplicationMistake('only a client of upstream() can send requests by its adapter');
};

/**
 * The default transformation of answers. If it is the first transformation, `parseData` replaces it.
 * Elsewhere, it parses the text as JSON.
 */
function parseText(this: Config, data: unknown): unknown {
  const isJson = typeof data === 'string' && (this.responseType ?? 'json') === 'json';
  return isJson ? parseJsonText(data, this.parseReviver) : data;
}

/**
 * The default transformation of requests. It works like the transformation of axios, but replaces its errors,
 * which repeat property names of the data.
 */
function buildBody(this: Config, data: unknown, headers: Config['headers']): unknown {
  if (data instanceof URLSearchParams) headers.setContentType('application/x-www-form-urlencoded', false);
  const changes = [loadAxios().defaults.transformRequest ?? []].flat();
  try {
    return changes.reduce((before: unknown, change) => change.call(this, before, headers), data);
  } catch {
    throw new ApplicationMistake(
      'data of an upstream request contains a value that JSON or a form can not represent, such as a cycle or a bigint',
    );
  }
}

const isSuccess = (status: number) => status >= 200 && status < 300;

/** Groups of default headers: `common` for all requests, and a group for each method. */
const BUCKETS = ['common', 'delete', 'get', 'head', 'options', 'post', 'put', 'patch', 'query'];

function createDefaults({ origin }: Site): object {
  const { AxiosHeaders } = loadAxios();
  return {
    adapter: ADAPTER,
    baseURL: origin,
    timeout: 0,
    validateStatus: isSuccess,
    headers: Object.fromEntries(BUCKETS.map((name) => [name, new AxiosHeaders()])),
    // axios passes its encoder for forms here, which encodes as URLSearchParams does.
    paramsSerializer: { encode: (text: string, encode = encodeURIComponent) => encode(text) },
    transformRequest: [buildBody],
    transformResponse: [parseText],
  };
}

/**
 * Creates an instance of axios for a host.
 *
 * @returns the instance, and the application's interceptors, which the instance calls
 */
export function createAxios(site: Site, defaults = createDefaults(site)) {
  const { Axios } = loadAxios();
  const axios = new Axios(defaults);
  const { request, response } = axios.interceptors;
  // axios sees only one interceptor, ours, which calls the application's interceptors as axios would. Ours is
  // always the last, even if the application's interceptors are reordered or removed, or fail.
  const forEach = (visit: (interceptor: object) => void) => {
    const handlers = (request.handlers ?? []).filter((handler) => handler !== null);
    const synchronous = handlers.every(
      ({ fulfilled, rejected, synchronous }) => synchronous && typeof fulfilled === 'function' && !rejected,
    );
    const fulfilled = (config: Config): unknown => {
      const called = handlers.filter(({ runWhen }) => runWhen?.(config) !== false);
      if (config.transitional?.legacyInterceptorReqResOrdering !== false) called.reverse();
      if (synchronous)
        return prepare(
          called.reduce((before, { fulfilled }) => fulfilled(before) as Config, config),
          site,
        );
      const start = Promise.resolve(config);
      const interceptedConfig = called.reduce(
        (before, { fulfilled, rejected }) => before.then(fulfilled, rejected),
        start,
      );
      return interceptedConfig.then((config) => prepare(config, site));
    };
    visit({ fulfilled, synchronous });
  };
  const sendRequest = async (...options: [never, never?]) => {
    for (const defaultOptions of [axios.defaults, ...options]) {
      if (typeof defaultOptions !== 'string') requireHeaders(defaultOptions ?? {});
    }
    try {
      return await Reflect.apply(Axios.prototype.request, axios, options);
    } catch (error) {
      throw withoutRequest(error);
    }
  };
  const getUri: Axios['getUri'] = (config) => buildUri(() => Axios.prototype.getUri.call(axios, config));
  Object.assign(axios, { request: sendRequest, getUri, interceptors: { request: { forEach }, response } });
  return { axios, interceptors: Object.freeze({ request, response }) };
}

/** Returns the request that axios sends next. It is a new object, which the application's code never gets. */
function prepare(axiosConfig: unknown, site: Site): object {
  // Read each option once, since a getter could return another value later.
  const config: Config = Object.assign(Object.create(HIDDEN), axiosConfig);
  requireOptions(config, ADAPTER);
  requireHeaders(config);
  if (config.adapter !== ADAPTER) {
    throw new ConfigError('an upstream request must keep the adapter of upstream()');
  }
  const { headers, data, method, transformRequest, transformResponse } = config;
  const isTyped = loadAxios().AxiosHeaders.from(headers).has('content-type');
  const [first, ...more] = [transformResponse ?? []].flat();
  const isParsed = first === parseText;
  const answers = isParsed || !first ? more : [first, ...more];
  const call = (change: unknown, parameters: unknown[]): unknown =>
    Reflect.apply(change as () => unknown, config, parameters);
  return {
    // axios doesn't copy an object without a prototype.
    __proto__: null,
    headers,
    method,
    // axios would send the whole underlying buffer.
    data: ArrayBuffer.isView(data) ? copyBody(data) : data,
    transformRequest: [transformRequest ?? []].flat().map(
      (change) =>
        (...parameters: unknown[]) =>
          call(change, parameters),
    ),
    // An answer without data has nothing to transform.
    transformResponse: answers.map(
      (change) =>
        (...parameters: unknown[]) =>
          parameters[0] === undefined ? undefined : call(change, parameters),
    ),
    adapter: ({ headers, data }: Config) => {
      // axios adds the type of a form even without a body.
      if (!isTyped && (data === undefined || data === null)) headers.delete('content-type');
      return send(site, Object.assign(config, { headers, data }), isParsed);
    },
  };
}

/**
 * Sends a request, after all steps of axios.
 *
 * @param config the options of the application, with the transformed body
 */
async function send(site: Site, config: Config, isParsed: boolean): Promise<AxiosResponse> {
  const { url, baseURL, params, paramsSerializer, allowAbsoluteUrls, data, maxBodyLength } = config;
  const start = performance.now();
  const { Axios, CanceledError, isCancel } = loadAxios();
  requireThat(typeof (url ?? '') === 'string', 'the url of an upstream request must be a text');
  const urlOptions = { url, baseURL, params, paramsSerializer, allowAbsoluteUrls } as object;
  const uri = buildUri(() => Axios.prototype.getUri.call({ defaults: {} } as Axios, urlOptions));
  const path = resolvePath(url, uri, site.origin);
  const method = checkMethod(config);
  const headers = buildHeaders(config.headers.toJSON(true), config.auth);
  const { validateStatus: accepts = isSuccess } = config;
  let timeoutMs = readTimeout(config, site);
  const { signals, signal, unsubscribe } = callerSignals(config);
  let readLimit: AbortSignal | undefined;
  try {
    signal?.throwIfAborted();
    const body = await readBody(data, headers, maxBodyLength, () => {
      readLimit = AbortSignal.timeout(timeoutMs);
      return AbortSignal.any([...signals, readLimit]);
    });
    if (readLimit) timeoutMs = Math.max(1, timeoutMs - (performance.now() - start));
    // A stream can't be read twice, so a repeated request needs the bytes.
    if (readLimit) config.data = body;
    countCall(site);
    const answer = await site.exchange({
      method,
      path,
      headers,
      body,
      signal,
      timeoutMs,
      maxSize: site.maxSize,
    });
    const { data: parsedData, isUsable } = parseData(answer, method, config, isParsed);
    const response = new UpstreamResponse(answer, parsedData, config);
    const isAccepted = accepts?.(answer.status) ?? true;
    if (!isAccepted) throw upstreamError('status', config, { response });
    if (!isUsable) throw upstreamError('malformed', config, { status: answer.status });
    return response;
  } catch (error) {
    if (signal?.aborted && error === signal.reason) {
      throw new CanceledError(isCancel(error) ? error.message : undefined);
    }
    if (readLimit?.aborted && error === readLimit.reason) throw upstreamError('timeout', config);
    throw error instanceof ExchangeFailed ? upstreamError(error.reason, config, error) : error;
  } finally {
    unsubscribe();
  }
}

/** Counts a request against the share of the task that sends it, or else against the budget of callers. */
function countCall({ budget }: Site): void {
  const task = presentTask();
  if (task) task.takeCall();
  else budget();
}

/**
 * Returns the time limit of a request in milliseconds: the site's limit, unless the application lowers it.
 */
function readTimeout({ timeout = 0 }: Config, site: Site): number {
  requireThat(
    timeout === 0 || (isTimeout(timeout) && timeout <= site.timeoutMs),
    `the timeout of an upstream request must be a number of milliseconds up to ${site.timeoutMs}: it may only lower the limit of upstream()`,
  );
  return timeout || site.timeoutMs;
}

/**
 * Returns the signals by which the caller may end a request, and a signal that is aborted as soon as any of
 * them is.
 */
function callerSignals({ signal, cancelToken }: Config) {
  const cancelled = cancelToken?.toAbortSignal() as (AbortSignal & { unsubscribe(): void }) | undefined;
  const signals = [signal as AbortSignal | undefined, cancelled].filter(
    (candidate) => candidate instanceof AbortSignal,
  );
  return {
    signals,
    signal: signals.length > 1 ? AbortSignal.any(signals) : signals[0],
    unsubscribe: () => cancelled?.unsubscribe(),
  };
}

function buildUri(make: () => string): string {
  try {
    return make();
  } catch (error) {
    throw error instanceof URIError
      ? new ApplicationMistake('params have a lone surrogate')
      : withoutRequest(error);
  }
}

/** Replaces errors of axios itself, which repeat options or the URL. */
function withoutRequest(error: unknown): unknown {
  const { AxiosError, isCancel } = loadAxios();
  if (!(error instanceof AxiosError) || isUpstreamError(error) || isCancel(error)) return error;
  return new ApplicationMistake(
    `axios can not build an upstream request from its options (${error.code ?? 'AxiosError'})`,
  );
}
