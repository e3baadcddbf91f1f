/** Rules for all errors and messages of src and scripts. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { ConfigError, EnclaveError, isConfigError, isEnclaveError } from '../../../src/library/errors.ts';
import { quantity } from '../../../src/library/wording.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const sources = globSync('{src,scripts}/**/*.{ts,cjs}', { cwd: ROOT, exclude: ['**/node_modules/**'] }).map(
  (file) => [file, readFileSync(join(ROOT, file), 'utf8')] as const,
);

describe('an error of another copy of the module: each published package contains its own copy', () => {
  /** Loads another copy: for another URL, Node's loader makes another module. */
  const importCopy = async (): Promise<typeof import('../../../src/library/errors.ts')> =>
    await import(`${join(ROOT, 'src/library/errors.ts')}?another`);

  test('is recognised, although it is an instance of another class', async () => {
    const { ConfigError: OtherConfigError, ApplicationMistake } = await importCopy();
    const error = new OtherConfigError('a mistake');
    expect([error instanceof EnclaveError, error instanceof ConfigError]).toEqual([false, false]);
    expect([isEnclaveError(error), isConfigError(error)]).toEqual([true, true]);
    const mistake = new ApplicationMistake('another');
    expect([isEnclaveError(mistake), isConfigError(mistake)]).toEqual([true, false]);
  });

  test('is distinguished from any other value that has a code', () => {
    const error = new ConfigError('a mistake');
    expect([isEnclaveError(error), isConfigError(error)]).toEqual([true, true]);
    const imitation = Object.assign(new Error('a mistake'), { code: 'CONFIG', name: 'ConfigError' });
    for (const value of [imitation, { ...error }, Object.create(error), null, undefined, 'CONFIG']) {
      const isError = value instanceof ConfigError;
      expect([isEnclaveError(value), isConfigError(value)]).toEqual([isError, isError]);
    }
  });

  test('does not show the mark when it is printed or converted to JSON', () => {
    const error = new ConfigError('a mistake');
    expect(JSON.stringify(error)).toBe('{"code":"CONFIG"}');
    expect(Reflect.ownKeys(error).sort()).toEqual(['code', 'message', 'stack']);
  });
});

