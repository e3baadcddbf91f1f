import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../src/errors.ts';
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
    ['NODE_TLS_REJECT_UNAUTHORIZED', '0'],
  ])('names the variable of an invalid value: %s=%o', (name, value) => {
    expect(() => read({ [name]: value })).toThrow(ConfigError);
    expect(() => read({ [name]: value })).toThrow(new RegExp(`^${name} `));
  });

  test('accepts a list of origins', () => {
    const origins = 'https://app.example.com, http://localhost:5173';
    expect(read({ CORS_ORIGINS: origins }).corsOrigins).toEqual([
      'https://app.example.com',
      'http://localhost:5173',
    ]);
    expect(read({ CORS_ORIGINS: 'none' }).corsOrigins).toEqual([]);
  });
});

describe('the log level', () => {
  test.each([
    [{ LOG_LEVEL: 'warn' }, 'warn'],
    [{ LOG_LEVEL: 'silent' }, 'silent'],
    [{ LOG_LEVEL: 'warn', RUST_LOG: 'debug' }, 'warn'],
    [{ RUST_LOG: 'debug' }, 'debug'],
    [{ RUST_LOG: 'DEBUG' }, 'debug'],
    [{ RUST_LOG: 'off' }, 'silent'],
    [{ RUST_LOG: 'nautilus_server=debug,info' }, 'debug'],
    [{ RUST_LOG: 'info,nautilus_server=debug' }, 'debug'],
    [{ RUST_LOG: 'warn,hyper=trace' }, 'warn'],
    [{ RUST_LOG: 'sui_enclave=trace' }, 'trace'],
    [{ RUST_LOG: 'tower_http::trace=debug' }, 'info'],
    // As a shell may have them for other programs.
    [{ RUST_LOG: 'warn,' }, 'warn'],
    [{ RUST_LOG: 'sui-node=off,debug' }, 'debug'],
    [{ RUST_LOG: 'hyper[span]=debug,warn' }, 'warn'],
    [{ RUST_LOG: 'hyper=loud,warn' }, 'warn'],
    [{ RUST_LOG: 'warn/a filter' }, 'warn'],
    [{ RUST_LOG: 'nautilus_server' }, 'trace'],
    [{ RUST_LOG: 'nautilus_server::app=debug,warn' }, 'debug'],
    [{ RUST_LOG: 'nautilus_server=' }, 'trace'],
    // Directives that mean nothing to this server.
    [{ RUST_LOG: '' }, 'info'],
    [{ RUST_LOG: ' ' }, 'info'],
    [{ RUST_LOG: ',' }, 'info'],
    [{ RUST_LOG: '/' }, 'info'],
    [{ RUST_LOG: '=' }, 'info'],
    [{ RUST_LOG: 'hyper' }, 'info'],
    [{ RUST_LOG: 'hyper=debug' }, 'info'],
    [{ RUST_LOG: 'hyper=loud' }, 'info'],
    [{ RUST_LOG: 'hyper=debug,tower=trace' }, 'info'],
    [{ RUST_LOG: 'verbose' }, 'info'],
    [{ RUST_LOG: 'a=b=c,\u0000' }, 'info'],
    [{ RUST_LOG: 'warn,nautilus_server=loud' }, 'warn'],
    [{ RUST_LOG: 'nautilus_server=debug,nautilus_server=loud' }, 'debug'],
  ])('of %o is %s', (env, level) => {
    expect(read(env as unknown as Record<string, string>).logLevel).toBe(level);
  });

  test('is always a level, whatever RUST_LOG contains', () => {
    const words = ['info', 'debug', 'off', 'loud', '', 'hyper', 'nautilus_server', '=', ',', '/', '::', '['];
    const anything = fc.oneof(
      fc.string(),
      fc.array(fc.constantFrom(...words)).map((parts) => parts.join('')),
    );
    fc.assert(
      fc.property(anything, (RUST_LOG) => {
        expect(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).toContain(
          read({ RUST_LOG }).logLevel,
        );
      }),
    );
  });
});
