import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AppContext } from '../../../src/server/application/app.ts';
import { boot } from '../../../src/server/boot.ts';
import { BUILT_ADDON } from '../../../src/server/built_addon.ts';
import { readServerConfig } from '../../../src/server/config.ts';
import { NsmDevice } from '../../../src/server/nsm/device.ts';
import { ServerError } from '../../../src/service/errors.ts';
import { createLog, hideFromLog, type Logger } from '../../../src/service/log.ts';

function print(object: object): string {
  let printed = '';
  createLog('info', { write: (line) => (printed += line) }).info(object, 'message');
  return printed;
}

/**
 * Boots a server whose application needs the secret HUNTING_PERMIT and logs these properties. Returns the
 * lines of its log.
 */
async function readServerLines(properties: object): Promise<unknown[]> {
  let printed = '';
  const env = { APP: 'hunter', PORT: '0', NSM_DEVICE: '/nonexistent/nsm', HUNTING_PERMIT: 'hunter2' };
  const log = createLog('info', { write: (line) => (printed += line) });
  const manifest = { endpoints: [], secrets: ['HUNTING_PERMIT'] };
  const module = {
    signs: [],
    create: (context: AppContext) => ({
      checkSecrets: () => context.log.info(properties, 'the secrets have arrived'),
    }),
  };
  const config = readServerConfig(env);
  const nsm = new NsmDevice({ path: config.nsmDevice, addonPath: BUILT_ADDON });
  const server = await boot({ config, env, log, nsm, manifest, module });
  await server.close();
  return printed
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
}

