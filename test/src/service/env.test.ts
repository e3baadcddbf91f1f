import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { boolean, CORS_SETTINGS, integer, readLogLevel, string } from '../../../src/service/env.ts';
import { readSettings } from '../../../src/service/settings.ts';

test('the setting CORS_ORIGINS may be a list of origins, or none', () => {
  const read = (CORS_ORIGINS: string) => readSettings(CORS_SETTINGS, { CORS_ORIGINS }).CORS_ORIGINS;
  expect(read('https://app.example.com, http://localhost:5173')).toEqual([
    'https://app.example.com',
    'http://localhost:5173',
  ]);
  expect(read('none')).toEqual([]);
});

describe('a variable of an application', () => {
  test('is read as a string, an integer or a boolean', () => {
    const env = { A: 'x', B: '7', C: 'true' };
    expect([string(env, 'A'), integer(env, 'B', { from: 1, to: 7 }), boolean(env, 'C', false)]).toEqual([
      'x',
      7,
      true,
    ]);
  });

  test('has its default if it is not set', () => {
    expect(string({}, 'A')).toBeUndefined();
    // The default may be outside of the range.
    expect(integer({}, 'A', { from: 1, to: 7, default: 0 })).toBe(0);
    expect([boolean({}, 'A', true), boolean({}, 'A', false)]).toEqual([true, false]);
  });

  const read = (A?: string) => ({
    string: () => string({ A }, 'A'),
    integer: () => integer({ A }, 'A', { from: 1, to: 7 }),
    boolean: () => boolean({ A }, 'A', true),
  });
  test.each([
    ['string', '', 'A is set but empty: give it a value or unset it'],
    ['integer', '', 'A is set but empty: give it a value or unset it'],
    ['boolean', '', 'A is set but empty: give it a value or unset it'],
    ['integer', undefined, 'A must be an integer from 1 to 7'],
    ['integer', '8', 'A must be an integer from 1 to 7'],
    ['boolean', '1', 'A must be true or false'],
  ] as const)('is refused if it is not a valid %s: %o', (type, text, message) => {
    expect(read(text)[type]).toThrow(expect.objectContaining({ code: 'CONFIG', message }));
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
    // A shell may have these variables for other programs.
    [{ RUST_LOG: 'warn,' }, 'warn'],
    [{ RUST_LOG: 'sui-node=off,debug' }, 'debug'],
    [{ RUST_LOG: 'hyper[span]=debug,warn' }, 'warn'],
    [{ RUST_LOG: 'hyper=loud,warn' }, 'warn'],
    [{ RUST_LOG: 'warn/a filter' }, 'warn'],
    [{ RUST_LOG: 'nautilus_server' }, 'trace'],
    [{ RUST_LOG: 'nautilus_server::app=debug,warn' }, 'debug'],
    [{ RUST_LOG: 'nautilus_server=' }, 'trace'],
    // These directives mean nothing to this server.
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

  test('is always a valid level, whatever RUST_LOG contains', () => {
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