describe('a number in a message', () => {
  test('has its unit in the singular or the plural', () => {
    expect([0, 1, 2].map((count) => quantity(count, 'second'))).toEqual([
      '0 seconds',
      '1 second',
      '2 seconds',
    ]);
  });

  const UNITS =
    'application|byte|call|character|core|certificate|connection|field|file|hour|input|item|key|line|minute|module|object|package|path|request|second|share|snippet|version|wire';

  /**
   * Values that are never 1: constants, sizes of a protocol, and values that a message names because they
   * exceed a limit.
   */
  const NEVER_ONE = [
    /^[A-Z][A-Z0-9_]*$/,
    /^[A-Z_]+ [*/] \w+$/,
    /^Math\.max/,
    /^formatAlternatives\(sizes\)/,
    /^length > size/,
    /^(shares|least|connections|size|sizes|length|limit|maxSize|\w+\.maxSize|maxQuoted - 2|this\.#limitBytes|count)$/,
    /^(header|headerBase64|extended|text|encoded|bytes|b)\.length$/,
    /^(padded|spaces|claim\.whiteSpace|bytes)$/,
  ];

  test('gets its unit from quantity(), unless it is never 1 or the end of a range', () => {
    const template = new RegExp(
      `(?<! to )\\$\\{([^}]*)\\} (?:more |other |waiting )?(?:authorities|entries|(?:${UNITS})s)\\b`,
      'g',
    );
    const mismatches = sources.flatMap(([file, source]) =>
      [...source.matchAll(template)]
        .filter(([, value = '']) => !NEVER_ONE.some((pattern) => pattern.test(value)))
        .map(([text]) => `${file}: ${text}`),
    );
    expect(mismatches).toEqual([]);
  });

  test('has no unit in Go and C++, which have no function for the plural, unless it is never 1', () => {
    const programs = globSync(['src/prover/native/**/*.go', 'enclave/init/*.cc', 'src/server/nsm/*.cc'], {
      cwd: ROOT,
    });
    const unit = new RegExp(
      `(?:(?<! to )%l*[duz]+|(?:\\+|<<) ") (?:entries|elements|values|terms|coefficients|(?:${UNITS})s)\\b.*`,
      'g',
    );
    const mismatches = programs
      .filter((file) => !file.endsWith('_test.go'))
      .flatMap((file) => readFileSync(join(ROOT, file), 'utf8').match(unit) ?? [])
      .sort();
    expect(programs.length).toBeGreaterThan(20);
    expect(mismatches).toEqual([
      expect.stringMatching(/^%d bytes, not %d", key\.WitnessBytes,/),
      expect.stringMatching(/^%d wires are more than the %d that are supported"/),
    ]);
  });
});

/** Classes of errors: those that extend Error, or one of these. */
const classes = (() => {
  const declarations = sources.flatMap(([file, source]) =>
    [
      ...source.matchAll(/^(export )?(?:abstract )?class (\w+)(?:<.*>)? extends (\w+).*?(?:^}| \{\})$/gms),
    ].map(([body, exported, name = '', base = '']) => ({
      file,
      name,
      base,
      body,
      isExported: exported !== undefined,
    })),
  );
  const errorClasses = new Set(['Error', 'errorClass']);
  for (let size = 0; size !== errorClasses.size; ) {
    size = errorClasses.size;
    for (const { name, base } of declarations) if (errorClasses.has(base)) errorClasses.add(name);
  }
  return declarations.filter(({ name }) => errorClasses.has(name));
})();

/** Arguments of constructors. The constructors that are not listed take a code and a message. */
const ARGUMENTS: Readonly<Record<string, readonly unknown[]>> = {
  AnswerTimeError: ['CLIENT_STALE', 2n ** 64n - 1n, 1000],
  ApplicationMistake: ['message'],
  BackendError: ['BACKEND_INPUT', 'message'],
  CertificateError: ['CERTIFICATE_KEY', 1, 'has another key'],
  ClaimError: ['sub', 'is missing'],
  ConfigError: ['message'],
  EnclaveRefusedError: ['/', { status: 500, serverCode: null, serverMessage: null, retryAfterSeconds: 1 }],
  EnclaveUnreachableError: ['/', 'timeout', { cause: new Error('cause') }],
  EnclaveServerError: ['SECRETS_FINAL', 'message'],
  EngineError: ['late', 'message', 'REFUSAL'],
  ExchangeFailed: ['timeout', new Error('cause')],
  FieldError: ['DOCUMENT_FIELD', 'pcrs', 'is missing'],
  FrontendError: ['PROVER_BUSY', 'message', { retryAfterSeconds: 1 }],
  KeyClaimError: ['sub', 'is missing'],
  MoveAbort: [{ package: '0x1', module: 'enclave', functionName: 'retire', instruction: 1 }, 7n],
  PrimitiveError: [{ package: '0x1', module: 'enclave', functionName: 'retire', instruction: 1 }, 'what'],
  MoveAbortError: ['enclave::ERetired', '0x1::enclave::retire', 'it is retired'],
  NoAnswerError: ['timeout'],
  NodeRefusedError: ['UNAVAILABLE', 'message'],
  NotRegisteredError: ['destroyed', new Uint8Array(32), '0x1'],
  NsmBusy: [1, 1],
  NsmError: ['NSM_CLOSED', 'message'],
  NsmIo: ['ioctl', 'EIO'],
  ObjectNotFoundError: ['0x1'],
  PcrMismatchError: [['00', null, null], 'PCR0 differs'],
  ProviderRefusedError: ['access_denied'],
  SaltError: ['SALT_BUSY', 'message'],
  SecretsMissing: [['API_KEY'], 'not JSON'],
  ServerError: ['OVERLOADED', 'message', { retryAfterSeconds: 1, cause: new Error('cause') }],
  ServiceRefusedError: ['salt service', { status: 500, serverCode: null, retryAfterSeconds: 1 }],
  ServiceUnreachableError: ['salt service', 'timeout'],
  TokenClaimError: ['sub', 'is missing'],
  UnauthenticatedError: [503, null],
  UnexpectedAnswerError: ['location'],
  UnknownOutcomeError: ['digest', 'no answer'],
  WeatherError: ['WEATHER_STALE', 'message'],
  WrongObjectTypeError: ['0x1', 'EnclaveConfig', 'Enclave'],
};

describe('JSON.stringify', () => {
  const exportedClasses = classes.filter(
    ({ isExported, body }) => isExported && !body.startsWith('export abstract'),
  );

  test.each(exportedClasses)('works on $name of $file', async ({ file, name, body }) => {
    const args = ARGUMENTS[name] ?? ['CODE', 'message'];
    // This ensures that each class that can hold a bigint does hold one here.
    expect(args.some((arg) => typeof arg === 'bigint')).toBe(/\bbigint\b/.test(body));
    const module = await import(join(ROOT, file));
    const error: Error & { code?: unknown } = new module[name](...args);
    expect(error).toBeInstanceOf(Error);
    const parsed = JSON.parse(JSON.stringify({ error }));
    if (typeof error.code === 'string') expect(parsed).toMatchObject({ error: { code: error.code } });
  });

  test('of an AnswerTimeError has the exact time, as a decimal string', async () => {
    const { AnswerTimeError } = await import('../../../src/library/client/errors.ts');
    const error = new AnswerTimeError('CLIENT_FUTURE', 2n ** 64n - 1n, 60_000);
    expect(JSON.parse(JSON.stringify(error))).toEqual({
      code: 'CLIENT_FUTURE',
      timestampMs: '18446744073709551615',
    });
    expect(error.timestampMs).toBe(2n ** 64n - 1n);
  });

  test('works on classes that a module does not export: none holds a bigint', () => {
    const privateClasses = classes.filter(({ isExported }) => !isExported);
    expect(exportedClasses.length).toBeGreaterThan(40);
    expect(privateClasses.length).toBeGreaterThan(3);
    expect(privateClasses.filter(({ body }) => /\bbigint\b/.test(body))).toEqual([]);
  });
});
