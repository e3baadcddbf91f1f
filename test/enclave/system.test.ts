import { spawnSync } from 'node:child_process';
import { beforeAll, describe, expect, test } from 'vitest';
import { canRun, INIT } from './init.ts';

describe.runIf(canRun && process.getuid?.() === 0)("the server's process", () => {
  let output: string;
  const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*$`, 'm').exec(output)?.[1];

  beforeAll(() => {
    const { status, stdout, stderr } = spawnSync(INIT, ['server', '1000'], { encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    output = stdout;
  });

  test('has no right, and can regain none', () => {
    for (const ids of ['Uid', 'Gid']) expect(field(ids)?.split('\t')).toEqual(Array(4).fill('1000'));
    expect(field('Groups')).toBe('');
    for (const set of ['CapPrm', 'CapEff', 'CapInh', 'CapBnd', 'CapAmb']) {
      expect(field(set)).toBe('0000000000000000');
    }
    expect(field('NoNewPrivs')).toBe('1');
  });

  test('can open no vsock socket, in either way to call the kernel, and every other', () => {
    const sockets = ['vsock', 'x32', 'inet', 'unix'].map((name) => field(name));
    const refused = 'Address family not supported by protocol';
    expect(sockets).toEqual([refused, refused, 'opened', 'opened']);
    // Filtered, with one filter.
    expect([field('Seccomp'), field('Seccomp_filters')]).toEqual(['2', '1']);
  });
});
