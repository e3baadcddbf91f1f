/**
 * Tests the units of a parent instance under systemd: which programs they start, and after which failures
 * they restart them.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { findObstacle, until } from './machine.ts';
import { ParentMachine, PROGRAM } from './parent_machine.ts';

let machine: ParentMachine;

const host = (...args: string[]) => machine.run(...PROGRAM, 'host', ...args);
/** Runs a script as the relay's user, as an attacker who has taken over the relay could. */
const runAsRelay = (script: string) => machine.run('su', '-s', '/bin/sh', 'sui-enclave-relay', '-c', script);
const isActive = (unit: string) => machine.isActive(unit);
const show = (unit: string, property: string) => machine.show(unit, property);
const readOutput = (unit: string) => machine.readOutput(unit);
/** Returns the key of the enclave behind a port, or an empty text while the enclave does not answer. */
const readKey = (port: number) => machine.get(port);
const waitForKey = (port: number, isNew?: (key: string) => boolean) => machine.waitForKey(port, isNew);

/** Kills the process of a unit that watches its enclave, and waits until another process watches it. */
async function killWatcher(unit: string): Promise<void> {
  const before = show(unit, 'MainPID');
  machine.mustRun('systemctl', 'kill', '--kill-who=main', '--signal=KILL', unit);
  // The unit stays active until systemd notices that the process has ended.
  await until(
    'another process watches the enclave',
    () => ![before, '0'].includes(show(unit, 'MainPID')) && isActive(unit) === 'active',
  );
}

/** Script that creates links, a FIFO and folders in an older version's folders, as the relay's user could. */
const LINKS = `set -e
cd /var/lib/sui-enclave
ln -s /var/tmp/victim relay/green.conf.new
mkdir -p relay/next.conf/deep
mkfifo relay/fifo
ln -s /etc green/link`;

const UNITS = 'etc/systemd/system';
const TEMPLATES = ['sui-enclave@.service', 'sui-enclave-expose@.service', 'sui-enclave-end@.service'];

const edit = (path: string, change: (text: string) => string) =>
  writeFileSync(machine.path(path), change(readFileSync(machine.path(path), 'utf8')));

/** Changes the units to those of a version that had the program at another path in the clone. */
function useOldProgramPath(): void {
  for (const unit of TEMPLATES.filter((name) => existsSync(machine.path(`${UNITS}/${name}`)))) {
    edit(`${UNITS}/${unit}`, (text) => text.replace(PROGRAM[1], '/opt/sui-enclave/src/commands/main.ts'));
    expect(readFileSync(machine.path(`${UNITS}/${unit}`), 'utf8')).toMatch(/^Exec\w+=.*src\/commands/m);
  }
  machine.mustRun('systemctl', 'daemon-reload');
}

const END_UNITS = ['sui-enclave-end@blue.service', 'sui-enclave-end@green.service'];

/** Changes the units and folders to those of a version in which the relay had no folders of its own. */
function restoreOlderVersion(): void {
  writeFileSync(machine.path('var/tmp/victim'), 'kept', { mode: 0o600 });
  for (const unit of TEMPLATES) {
    edit(`${UNITS}/${unit}`, (text) => text.replace(/SUI_ENCLAVE_RELAY=\S+/, 'SUI_ENCLAVE_RELAY=unit'));
  }
  edit(`${UNITS}/sui-enclave-relay.service`, (text) =>
    text
      .replace(/sui-enclave-relay --in-effect \S+/, 'sui-enclave')
      .replace(/^ReadWritePaths=.*$/m, 'ReadWritePaths=/var/lib/sui-enclave'),
  );
  for (const name of ['blue', 'green']) {
    edit(`etc/tmpfiles.d/sui-enclave-${name}.conf`, (text) =>
      text.replace(/^d \S+-relay.*\n/gm, '').replace(/^(d \S+\/\w+) 2750/gm, '$1 3770'),
    );
    machine.mustRun('systemd-tmpfiles', '--create', `/etc/tmpfiles.d/sui-enclave-${name}.conf`);
  }
  machine.mustRun('rm', '-r', '/var/lib/sui-enclave-relay');
  machine.mustRun('systemctl', 'stop', ...END_UNITS);
  machine.mustRun('rm', `/${UNITS}/sui-enclave-end@.service`);
  edit(`${UNITS}/sui-enclave@.service`, (text) => text.replace(' sui-enclave-end@%i.service', ''));
  machine.mustRun('systemctl', 'daemon-reload');
}

