import { isAbsolute } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import { BUDGET_SETTINGS } from 'sui-enclave-service/budget';
import { CORS_SETTINGS, LOG_SETTINGS, readLogLevel } from 'sui-enclave-service/env';
import type { Origins } from 'sui-enclave-service/http/cors';
import type { Address, Limits } from 'sui-enclave-service/limits';
import { FEWEST_CONNECTIONS } from 'sui-enclave-service/open_files';
import {
  acceptOneOf,
  type Env,
  integerBetween,
  readSettings,
  type SettingTable,
  textSetting,
  trueOrFalse,
} from 'sui-enclave-service/settings';
import * as v from 'valibot';
import { APPLICATION_NAME } from './application/manifest.ts';

/** The settings of the server itself, from the environment. Applications read their own variables. */
export interface Config extends Address, Limits {
  /** Folder name of the application below `src/apps`. */
  readonly app: string;
  readonly logLevel: string;
  /** `'*'`, or the only origins whose pages may read answers. `none` in the environment is an empty list. */
  readonly corsOrigins: '*' | Origins;
  /**
   * Number of proxies in front of this server that add to `X-Forwarded-For`. With 0, callers have no address.
   */
  readonly trustedProxies: number;
  /** With `sealed`, the application's endpoints take only sealed requests. */
  readonly requests: 'any' | 'sealed';
  /** With `sealed`, only sealed secrets are accepted, never those of the environment. */
  readonly secrets: 'any' | 'sealed';
  /** Sealed answers are padded to a multiple of this number of bytes. 0: no padding. */
  readonly sealedPaddingBytes: number;
  /** Time for which SIGTERM waits for requests in flight, in milliseconds. */
  readonly shutdownGraceMs: number;
  readonly nsmRequired: boolean;
  /** Whether to sign only while a document from the NSM confirms the clock. */
  readonly clockRequired: boolean;
  /** Path of the NSM's character device. */
  readonly nsmDevice: string;
  /** An open descriptor from which to read the secrets. Undefined if they come from the environment. */
  readonly secretsFd: number | undefined;
  /** An open descriptor for the boot report, or for the code of the error that prevented the start. */
  readonly reportFd: number | undefined;
  /** The file in which init keeps the state of the clock. */
  readonly clockState: string | undefined;
  /** The file in which init records why a part of the enclave last ended. */
  readonly lastEnd: string | undefined;
  /** Port on loopback of the metrics. Undefined if the server has none. */
  readonly metricsPort: number | undefined;
  /** Whether events are sent, to `eventsFd` or else to the log. */
  readonly events: boolean;
  /** An open descriptor for events. */
  readonly eventsFd: number | undefined;
}

const absolutePath = textSetting('be an absolute path: for example /dev/nsm', isAbsolute);
const descriptor = integerBetween(3, 1023);

