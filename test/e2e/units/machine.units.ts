/** Checks that the machine for tests of units boots, and changes nothing on this machine. */
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { findObstacle, Machine } from './machine.ts';

test.skipIf(findObstacle() !== undefined)(
  'the machine boots twice on the same files, and leaves nothing on this machine',
  async () => {
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
    // The started machine can't reach the settings and the vsock of this machine.
    expect(machine.run('sh', '-c', 'echo 1 >/proc/sys/kernel/sysrq').status).not.toBe(0);
    expect(machine.run('ls', '/dev/vsock', '/dev/kmsg').stdout).toBe('');
    const firstBoot = machine.mustRun('cat', '/proc/sys/kernel/random/boot_id', '/run/systemd/container');
    await machine.powerOff();
    await machine.boot();
    expect(machine.mustRun('cat', '/etc/kept')).toBe('by the overlay');
    expect(firstBoot).toMatch(/namespaces/);
    await close();
    expect(existsSync('/etc/kept')).toBe(false);
    expect(readFileSync('/proc/self/mountinfo', 'utf8')).toBe(before);
    expect(globSync(`/sys/fs/cgroup/{,unified/}${groupName}`)).toEqual([]);
  },
);
