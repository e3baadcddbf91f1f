import { spawnSync } from 'node:child_process';
import { beforeAll, describe, expect, test } from 'vitest';
import { canRun, INIT } from './init.ts';

/** User id that no other process has, since the kernel counts all tasks of a user. */
const USER = '54321';
const isRoot = canRun && process.getuid?.() === 0;

/** Runs a role. @returns a function that returns the value of a field that the role has printed */
function run(role: string): (name: string) => string | undefined {
  const { status, stdout, stderr } = spawnSync(INIT, [role, USER], { encoding: 'utf8' });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return (name) => new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*$`, 'm').exec(stdout)?.[1];
}

describe.runIf(isRoot)("the server's process", () => {
  let field: (name: string) => string | undefined;

  beforeAll(() => {
    field = run('server');
  });

  test("has no rights, and can't regain any", () => {
    for (const ids of ['Uid', 'Gid']) expect(field(ids)?.split('\t')).toEqual(Array(4).fill(USER));
    expect(field('Groups')).toBe('');
    for (const set of ['CapPrm', 'CapEff', 'CapInh', 'CapBnd', 'CapAmb']) {
      expect(field(set)).toBe('0000000000000000');
    }
    expect(field('NoNewPrivs')).toBe('1');
  });

  test('can open inet and unix sockets, but not vsock sockets, even with an x32 call', () => {
    const sockets = ['vsock', 'x32', 'inet', 'unix'].map((name) => field(name));
    const refused = 'Address family not supported by protocol';
    expect(sockets).toEqual([refused, refused, 'opened', 'opened']);
    // Seccomp is in filter mode (2), with one filter.
    expect([field('Seccomp'), field('Seccomp_filters')]).toEqual(['2', '1']);
  });

  test('can start threads up to a limit, but no process', () => {
    const starts = ['fork', 'vfork', 'clone', 'library'].map((name) => field(name));
    expect(starts).toEqual(Array(4).fill('Operation not permitted'));
    // The C library then uses clone, whose flags the filter checks.
    expect(field('clone3')).toBe('Function not implemented');
    expect([field('thread'), field('tasks')]).toEqual(['started', '64 of 64']);
  });
});

test.runIf(isRoot)('a process of init that drops root can start neither a process nor a thread', () => {
  const field = run('helper');
  const refused = 'Resource temporarily unavailable';
  expect([field('process'), field('thread')]).toEqual([refused, refused]);
});
