import { describe, expect, test } from 'vitest';
import { ApplicationMistake, ConfigError } from '../../../src/library/errors.ts';
import { ServerError } from '../../../src/service/errors.ts';
import {
  classOf,
  codeOf,
  describeError,
  findPlaces,
  isInstance,
  messageOf,
} from '../../../src/service/thrown.ts';
import { HOSTILE_THROWN } from './hostile_thrown.ts';

describe('the description of a thrown value', () => {
  test('prints our own errors with their message', () => {
    expect(describeError(new ServerError('INVALID_INPUT', 'payload is missing'))).toEqual({
      type: 'ServerError',
      code: 'INVALID_INPUT',
      message: 'payload is missing',
    });
  });

  test('prints an ApplicationMistake with its message and location', () => {
    const description = describeError(new ApplicationMistake('Roll is not among the types'));
    expect(description).toMatchObject({ type: 'ApplicationMistake', code: 'APPLICATION' });
    expect(description['message']).toMatch(/^Roll is not/);
    expect(JSON.stringify(description['stack'])).toMatch(/thrown\.test\.ts/);
  });

  test('prints a ConfigError with its location, since an option of an upstream may be refused in a request', () => {
    const description = describeError(new ConfigError('an upstream request has no option proxy'));
    expect(description).toMatchObject({ type: 'ConfigError', code: 'CONFIG' });
    expect(JSON.stringify(description['stack'])).toMatch(/thrown\.test\.ts/);
  });

  test('prints the class and code of causes, without their messages and locations', () => {
    const system = Object.assign(new Error('getaddrinfo ENOTFOUND hunter2'), { code: 'ENOTFOUND' });
    const cause = new Error('hunter2', { cause: system });
    expect(describeError(new ServerError('OVERLOADED', 'busy', { cause }))).toEqual({
      type: 'ServerError',
      code: 'OVERLOADED',
      message: 'busy',
      cause: { type: 'Error', code: undefined, cause: { type: 'Error', code: 'ENOTFOUND' } },
    });
  });

  test('stops at a cycle of causes', () => {
    const error = new Error('hunter2');
    error.cause = error;
    expect(JSON.stringify(describeError(error))).not.toMatch(/hunter2/);
  });

  test.each(['hunter2', 'Hunter', 'A B', `A${'B'.repeat(64)}`, 5])('does not print the code %o', (code) => {
    expect(describeError(Object.assign(new Error(), { code }))['code']).toBeUndefined();
  });

  test('does not mistake a line of a message for a location', () => {
    const error = new Error('x\n    at https://h/?key=hunter2');
    expect(JSON.stringify(describeError(error))).not.toMatch(/hunter2/);
    expect(JSON.stringify(describeError(error))).toMatch(/thrown\.test\.ts/);
    error.message = 'changed';
    expect(JSON.stringify(describeError(error))).not.toMatch(/hunter2/);
  });

  test.each([
    Object.assign(new Error('hunter2'), { constructor: undefined }),
    Object.assign(new Error('hunter2'), { stack: 5 }),
    Object.assign(new Error('hunter2'), { message: { hunter2: true } }),
    Object.setPrototypeOf(
      new Error('hunter2'),
      Object.create(Error.prototype, { constructor: { value: 'hunter2' } }),
    ),
  ])('survives a malformed foreign error', (error) => {
    expect(JSON.stringify(describeError(error))).not.toMatch(/hunter2/);
  });

  test.each([['a string with hunter2'], [null], [undefined], [{ hunter2: true }]])(
    'survives a thrown %o',
    (thrown) => {
      expect(JSON.stringify(describeError(thrown))).not.toMatch(/hunter2/);
    },
  );

  test.each(HOSTILE_THROWN)(
    'handles %s without throwing, and prints neither a secret nor a long line',
    (_caseName, make) => {
      const thrown = make();
      for (const withMessages of [false, true]) {
        const printed = JSON.stringify(describeError(thrown, withMessages));
        expect(printed.length).toBeLessThan(100_000);
        expect(printed).toMatch(/^\{"type":"\w+"/);
        if (!withMessages) expect(printed).not.toContain('hunter2');
      }
      for (const read of [classOf, codeOf, messageOf, findPlaces]) expect(() => read(thrown)).not.toThrow();
      expect([true, false]).toContain(isInstance(thrown, Error));
    },
  );

  test('truncates a long message, and adds its full length', () => {
    expect(messageOf(new Error('x'.repeat(8192)))).toBe('x'.repeat(8192));
    expect(messageOf(new Error('x'.repeat(8193)))).toBe(`${'x'.repeat(8192)}… (8193 characters)`);
  });
});