describe('the log', () => {
  test('is one line of JSON with a readable level and time', () => {
    expect(JSON.parse(print({ a: 1 }))).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      a: 1,
      msg: 'message',
    });
  });

  test('redacts properties that are named like secrets, in any case, at any depth', () => {
    const printed = print({
      token: 'hunter2',
      Salt: ['hunter2'],
      request: {
        jwt: 'hunter2',
        Authorization: 'hunter2',
        API_KEY: 'hunter2',
        headers: { 'X-Api-Key': 'hunter2' },
      },
      config: { clients: [[{ seed: 'hunter2' }], { proof: { a: 'hunter2' }, 'client-secret': 'hunter2' }] },
      deep: { a: { b: { c: { d: { e: { f: { g: { token: 'hunter2' } } } } } } } },
    });
    expect(printed).not.toMatch(/hunter2/);
    expect(JSON.parse(printed)).toMatchObject({
      token: '[Redacted]',
      Salt: '[Redacted]',
      request: { jwt: '[Redacted]', Authorization: '[Redacted]', headers: { 'X-Api-Key': '[Redacted]' } },
      config: { clients: [[{ seed: '[Redacted]' }], { proof: '[Redacted]' }] },
      deep: { a: { b: { c: { d: { e: '[Too deep]' } } } } },
    });
  });

  test('redacts the secrets of the manifest, but not similar names', () => {
    let printed = '';
    const log = createLog('info', { write: (line) => (printed += line) });
    const child = log.child({ a: 1 });
    hideFromLog(log, ['SALT_SEED', 'DB_URL']);
    const properties = { SALT_SEED: 'hunter2', list: [{ saltSeed: 'hunter2', 'db-url': 'hunter2' }] };
    log.info(properties, 'from it');
    child.info(properties, 'from a child');
    log.info(
      { seed_fingerprints: ['ab'], secrets_missing: ['SALT_SEED'], public_key: 'cd', urls: 1 },
      'more',
    );
    expect(printed).not.toMatch(/hunter2/);
    expect(printed).toMatch(
      /"seed_fingerprints":\["ab"\],"secrets_missing":\["SALT_SEED"\],"public_key":"cd","urls":1/,
    );
  });

  test('redacts the secrets of the manifest from the start of a server', async () => {
    const [line] = await readServerLines({ Hunting: [{ huntingPermit: 'hunter2' }] });
    expect(line).toMatchObject({ Hunting: [{ huntingPermit: '[Redacted]' }] });
  });

  test('redacts the bindings of child logs at any level', () => {
    let printed = '';
    const log = createLog('info', { write: (line) => (printed += line) });
    const child = log.child({ request_id: 'r', user: { Token: 'hunter2' }, err: new Error('hunter2') });
    child.child({ headers: { COOKIE: 'hunter2' } }, { level: 'info' }).info('text');
    child.setBindings({ list: [{ password: 'hunter2' }] });
    child.info('text');
    expect(printed).not.toMatch(/hunter2/);
    expect(printed).toMatch(/"request_id":"r","user":{"Token":"\[Redacted\]"},"err":{"type":"Error"/);
  });

  test('redacts values interpolated into the message', () => {
    let printed = '';
    const log = createLog('info', { write: (line) => (printed += line) });
    log.info('of %j and %o', { a: { token: 'hunter2' } }, [{ JWT: 'hunter2' }]);
    log.info({ a: 1 }, 'failed: %s %j', new Error('hunter2'), new Error('hunter2'));
    log.info('an object for a string %s', { toString: () => 'hunter2' });
    expect(printed).not.toMatch(/hunter2/);
    expect(printed).toMatch(/of {\\"a\\":{\\"token\\":\\"\[Redacted\]\\"}}/);
  });

  test('prints bytes as their number, dates in ISO 8601, and large integers exactly', () => {
    expect(
      JSON.parse(print({ a: Buffer.from('hunter2'), b: [new Uint8Array(32)], c: new Date(0) })),
    ).toMatchObject({
      a: '[7 bytes]',
      b: ['[32 bytes]'],
      c: '1970-01-01T00:00:00.000Z',
    });
    expect(print({ a: 2n ** 64n, b: { c: 2n ** 64n } })).toContain(
      '"a":18446744073709551616,"b":{"c":18446744073709551616}',
    );
  });

  const cycle: { name: string; self?: object; token: string } = { name: 'cycle', token: 'hunter2' };
  cycle.self = cycle;
  const throwingTraps = {
    get: () => {
      throw new Error('hunter2');
    },
    ownKeys: () => {
      throw new Error('hunter2');
    },
  };
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();
  test.each<[string, unknown[]]>([
    [
      'a getter',
      [
        {
          before: 1,
          get x() {
            throw new Error('hunter2');
          },
        },
        'text',
      ],
    ],
    [
      'a getter of err',
      [
        {
          before: 1,
          get err() {
            throw new Error('hunter2');
          },
        },
        'text',
      ],
    ],
    ['a proxy', [new Proxy({}, throwingTraps), 'text']],
    ['a proxy of an error', [new Proxy(new Error('hunter2'), throwingTraps), 'text']],
    [
      'a property that is a proxy',
      [{ before: 1, x: new Proxy({}, throwingTraps), err: new Proxy({}, throwingTraps) }, 'text'],
    ],
    ['a revoked proxy', [revoked, 'text']],
    ['a property that is a revoked proxy', [{ before: 1, x: [revoked], err: revoked }, 'text']],
    [
      'a property whose toJSON throws',
      [
        {
          before: 1,
          x: {
            toJSON() {
              throw new Error('hunter2');
            },
          },
        },
        'text',
      ],
    ],
    [
      'a toJSON that returns its own object',
      [
        {
          x: {
            toJSON() {
              return this;
            },
          },
        },
        'text',
      ],
    ],
    ['a cycle', [cycle, 'text']],
    ['a cycle of lists', [{ x: [cycle, [cycle]] }, 'text']],
    ['the values that a message interpolates', ['text %j %o', new Proxy({}, throwingTraps), revoked]],
    ['a symbol for a number', ['text %d', Symbol('hunter2')]],
    ['a symbol as the message', [Symbol('hunter2')]],
    ['a proxy as the message', [{ before: 1 }, new Proxy({}, throwingTraps)]],
    ['an object without a prototype', [Object.assign(Object.create(null), { before: 1 }), 'text']],
    ['a property named __proto__', [JSON.parse('{"__proto__":{"token":"hunter2"},"before":1}'), 'text']],
    [
      'an object that pino takes for a request',
      [{ method: 'GET', headers: { Authorization: 'hunter2' }, socket: {} }, 'text'],
    ],
    ['no arguments', []],
  ])('never throws, and prints a line, for any arguments: %s', (caseName, args) => {
    let printed = '';
    const log = createLog('info', { write: (line) => (printed += line) });
    (log.info as (...args: unknown[]) => void)(...args);
    expect(JSON.parse(printed)).toMatchObject({ level: 'info' });
    expect(printed).not.toMatch(/hunter2/);
    if (args[1] === 'text') expect(JSON.parse(printed)).toMatchObject({ msg: 'text' });
    if (/^a (getter|property)/.test(caseName)) expect(JSON.parse(printed)).toMatchObject({ before: 1 });
  });

  test('truncates large values and marks them', () => {
    const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, at) => [`n${at}`, at]));
    let bush: unknown = 'leaf';
    for (let depth = 0; depth < 6; depth++) bush = Array.from({ length: 50 }, () => bush);
    for (const value of [
      wide,
      { wide },
      { bush },
      { list: Array.from({ length: 1_000_000 }) },
      { text: [bush, wide] },
    ]) {
      const printed = print(value);
      expect(printed.length).toBeLessThan(50_000);
      expect(printed).toContain('[Too many values]');
      expect(JSON.parse(printed)).toMatchObject({ msg: 'message' });
    }
  });

  test('never prints the value of a secret, wherever it is', () => {
    const name = fc.constantFrom(
      'token',
      'Authorization',
      'api_key',
      'SALT_SEED',
      'salt-seed',
      'apiKey',
      'JWT',
    );
    const harmless = fc.constantFrom('a', 'err', 'msg', 'list', 'toJSON', 'message', 'level', 'cause');
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 8 },
        fc.constantFrom(1, 'text', null, true),
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(harmless, tie('tree'), { maxKeys: 3 }),
        fc.tuple(name, tie('tree')).map(([key, branch]) => ({ [key]: ['hunter2', branch], rest: branch })),
        tie('tree').map((properties) =>
          Object.assign(new Error('hunter2'), { properties, token: 'hunter2' }),
        ),
      ),
    }));
    fc.assert(
      fc.property(fc.dictionary(harmless, tree), tree, (properties, binding) => {
        let printed = '';
        const log = createLog('info', { write: (line) => (printed += line) });
        hideFromLog(log, ['SALT_SEED']);
        log.child({ binding }).info(properties, 'text %j', binding);
        expect(printed).not.toMatch(/hunter2/);
        expect(printed.split('\n')).toHaveLength(2);
        JSON.parse(printed);
      }),
    );
  });

  test('prints the location of a foreign error, but not its message or properties', () => {
    class RequestError extends Error {
      override readonly name = 'RequestError';
      readonly code = 'ECONNREFUSED';
      readonly config = { url: 'https://h/?key=hunter2' };
    }
    const error = new RequestError('GET https://h/?key=hunter2\n    hunter2', {
      cause: new Error('hunter2'),
    });
    const printed = print({ err: error });
    expect(printed).not.toMatch(/hunter2/);
    expect(printed).toMatch(/RequestError.*ECONNREFUSED.*log\.test\.ts/);
  });

  test.each([
    ['an error without a message', (log: Logger) => log.error(new Error('hunter2'))],
    ['an error as a property without a message', (log: Logger) => log.error({ err: new Error('hunter2') })],
    ['an error and a message', (log: Logger) => log.error(new Error('hunter2'), 'failed')],
  ])('does not print the message of a foreign error: %s', (_caseName, write) => {
    let printed = '';
    write(createLog('info', { write: (line) => (printed += line) }));
    expect(printed).not.toMatch(/hunter2/);
    expect(JSON.parse(printed)).toMatchObject({
      msg: expect.stringMatching(/^(error|failed)$/),
      err: { type: 'Error', stack: expect.arrayContaining([expect.stringMatching(/log\.test\.ts/)]) },
    });
  });

  test('prints the messages of foreign errors and causes in development', () => {
    let printed = '';
    const log = createLog('info', { write: (line) => (printed += line) }, { withMessages: true });
    log.warn({ err: new ServerError('OVERLOADED', 'busy', { cause: new Error('the reason') }) }, 'failed');
    expect(JSON.parse(printed)).toMatchObject({
      err: {
        message: 'busy',
        cause: { message: 'the reason', stack: expect.arrayContaining([expect.stringMatching(/log\.test/)]) },
      },
    });
  });
});
