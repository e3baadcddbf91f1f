import { AxiosError } from 'axios';
import { describe, expect, test } from 'vitest';
import { ApplicationMistake, InvalidInput } from '../src/errors.ts';
import { createLog, describeError, type Logger } from '../src/log.ts';

function print(object: object): string {
  let printed = '';
  createLog('info', { write: (line) => (printed += line) }).info(object, 'message');
  return printed;
}

describe('the log', () => {
  test('is one line of JSON with a level and a time that people read', () => {
    expect(JSON.parse(print({ a: 1 }))).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      a: 1,
      msg: 'message',
    });
  });

  test('hides what is named like a secret, at the top and one level down', () => {
    const printed = print({
      token: 'hunter2',
      salt: 'hunter2',
      request: { jwt: 'hunter2', authorization: 'hunter2', API_KEY: 'hunter2' },
      config: { seed: 'hunter2', proof: { a: 'hunter2' } },
    });
    expect(printed).not.toMatch(/hunter2/);
    expect(printed).toMatch(/\[Redacted\]/);
  });

  test('prints our own errors with their message', () => {
    expect(describeError(new InvalidInput('payload is missing'))).toEqual({
      type: 'InvalidInput',
      code: 'INVALID_INPUT',
      message: 'payload is missing',
    });
  });

  test("prints a mistake of the application's with its message and its place", () => {
    const printed = describeError(new ApplicationMistake('Roll is not among the types'));
    expect(printed).toMatchObject({ type: 'ApplicationMistake', code: 'APPLICATION' });
    expect(printed['message']).toMatch(/^Roll is not/);
    expect(JSON.stringify(printed['stack'])).toMatch(/log\.test\.ts/);
  });

  test('prints of a foreign error where it happened, but nothing that it says or holds', () => {
    const error = new AxiosError('GET https://h/?key=hunter2\n    hunter2', 'ECONNREFUSED', {
      url: 'https://h/?key=hunter2',
    } as never);
    error.cause = new Error('hunter2');
    const printed = print({ err: error });
    expect(printed).not.toMatch(/hunter2/);
    expect(printed).toMatch(/AxiosError.*ECONNREFUSED.*log\.test\.ts/);
  });

  test.each([
    ['an error and no text', (log: Logger) => log.error(new Error('hunter2'))],
    ['an error as a member and no text', (log: Logger) => log.error({ err: new Error('hunter2') })],
    ['an error and a text', (log: Logger) => log.error(new Error('hunter2'), 'failed')],
  ])('prints nothing that a foreign error says: %s', (_what, write) => {
    let printed = '';
    write(createLog('info', { write: (line) => (printed += line) }));
    expect(printed).not.toMatch(/hunter2/);
    expect(JSON.parse(printed)).toMatchObject({
      msg: expect.stringMatching(/^(error|failed)$/),
      err: { type: 'Error', stack: expect.arrayContaining([expect.stringMatching(/log\.test\.ts/)]) },
    });
  });

  test('takes no line of a message for a place', () => {
    const error = new Error('x\n    at https://h/?key=hunter2');
    expect(JSON.stringify(describeError(error))).not.toMatch(/hunter2/);
    expect(JSON.stringify(describeError(error))).toMatch(/log\.test\.ts/);
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
  ])('survives a foreign error that is odd', (error) => {
    expect(JSON.stringify(describeError(error))).not.toMatch(/hunter2/);
  });

  test.each([['a text with hunter2'], [null], [undefined], [{ hunter2: true }]])(
    'survives %o thrown',
    (thrown) => {
      expect(JSON.stringify(describeError(thrown))).not.toMatch(/hunter2/);
    },
  );
});