/** Settings of the server. Links in the meanings are relative to `src/server`. */
export const SERVER_SETTINGS = {
  APP: {
    schema: textSetting(
      'name the application to run, a folder of src/apps in lower case: for example APP=weather',
      (text) => APPLICATION_NAME.test(text),
    ),
    meaning:
      'the application: a folder of `src/apps`. If it is not set, `npm start` runs `weather` and logs that. In an image it is always set',
  },
  HOST: {
    schema: v.string(),
    default: '127.0.0.1',
    meaning: 'the address to listen on',
  },
  PORT: {
    schema: integerBetween(0, 65_535),
    default: '3000',
    meaning: 'the port to listen on',
  },
  ...LOG_SETTINGS,
  ...CORS_SETTINGS,
  BODY_LIMIT_BYTES: {
    schema: integerBetween(1024, 16 * 1024 ** 2),
    default: '65536',
    meaning:
      'the maximum size of a body. A body must arrive within 5 s, plus one second for every 16 KiB. If it arrives in too many pieces (over 256, plus one for every 16 bytes), the connection ends without an answer. The limits on size and pieces apply also where no endpoint reads the body, as with GET',
  },
  MAX_CONNECTIONS: {
    schema: integerBetween(FEWEST_CONNECTIONS, 100_000),
    default: '2048',
    meaning:
      'maximum number of open connections. At the limit, a new connection replaces an idle one, or otherwise one whose ' +
      'request is incomplete, never one whose request is being answered. If the limit on open files ' +
      '(`RLIMIT_NOFILE`, `ulimit -n`) allows fewer, the server lowers this limit and warns: it reserves 64 ' +
      'files for other purposes, and up to half of the rest for connections to the hosts of `app.yaml`, at ' +
      'most 256 for each; if the application has [tasks](../apps/README.md#tasks), also four for each host',
  },
  MAX_CONCURRENT_REQUESTS: {
    schema: integerBetween(1, 100_000),
    default: '256',
    meaning:
      'maximum number of requests in progress, counted once they have arrived completely. Further ones are answered 503 with ' +
      '`Retry-After`, before their bodies are checked. A request whose caller has disconnected counts until it is done. A request that only ' +
      'waits for the upstream call of another request, such as a call for the same place, does not count. At most ' +
      'a quarter of `MAX_CONNECTIONS` wait in this way, and at most an eighth for the same call; further ' +
      'ones are answered 503 immediately',
  },
  TRUSTED_PROXIES: {
    schema: integerBetween(0, 16),
    default: '0',
    meaning:
      'number of proxies in front of the server that add to `X-Forwarded-For`. With 0, callers have no address. If it is set, make sure that only the proxies can reach the port: others could [write any address](../../SECURITY.md#not-guaranteed)',
  },
  REQUESTS: {
    schema: acceptOneOf('any', 'sealed'),
    default: 'any',
    meaning:
      "`sealed`: the application's endpoints accept [sealed requests](../library/sealing/README.md) only; the server's own endpoints stay open. In an image this setting is measured",
  },
  SECRETS: {
    schema: acceptOneOf('any', 'sealed'),
    default: 'any',
    meaning:
      '`sealed`: secrets are accepted [sealed](../library/sealing/README.md#secrets) only, by `SECRETS_FD` or `POST /secrets`, never from the environment. Needs an NSM. In an image this setting is measured',
  },
  SEALED_PADDING_BYTES: {
    schema: integerBetween(0, 64 * 1024),
    default: '0',
    meaning:
      'the content of sealed answers is padded to a multiple of this number of bytes, to hide its length; 0 disables padding',
  },
  REQUEST_TIMEOUT_MS: {
    schema: integerBetween(1000, 600_000),
    default: '30000',
    meaning: 'the time limit for a request to arrive and be answered',
  },
  SHUTDOWN_GRACE_MS: {
    schema: integerBetween(0, 600_000),
    default: '10000',
    meaning: 'how long the server, after SIGTERM, waits for requests in progress',
  },
  NSM_REQUIRED: {
    schema: trueOrFalse,
    default: 'false',
    meaning: '`true`: an NSM that is missing or fails at boot ends the process (set in the image)',
  },
  CLOCK_REQUIRED: {
    schema: trueOrFalse,
    default: 'false',
    meaning:
      '`true`: nothing is signed unless a document of the NSM from the last 10 minutes agrees with the clock within 5 s (set in the image)',
  },
  NSM_DEVICE: {
    schema: absolutePath,
    default: '/dev/nsm',
    meaning: "the NSM's device",
  },
  SECRETS_FD: {
    schema: descriptor,
    optional: true,
    meaning:
      'descriptor of a pipe from which the server reads the secrets after the start. Without it, they must be in the environment (set in the image of an application with secrets)',
  },
  REPORT_FD: {
    schema: descriptor,
    optional: true,
    meaning:
      'descriptor of a pipe to which the server writes its boot report, or the code of the error that prevented the start (set in the image)',
  },
  CLOCK_STATE: {
    schema: absolutePath,
    optional: true,
    meaning:
      'file in which init records the source from which it corrects the clock, and how far off the clock was (set in the image)',
  },
  LAST_END: {
    schema: absolutePath,
    optional: true,
    meaning: 'file in which init records why a part of the enclave last ended (set in the image)',
  },
  METRICS_PORT: {
    schema: integerBetween(0, 65_535),
    optional: true,
    meaning:
      'the port on 127.0.0.1 for [metrics in the format of OpenMetrics](#metrics), at `/metrics`. In an image this setting is measured, and the parent instance reads the metrics on vsock port 9100',
  },
  EVENTS: {
    schema: trueOrFalse,
    default: 'false',
    meaning:
      '`true`: sends [events](#events), lines with fixed fields. In an image this setting is measured, and the lines go to vsock port 7779 of the parent instance; elsewhere they are in the log',
  },
  EVENTS_FD: {
    schema: descriptor,
    optional: true,
    meaning: 'descriptor of a pipe to which the server writes its events (set in an image with `EVENTS`)',
  },
  ...BUDGET_SETTINGS,
} as const satisfies SettingTable;

/** @throws ConfigError, whose message names the variable and what it must be, without repeating its value */
export function readServerConfig(env: Env): Config {
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    throw new ConfigError(
      'NODE_TLS_REJECT_UNAUTHORIZED must not be 0: anyone could impersonate an endpoint. For your own certificate authority set NODE_EXTRA_CA_CERTS',
    );
  }
  const settings = readSettings(SERVER_SETTINGS, env);
  return {
    app: settings.APP,
    host: settings.HOST,
    port: settings.PORT,
    logLevel: readLogLevel(env),
    corsOrigins: settings.CORS_ORIGINS,
    bodyLimitBytes: settings.BODY_LIMIT_BYTES,
    maxConcurrentRequests: settings.MAX_CONCURRENT_REQUESTS,
    maxConnections: settings.MAX_CONNECTIONS,
    trustedProxies: settings.TRUSTED_PROXIES,
    requests: settings.REQUESTS,
    secrets: settings.SECRETS,
    sealedPaddingBytes: settings.SEALED_PADDING_BYTES,
    requestTimeoutMs: settings.REQUEST_TIMEOUT_MS,
    shutdownGraceMs: settings.SHUTDOWN_GRACE_MS,
    nsmRequired: settings.NSM_REQUIRED,
    clockRequired: settings.CLOCK_REQUIRED,
    nsmDevice: settings.NSM_DEVICE,
    secretsFd: settings.SECRETS_FD,
    reportFd: settings.REPORT_FD,
    clockState: settings.CLOCK_STATE,
    lastEnd: settings.LAST_END,
    metricsPort: settings.METRICS_PORT,
    events: settings.EVENTS,
    eventsFd: settings.EVENTS_FD,
  };
}