describe.skipIf(findObstacle() !== undefined)('the units of a parent instance', () => {
  beforeAll(async () => {
    machine = new ParentMachine();
    await machine.boot();
    machine.prepare();
  });
  afterAll(() => machine.close());
  beforeEach(({ onTestFailed }) => {
    onTestFailed(() => {
      process.stderr.write(
        machine.run('journalctl', '--quiet', '--lines=60', '--output=short-monotonic').stdout,
      );
    });
  });

  let key: string;
  let first: { eif: string; pcr0: string };

  test('start the relay, the enclave and its port in this order', async () => {
    first = machine.build('first');
    const { status, stderr } = machine.install('blue', first.eif, 3000, '--start');
    expect([status, stderr]).toEqual([0, '']);
    key = await waitForKey(3000);
    const units = [
      'sui-enclave-relay.service',
      'sui-enclave@blue.service',
      'sui-enclave-expose@blue.service',
    ];
    await until('all are active', () => units.every((unit) => isActive(unit) === 'active'));
    const times = units.map((unit) => Number(show(unit, 'ActiveEnterTimestampMonotonic')));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect(readFileSync(machine.path('var/lib/sui-enclave-relay/blue/reports.jsonl'), 'utf8')).toBe(
      '{"event":"boot"}\n',
    );
  });

  test('run as separate users, and only the user of the enclave may start an enclave', () => {
    const groups = (unit: string) =>
      machine.mustRun('grep', '^Groups:', `/proc/${show(unit, 'MainPID')}/status`);
    const ne = machine.mustRun('getent', 'group', 'ne').split(':')[2] ?? '';
    expect(machine.mustRun('ps', '-o', 'user=', '-p', show('sui-enclave-relay.service', 'MainPID'))).toMatch(
      /^sui-enc/,
    );
    expect(groups('sui-enclave@blue.service').split(/\s/)).toContain(ne);
    expect(groups('sui-enclave-relay.service').split(/\s/)).not.toContain(ne);
  });

  test("let the relay's user write its own folders and nothing else", () => {
    const { stdout } = runAsRelay(
      'find /etc /opt /usr/local /run /var/lib ! -type l -writable -path "*sui-enclave*" | sort',
    );
    expect(stdout).toBe(
      ['/blue', '/blue/reports.jsonl', '/relay', '/relay/in_effect']
        .map((path) => `/var/lib/sui-enclave-relay${path}\n`)
        .join(''),
    );
  });

  test('restart an enclave that has ended, and log why it ended', async () => {
    const [pid = ''] = machine.mustRun('pgrep', '--full', 'run-enclave.*--enclave-name blue').split('\n');
    machine.mustRun('kill', '-9', pid);
    key = await waitForKey(3000, (newKey) => newKey !== key);
    expect(readOutput('sui-enclave@blue.service')).toMatch(
      /ENCLAVE_ENDED: i-1-enc\w+ has ended: it reported no reason/,
    );
    await until('its port is opened again', () => isActive('sui-enclave-expose@blue.service') === 'active');
  });

  test('watch the same enclave again after its watching process was killed', async () => {
    const unit = 'sui-enclave@blue.service';
    await killWatcher(unit);
    expect(await waitForKey(3000)).toBe(key);
    expect(readOutput(unit)).toMatch(/runs already as CID \d+: watching it\n$/);
  });

  test('end the enclave if its unit is stopped while systemd waits to restart it', async () => {
    const unit = 'sui-enclave@blue.service';
    const end = 'sui-enclave-end@blue.service';
    // The restart above has stopped this unit too.
    expect(readOutput(end)).toMatch(/the unit of blue is not stopped: its enclave continues\n/);
    machine.write(`${UNITS}/${unit}.d/restart.conf`, '[Service]\nRestartSec=60s\n');
    machine.mustRun('systemctl', 'daemon-reload');
    await until('the unit that ends the enclave is active', () => isActive(end) === 'active');
    machine.mustRun('systemctl', 'kill', '--kill-who=main', '--signal=KILL', unit);
    await until('systemd waits', () => show(unit, 'SubState') === 'auto-restart');
    expect(readKey(3000)).toBe(key);
    machine.mustRun('systemctl', 'stop', unit);
    await until('the enclave has ended', () => isActive(end) === 'inactive');
    expect([readKey(3000), machine.run('nitro-cli', 'describe-enclaves').stdout]).toEqual(['', '[]']);
    expect(readOutput(end)).toMatch(/^i-1-enc\w+: terminated\n/m);
    machine.mustRun('rm', `/${UNITS}/${unit}.d/restart.conf`);
    machine.mustRun('systemctl', 'daemon-reload');
    machine.run('systemctl', 'reset-failed', unit);
    machine.mustRun('systemctl', 'start', unit);
    key = await waitForKey(3000);
    await until('its port is opened again', () => isActive('sui-enclave-expose@blue.service') === 'active');
  });

  test('restart the relay after it was killed, and do not affect an enclave', async () => {
    const unit = 'sui-enclave-relay.service';
    const before = show(unit, 'MainPID');
    const watcher = show('sui-enclave@blue.service', 'MainPID');
    machine.mustRun('systemctl', 'kill', '--kill-who=main', '--signal=KILL', unit);
    await until('the relay runs again', () => ![before, '0'].includes(show(unit, 'MainPID')));
    expect(await waitForKey(3000)).toBe(key);
    machine.mustRun('systemctl', 'restart', unit);
    expect(await waitForKey(3000)).toBe(key);
    expect(show('sui-enclave@blue.service', 'MainPID')).toBe(watcher);
  });

  test('run two enclaves at the same time', async () => {
    const { eif } = machine.build('green', 'endpoints: []\nsecrets: [API_KEY]\n');
    writeFileSync(machine.path('var/tmp/secrets.json'), '{"API_KEY":"hunter2"}', { mode: 0o600 });
    const installed = machine.install('green', eif, 3001, '--secrets', '/var/tmp/secrets.json', '--start');
    expect(installed).toMatchObject({ status: 0, stderr: '' });
    const green = await waitForKey(3001);
    expect(green).not.toBe(key);
    expect(readKey(3000)).toBe(key);
    // The command reads the secrets before it asks the enclave whether it needs them.
    await until('green is exposed', () => isActive('sui-enclave-expose@green.service') === 'active');
    expect(readOutput('sui-enclave-expose@green.service')).toMatch(/The enclave has its secrets/);
    expect(
      machine.run('su', '-s', '/bin/sh', 'sui-enclave', '-c', 'cat /etc/sui-enclave/green/secrets.json')
        .status,
    ).not.toBe(0);
    const cids = ['blue', 'green'].map(
      (name) => readFileSync(machine.path(`var/lib/sui-enclave/relay/${name}.conf`), 'utf8').split('\n')[0],
    );
    expect(new Set(cids).size).toBe(2);
  });

  test('keep the running enclave when another image is installed, and start that image the next time', async () => {
    const { eif, pcr0 } = machine.build('second', 'endpoints: [a.example]\nsecrets: []\n');
    const { status, stdout } = host('upgrade', 'blue', '--eif', eif);
    expect([status, stdout]).toEqual([
      0,
      expect.stringMatching(new RegExp(`runs PCR0 ${pcr0}\\.\nThe enclave that runs keeps`)),
    ]);
    machine.mustRun('systemctl', 'daemon-reload');
    await killWatcher('sui-enclave@blue.service');
    expect(await waitForKey(3000)).toBe(key);
    machine.mustRun('systemctl', 'restart', 'sui-enclave@blue.service');
    key = await waitForKey(3000, (newKey) => newKey !== key);
    expect(readOutput('sui-enclave@blue.service')).toMatch(new RegExp(`PCR0 ${pcr0}\n$`));
  });

  test('move the files of an older version, restart its relay, and keep the running enclave', async () => {
    restoreOlderVersion();
    machine.run('systemctl', 'reset-failed', 'sui-enclave@green.service');
    machine.mustRun('systemctl', 'restart', 'sui-enclave-relay.service', 'sui-enclave@green.service');
    await waitForKey(3001);
    await until('green is exposed', () => isActive('sui-enclave-expose@green.service') === 'active');
    expect(runAsRelay(LINKS).status).toBe(0);
    const green = readKey(3001);
    const relay = show('sui-enclave-relay.service', 'MainPID');
    const watcher = show('sui-enclave@green.service', 'MainPID');
    useOldProgramPath();
    const { status, stdout } = host('upgrade', 'blue', '--eif', '/var/tmp/second/nitro.eif');
    expect(machine.run('grep', '-r', 'src/commands', `/${UNITS}`).stdout).toBe('');
    expect([status, stdout]).toEqual([0, expect.stringMatching(/^The relay was restarted, /m)]);
    expect(show('sui-enclave-relay.service', 'MainPID')).not.toBe(relay);
    expect([await waitForKey(3000), await waitForKey(3001)]).toEqual([key, green]);
    expect(END_UNITS.map(isActive)).toEqual(['active', 'active']);
    expect(show('sui-enclave@green.service', 'MainPID')).toBe(watcher);
    const relayFiles = machine.mustRun('find', '/var/lib/sui-enclave', '-user', 'sui-enclave-relay');
    expect(relayFiles).toBe('');
    expect(runAsRelay('find /var/lib/sui-enclave ! -type l -writable').stdout).toBe('');
    expect(machine.mustRun('cat', '/var/lib/sui-enclave-relay/green/reports.jsonl')).toMatch(
      /^\{"event":"boot"\}\n/,
    );
    expect(machine.mustRun('cat', '/var/tmp/victim')).toBe('kept');
    // The next starts use the new units.
    machine.mustRun('systemctl', 'restart', 'sui-enclave@green.service');
    await waitForKey(3001, (newKey) => newKey !== green);
    expect(host('upgrade', 'blue', '--eif', '/var/tmp/second/nitro.eif').stdout).not.toMatch(/restarted/);
  });

  test.each([
    ['FIFOs', 'rm -f $file && mkfifo $file'],
    ['folders', 'rm -f $file && mkdir $file'],
    ['links', 'rm -rf $file && ln -s /var/tmp/victim $file'],
  ])(
    'start and stop an enclave although its relay was taken over and put %s in place of reports',
    async (_kind, script) => {
      const unit = 'sui-enclave@green.service';
      machine.run('systemctl', 'reset-failed', unit);
      const file = '/var/lib/sui-enclave-relay/green/reports.jsonl';
      expect(runAsRelay(script.replaceAll('$file', file)).status).toBe(0);
      const before = readKey(3001);
      const count = () => readOutput(unit).split(`has ended: unknown: ${file} `).length;
      const startCount = count();
      const [pid = ''] = machine.mustRun('pgrep', '--full', 'run-enclave.*--enclave-name green').split('\n');
      machine.mustRun('kill', '-9', pid);
      const key = await waitForKey(3001, (newKey) => newKey !== before);
      expect(count()).toBe(startCount + 1);
      machine.mustRun('systemctl', 'stop', unit);
      expect([isActive(unit), readKey(3001)]).toEqual(['inactive', '']);
      machine.mustRun('systemctl', 'start', unit);
      await waitForKey(3001, (newKey) => newKey !== key);
      expect(machine.mustRun('cat', '/var/tmp/victim')).toBe('kept');
    },
  );

  test('start again when the machine reboots', async () => {
    const before = [key, readKey(3001)];
    await machine.crash();
    await machine.boot();
    const keys = [await waitForKey(3000), await waitForKey(3001)];
    expect(keys.filter((earlierKey) => before.includes(earlierKey))).toEqual([]);
    key = keys[0] ?? '';
  });

  test('stop restarting an image that ends immediately, and log why it ends', async () => {
    expect(machine.install('broken', first.eif, 3002).status).toBe(0);
    machine.run('systemctl', 'start', 'sui-enclave@broken.service');
    const unit = 'sui-enclave@broken.service';
    const log = () => machine.run('journalctl', '--quiet', '--output=cat', '--unit', unit).stdout;
    await until('systemd gives up', () => /Start request repeated too quickly/.test(log()), 45_000);
    const starts = readOutput(unit).match(/^NITRO_FAILED: E36/gm) ?? [];
    // systemd 252 counts a restart twice for the unit that is bound to this one.
    expect([starts.length > 1, starts.length <= 4]).toEqual([true, true]);
    expect(readOutput(unit)).toMatch(/The enclave reported: the server ended/);
    expect(readKey(3000)).toBe(key);
  });

  test('end an enclave only on a command to stop it', async () => {
    expect(host('remove', 'blue')).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^WRONG_STATE: blue runs: give --stop/),
    });
    expect(readKey(3000)).toBe(key);
    machine.mustRun('systemctl', 'stop', 'sui-enclave@blue.service');
    expect(readOutput('sui-enclave@blue.service')).toMatch(/was terminated\n$/);
    expect([readKey(3000), isActive('sui-enclave@blue.service')]).toEqual(['', 'inactive']);
  });

  test('leave nothing behind when they are removed', () => {
    for (const args of [['blue'], ['broken'], ['green', '--stop']]) {
      expect(host('remove', ...args)).toMatchObject({ status: 0, stderr: '' });
    }
    const folders = ['/etc', '/usr/local/lib', '/var/lib', '/run'];
    const paths = machine.run('find', ...folders, '-maxdepth', '3', '-name', '*sui-enclave*').stdout;
    const isLeftover = (path: string) => path !== '' && !/\.service\.d$|^\/run\/systemd\//.test(path);
    expect(paths.split('\n').filter(isLeftover)).toEqual([]);
    expect(machine.run('getent', 'passwd', 'sui-enclave', 'sui-enclave-relay').stdout).toBe('');
    expect(machine.run('pgrep', '--full', 'run-enclave').stdout).toBe('');
    expect(existsSync(machine.path('var/lib/sui-enclave'))).toBe(false);
  });
});
