/** The machine in which the units are tested boots, and changes nothing on this machine. */
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { Machine, whyNot } from './machine.ts';

test.skipIf(whyNot() !== undefined)('the machine boots twice on the same files', async () => {
  const machine = new Machine();
  let isOpen = true;
  const close = async () => {
    if (isOpen) await machine.close();
    isOpen = false;
  };
  onTestFinished(close);
  const before = readFileSync('/proc/self/mountinfo', 'utf8');
  const groupName = await machine.groupName();
  await machine.boot();
  expect(machine.mustRun('cat', '/proc/1/comm')).toBe('systemd\n');
  expect(machine.run('systemctl', '--failed', '--quiet').stdout).toBe('');
  writeFileSync(machine.path('etc/kept'), 'by the overlay');
  // This machine's own settings and vsock are out of its reach.
  expect(machine.run('sh', '-c', 'echo 1 >/proc/sys/kernel/sysrq').status).not.toBe(0);
  expect(machine.run('ls', '/dev/vsock', '/dev/kmsg').stdout).toBe('');
  const first = machine.mustRun('cat', '/proc/sys/kernel/random/boot_id', '/run/systemd/container');
  await machine.powerOff();
  await machine.boot();
  expect(machine.mustRun('cat', '/etc/kept')).toBe('by the overlay');
  expect(first).toMatch(/namespaces/);
  await close();
  expect(existsSync('/etc/kept')).toBe(false);
  expect(readFileSync('/proc/self/mountinfo', 'utf8')).toBe(before);
  expect(globSync(`/sys/fs/cgroup/{,unified/}${groupName}`)).toEqual([]);
});
