/**
 * Values that foreign code may throw to harm the code that reads them. Each contains `hunter2` where it must
 * not be printed.
 */
import { ApplicationMistake } from '../../../src/library/errors.ts';
import { ServerError } from '../../../src/service/errors.ts';

const PROPERTIES = [
  'name',
  'message',
  'stack',
  'code',
  'cause',
  'constructor',
  'status',
  'details',
  'toString',
];
const NESTED = 10_000;

function fail(): never {
  throw new Error('hunter2');
}

/** An error whose properties all throw when they are read. */
function withGetters<T extends object>(error: T): T {
  for (const name of [...PROPERTIES, 'toJSON', Symbol.toPrimitive, Symbol.toStringTag]) {
    Object.defineProperty(error, name, { get: fail, configurable: true });
  }
  return error;
}

/** Handler of a proxy whose traps all throw. */
function proxy(target: object): object {
  return new Proxy(target, new Proxy({}, { get: () => fail }));
}

function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

function chain(): Error {
  let error = new Error('hunter2');
  for (let depth = 0; depth < NESTED; depth += 1) error = new Error('hunter2', { cause: error });
  return error;
}

function cycle(): Error {
  const error = new Error('hunter2');
  error.cause = new Error('hunter2', { cause: error });
  return error;
}

const withStack = (stack: unknown) => Object.assign(new Error('hunter2'), { stack });

class Endless extends Error {
  override get cause(): unknown {
    return new Endless('hunter2');
  }
}

export const HOSTILE_THROWN: readonly [what: string, make: () => unknown][] = [
  ['an error whose getters throw', () => withGetters(new Error('hunter2'))],
  ['an error of this project', () => withGetters(new ServerError('OVERLOADED', 'hunter2'))],
  ['a mistake of an application', () => withGetters(new ApplicationMistake('hunter2'))],
  ['an object whose getters throw', () => withGetters({})],
  ['a function', () => fail],
  ['a proxy of an error', () => proxy(new Error('hunter2'))],
  ['a proxy of an error of this project', () => proxy(new ServerError('OVERLOADED', 'hunter2'))],
  ['a proxy of a function', () => proxy(fail)],
  ['a proxy that was revoked', () => revoked(new Error('hunter2'))],
  ['a proxy of a function that was revoked', () => revoked(fail)],
  ['an object without a prototype', () => Object.assign(Object.create(null), { message: 'hunter2' })],
  ['an error whose class has no name', () => new (class extends Error {})('hunter2')],
  [
    'an error whose class has a getter for its name',
    () =>
      new (class extends Error {
        static override get name(): string {
          return fail();
        }
      })('hunter2'),
  ],
  [
    'an error with a class of another kind',
    () => Object.assign(new Error(), { constructor: { name: { text: 'hunter2' } } }),
  ],
  ['an error with a cycle of causes', cycle],
  ['an error with a long chain of causes', chain],
  ['an error with a new cause at each look', () => new Endless('hunter2')],
  [
    'an error with a cause that throws',
    () => new Error('hunter2', { cause: withGetters(new Error('hunter2')) }),
  ],
  ['an error with a cause that was revoked', () => new Error('hunter2', { cause: revoked({}) })],
  ['an error with a huge message', () => new Error('hunter2'.repeat(500_000))],
  ['an error with a huge stack', () => withStack(`hunter2\n${'    at a.ts:1:1\n'.repeat(200_000)}`)],
  ['an error with a huge line in its stack', () => withStack(`hunter2\n    at ${'a'.repeat(4_000_000)}`)],
  ['an error with a stack of another type', () => withStack({ indexOf: fail, slice: fail })],
  ['a symbol', () => Symbol('hunter2')],
  ['a bigint', () => 2n ** 64n],
];
