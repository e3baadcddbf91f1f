/** Tests the unit that writes closed events, under systemd with a real journal. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { findObstacle, Machine, until } from './machine.ts';

const UNIT = 'sui-enclave-events.service';
const SOURCE = fileURLToPath(new URL(`../../../src/cli/logs/${UNIT}`, import.meta.url));
const FILE = 'var/log/sui-enclave/events.jsonl';
/** Unit of a fake relay. As the relay does, it prints each line of an enclave after the enclave's name. */
const RELAY = `[Service]
ExecStart=/bin/sh -c 'while read -r line; do echo "weather $line"; done <>/run/relay'
User=nobody
`;

test.skipIf(findObstacle() !== undefined)(
  'the unit writes each closed event once, even after the unit or the machine has crashed',
  async () => {
    const machine = new Machine();
    onTestFinished(() => machine.close());
    await machine.boot();
    const write = (path: string, text: string) => writeFileSync(machine.path(path), text);
    write(`etc/systemd/system/${UNIT}`, readFileSync(SOURCE, 'utf8'));
    write('etc/systemd/system/sui-enclave-relay.service', RELAY);
    machine.mustRun('useradd', '--system', '--no-create-home', 'sui-enclave-events');
    machine.mustRun('mkdir', '-p', '/var/log/journal');
    machine.mustRun('systemctl', 'restart', 'systemd-journald');
    const start = () => {
      machine.mustRun('sh', '-c', 'mkfifo -m 666 /run/relay; systemctl daemon-reload');
      machine.mustRun('systemctl', 'start', 'sui-enclave-relay');
    };
    const lines = () => {
      const { stdout } = machine.run('cat', join('/', FILE));
      return stdout
        .split('\n')
        .filter(Boolean)
        .map((text) => JSON.parse(text));
    };
    const listening = () => lines().flatMap(({ event, ms }) => (event === 'listening' ? [ms] : []));
    const send = (line: string) => machine.mustRun('sh', '-c', `printf '%s\\n' '${line}' >/run/relay`);
    const emit = (ms: number) => send(`{"event":"listening","time_ms":1,"ms":${ms}}`);

    start();
    emit(1);
    machine.mustRun('systemctl', 'enable', '--now', UNIT);
    send('{"event":"listening","time_ms":1,"ms":2,"body":"a secret"}');
    emit(3);
    await until('two events are written', () => listening().length === 2);
    // A user without the rights of the relay or the enclaves can read the file, but can't write it.
    expect(
      machine.run('setpriv', '--reuid=nobody', '--clear-groups', 'test', '-w', join('/', FILE)).status,
    ).toBe(1);
    expect(
      machine.run('setpriv', '--reuid=nobody', '--clear-groups', 'test', '-r', join('/', FILE)).status,
    ).toBe(0);
    machine.mustRun('systemctl', 'kill', '--signal=KILL', UNIT);
    emit(4);
    machine.mustRun('systemctl', 'restart', UNIT);
    await until('the event from before the restart is written', () => listening().length === 3);
    machine.mustRun('systemctl', 'stop', 'sui-enclave-relay');
    await until('the stop is written', () => lines().some(({ state }) => state === 'stopped'));
    await machine.crash();
    await machine.boot();
    start();
    emit(5);
    await until('the event of the next boot is written', () => listening().includes(5));
    expect(listening()).toEqual([1, 3, 4, 5]);
    expect(lines().filter(({ event }) => event === 'unit')).toEqual(
      expect.arrayContaining([
        { event: 'unit', time_ms: expect.any(Number), unit: 'sui-enclave-relay.service', state: 'started' },
        { event: 'unit', time_ms: expect.any(Number), unit: UNIT, state: 'failed' },
      ]),
    );
    expect(JSON.stringify(lines())).not.toContain('secret');
  },
);
