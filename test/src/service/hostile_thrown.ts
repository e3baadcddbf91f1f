/**
 * Values that foreign code may throw to harm the code that reads them. Each contains `hunter2` in
 * places that must not be printed.
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
const CHAIN_LENGTH = 10_000;

function fail(): never {
  throw new Error('hunter2');
}

/** Replaces the properties of an error by getters that throw, and returns the error. */
function withGetters<T extends object>(error: T): T {
  for (const name of [...PROPERTIES, 'toJSON', Symbol.toPrimitive, Symbol.toStringTag]) {
    Object.defineProperty(error, name, { get: fail, configurable: true });
  }
  return error;
}

/** Creates a proxy whose traps all throw. */
function createProxy(target: object): object {
  return new Proxy(target, new Proxy({}, { get: () => fail }));
}

function createRevokedProxy(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

function createChain(): Error {
  let error = new Error('hunter2');
  for (let depth = 0; depth < CHAIN_LENGTH; depth += 1) error = new Error('hunter2', { cause: error });
  return error;
}

function createCycle(): Error {
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

export const HOSTILE_THROWN: readonly [name: string, make: () => unknown][] = [
  ['an error whose getters throw', () => withGetters(new Error('hunter2'))],
  ['an error of this project', () => withGetters(new ServerError('OVERLOADED', 'hunter2'))],
  ['a mistake of an application', () => withGetters(new ApplicationMistake('hunter2'))],
  ['an object whose getters throw', () => withGetters({})],
  ['a function', () => fail],
  ['a proxy of an error', () => createProxy(new Error('hunter2'))],
  ['a proxy of an error of this project', () => createProxy(new ServerError('OVERLOADED', 'hunter2'))],
  ['a proxy of a function', () => createProxy(fail)],
  ['a proxy that was revoked', () => createRevokedProxy(new Error('hunter2'))],
  ['a proxy of a function that was revoked', () => createRevokedProxy(fail)],
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
    'an error whose class has a name that is not a text',
    () => Object.assign(new Error(), { constructor: { name: { text: 'hunter2' } } }),
  ],
  ['an error with a cycle of causes', createCycle],
  ['an error with a long chain of causes', createChain],
  ['an error with a new cause at each access', () => new Endless('hunter2')],
  [
    'an error with a cause that throws',
    () => new Error('hunter2', { cause: withGetters(new Error('hunter2')) }),
  ],
  [
    'an error with a cause that is a revoked proxy',
    () => new Error('hunter2', { cause: createRevokedProxy({}) }),
  ],
  ['an error with a huge message', () => new Error('hunter2'.repeat(500_000))],
  ['an error with a huge stack', () => withStack(`hunter2\n${'    at a.ts:1:1\n'.repeat(200_000)}`)],
  ['an error with a huge line in its stack', () => withStack(`hunter2\n    at ${'a'.repeat(4_000_000)}`)],
  ['an error with a stack of another type', () => withStack({ indexOf: fail, slice: fail })],
  ['a symbol', () => Symbol('hunter2')],
  ['a bigint', () => 2n ** 64n],
];
