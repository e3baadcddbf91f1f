/** Conditions under which stop_enclave ends the enclave of a unit that systemd stops. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { Parent } from './fakes.ts';

const UNIT = 'unit sui-enclave@weather.service';
const STOP = ['--name', 'weather', '--if-unit-dead'];

let parent: Parent;
let rights: string[];

beforeEach(() => {
  parent = new Parent();
  parent.setEnclave({ EnclaveName: 'weather' });
  mkdirSync(join(parent.dir, 'state/relay'), { recursive: true });
  rights = [];
  onTestFinished(() => void vi.restoreAllMocks());
  vi.spyOn(process, 'setgroups').mockImplementation((groups) => void rights.push(`groups ${groups}`));
  vi.spyOn(process, 'setgid').mockImplementation((group) => void rights.push(`group ${group}`));
  vi.spyOn(process, 'setuid').mockImplementation((user) => void rights.push(`user ${user}`));
});

const hasTerminated = () => parent.calls('nitro-cli').some((call) => call.includes('terminate-enclave'));

describe('stop_enclave --if-unit-dead', () => {
  test.each([
    ['is stopped', 'inactive dead success 0'],
    ['systemd no longer restarts', 'failed failed start-limit-hit 0'],
    ['has failed', 'failed failed signal '],
  ])('ends the enclave of a unit that %s, with the rights of its user', async (_case, state) => {
    parent.set(UNIT, state);
    expect(await parent.run('stop_enclave.ts', STOP)).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^i-1-enc1: terminated\n/),
    });
    expect(hasTerminated()).toBe(true);
    expect(rights).toEqual(['groups ne', 'group sui-enclave', 'user sui-enclave']);
  });

  test.each([
    ['runs', 'active running success 0'],
    ['is about to start again', 'activating auto-restart signal 0'],
    ['is being started again', 'inactive dead signal 77'],
    ['has failed and is being started', 'failed failed signal 77'],
    ['is starting', 'activating start success 77'],
    ['is stopping', 'deactivating stop-sigterm success 77'],
  ])('ends nothing while the unit %s', async (_case, state) => {
    parent.set(UNIT, state);
    expect(await parent.run('stop_enclave.ts', STOP)).toMatchObject({
      status: 0,
      stdout: 'the unit of weather is not stopped: its enclave continues\n',
    });
    expect([hasTerminated(), rights]).toEqual([false, []]);
  });

  test('ends nothing if systemd does not answer', async () => {
    parent.set('systemctl fails', 'show');
    expect(await parent.run('stop_enclave.ts', STOP)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^PROGRAM_FAILED: /),
    });
    expect([hasTerminated(), rights]).toEqual([false, []]);
  });
});
