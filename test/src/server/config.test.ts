import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../src/library/errors.ts';
import { readServerConfig } from '../../../src/server/config.ts';

const read = (env: Record<string, string>) => readServerConfig({ APP: 'weather', ...env });

describe('readServerConfig', () => {
  test('requires only the application', () => {
    expect(readServerConfig({ APP: 'weather' })).toEqual({
      app: 'weather',
      host: '127.0.0.1',
      port: 3000,
      logLevel: 'info',
      corsOrigins: '*',
      bodyLimitBytes: 65_536,
      maxConcurrentRequests: 256,
      maxConnections: 2048,
      trustedProxies: 0,
      requests: 'any',
      secrets: 'any',
      sealedPaddingBytes: 0,
      requestTimeoutMs: 30_000,
      shutdownGraceMs: 10_000,
      nsmRequired: false,
      clockRequired: false,
      nsmDevice: '/dev/nsm',
      secretsFd: undefined,
      events: false,
    });
  });

  test('has no default application', () => {
    expect(() => readServerConfig({})).toThrow(/^APP must name the application.*APP=weather/);
  });

  test.each([
    ['APP', ''],
    ['APP', '../weather'],
    ['APP', 'Weather'],
    ['APP', 'weather/..'],
    ['PORT', ''],
    ['PORT', 'http'],
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '3000.5'],
    ['PORT', '0x10'],
    ['PORT', ' 3000'],
    ['HOST', ''],
    ['LOG_LEVEL', 'verbose'],
    ['LOG_LEVEL', ''],
    ['LOG_LEVEL', 'hyper=debug'],
    ['CORS_ORIGINS', 'app.example.com'],
    ['CORS_ORIGINS', 'https://app.example.com/'],
    ['CORS_ORIGINS', 'https://app.example.com,*'],
    ['CORS_ORIGINS', 'none,https://app.example.com'],
    ['BODY_LIMIT_BYTES', '64k'],
    ['BODY_LIMIT_BYTES', '1'],
    ['MAX_CONCURRENT_REQUESTS', '0'],
    ['TRUSTED_PROXIES', '-1'],
    ['TRUSTED_PROXIES', 'true'],
    ['REQUESTS', 'plain'],
    ['SECRETS', 'plain'],
    ['SECRETS', ''],
    ['REQUESTS', ''],
    ['SEALED_PADDING_BYTES', '65537'],
    ['SEALED_PADDING_BYTES', '-1'],
    ['REQUEST_TIMEOUT_MS', '1'],
    ['SHUTDOWN_GRACE_MS', 'soon'],
    ['NSM_REQUIRED', 'yes'],
    ['NSM_DEVICE', 'nsm'],
    ['SECRETS_FD', '0'],
    ['SECRETS_FD', 'stdin'],
    ['REPORT_FD', '1024'],
    ['CLOCK_REQUIRED', '1'],
    ['CLOCK_STATE', 'clock'],
    ['LAST_END', ''],
    ['MAX_CONNECTIONS', '15'],
    ['UPSTREAM_CALLS_PER_MINUTE', '0'],
    ['NODE_TLS_REJECT_UNAUTHORIZED', '0'],
  ])('names the variable of an invalid value: %s=%o', (name, value) => {
    expect(() => read({ [name]: value })).toThrow(ConfigError);
    expect(() => read({ [name]: value })).toThrow(new RegExp(`^${name} `));
  });
});
