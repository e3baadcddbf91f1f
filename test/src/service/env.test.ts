import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readCorsOrigins, readLogLevel } from '../../../src/service/env.ts';

test('CORS_ORIGINS may be a list of origins, or none', () => {
  const origins = 'https://app.example.com, http://localhost:5173';
  expect(readCorsOrigins({ CORS_ORIGINS: origins })).toEqual([
    'https://app.example.com',
    'http://localhost:5173',
  ]);
  expect(readCorsOrigins({ CORS_ORIGINS: 'none' })).toEqual([]);
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
    expect(readLogLevel(env)).toBe(level);
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
          readLogLevel({ RUST_LOG }),
        );
      }),
    );
  });
});
