/**
 * Walks through the runbooks of deploy/observe/RUNBOOKS.md: causes the condition of each alert, runs the
 * commands of its runbook, and checks that the condition clears.
 */
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findObstacle, until } from './machine.ts';
import { ParentMachine, PROGRAM, VSOCK_NET } from './parent_machine.ts';
import { installUnit, Walk } from './walk.ts';

const UNIT = 'sui-enclave@blue.service';
const END = 'sui-enclave-end@blue.service';

let machine: ParentMachine;
let image: string;
let walk: Walk;

const isExposed = (name = 'blue') => machine.isActive(`sui-enclave-expose@${name}.service`) === 'active';

/** Installs the keeper as its page says. Its node does not answer. */
function installKeeper(): void {
  const id = (digit: string) => `0x${digit.repeat(64)}`;
  const secret = new Uint8Array(32).fill(7);
  const keystore = JSON.stringify([Buffer.from([0, ...secret]).toString('base64')]);
  const address = Ed25519Keypair.fromSecretKey(secret).toSuiAddress();
  const registers = [0, 1, 2].map((index) => `  pcr${index}: "${'ab'.repeat(48)}"\n`).join('');
  machine.write(
    'etc/sui-enclave/keeper.yaml',
    `network: testnet\nnode: http://127.0.0.1:9\npackage: "${id('a')}"\nconfig: "${id('b')}"\nregistrar: "${id('c')}"\nregisters:\n${registers}enclaves: [http://127.0.0.1:3000]\ngas_a_day: 1000000000\nmetrics_port: 9112\n`,
  );
  machine.write('etc/sui-enclave/keeper.env', `KEEPER_ADDRESS=${address}\n`);
  machine.write('etc/sui-enclave/sui.keystore', keystore, 0o600);
  installUnit(machine, 'src/cli/keeper/sui-enclave-keep.service');
}

/** Installs the watcher as its page says, with metrics. */
function installWatcher(): void {
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });
  machine.write('etc/sui-enclave/provision.env', 'ENCLAVE_URL=http://127.0.0.1:3000\n');
  machine.write('etc/sui-enclave/secrets.json', '{"API_KEY":"hunter2"}', 0o600);
  machine.write('etc/sui-enclave/provisioner.pem', String(pem), 0o600);
  machine.mustRun('cp', image.replace(/eif$/, 'pcrs'), '/etc/sui-enclave/nitro.pcrs');
  installUnit(machine, 'src/cli/provision/sui-enclave-provision.service', ' --watch --metrics-port 9111');
}

describe.skipIf(findObstacle() !== undefined)('the runbooks of a host', () => {
  beforeAll(async () => {
    machine = new ParentMachine();
    walk = new Walk(machine, { keeper: 9112, provision: 9111, relay: 9110, enclave: 9101 }, { NAME: 'blue' });
    await machine.boot();
    machine.prepare();
    machine.write('etc/sui-enclave/relay.env', 'RELAY_OPTIONS=--metrics 127.0.0.1:9110\n');
    machine.write('var/tmp/secrets.json', '{"API_KEY":"hunter2"}', 0o600);
    image = machine.build('image', 'endpoints: []\nsecrets: [API_KEY]\n', 'METRICS_PORT=9100\n').eif;
    const options = ['--metrics-port', '9101', '--secrets', '/var/tmp/secrets.json', '--start'];
    expect(machine.install('blue', image, 3000, ...options)).toMatchObject({ status: 0, stderr: '' });
    await machine.waitForKey(3000);
    await until('its ports are open', isExposed);
  });
  afterAll(() => machine.close());

  test('find no fault on a healthy host', () => {
    const { status, stdout } = machine.run(...PROGRAM, 'host_status', '--json');
    expect([status, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ ok: true, faults: [] })]);
    const [blue] = JSON.parse(stdout).enclaves;
    expect(blue).toMatchObject({
      name: 'blue',
      lastReport: 'boot',
      isForwarded: true,
      server: { isReady: true },
    });
    expect(blue.running[0].image.pcr0).toBe(blue.installedImage.pcr0);
    expect(Math.abs(Date.parse(blue.unit.since) - Date.now())).toBeLessThan(120_000);
  });

  /** Kills the process that watches the enclave. The unit's `Restart=no` keeps systemd from restarting it. */
  async function loseWatcher(): Promise<void> {
    machine.mustRun('systemctl', 'kill', '--kill-who=main', '--signal=KILL', UNIT);
    await until('the unit has failed', () => machine.isActive(UNIT) === 'failed');
  }

  test('EnclaveSilent: watch an enclave again that its unit has lost, and keep its key', async () => {
    const key = machine.get(3000);
    machine.write(`etc/systemd/system/${UNIT}.d/once.conf`, '[Service]\nRestart=no\n');
    machine.mustRun('systemctl', 'daemon-reload');
    await loseWatcher();
    expect(walk.runBlock('EnclaveSilent', 0)).toMatch(/^ {2}ENCLAVE_UNWATCHED: /m);
    walk.runBlock('EnclaveSilent', 1);
    await until('its ports are open', isExposed);
    expect([walk.isFiring('EnclaveSilent'), machine.get(3000)]).toEqual([false, key]);
  });

  test('EnclaveSilent: start the unit that was stopped after its process had ended', async () => {
    await loseWatcher();
    machine.mustRun('rm', `/etc/systemd/system/${UNIT}.d/once.conf`);
    machine.mustRun('systemctl', 'daemon-reload');
    machine.mustRun('systemctl', 'stop', UNIT);
    await until('the enclave has ended', () => machine.isActive(END) === 'inactive');
    expect(walk.isFiring('EnclaveSilent')).toBe(true);
    expect(walk.runBlock('EnclaveSilent', 0)).toMatch(/^ {2}ENCLAVE_(STOPPED|FAILED): /m);
    walk.runBlock('EnclaveSilent', 1);
    await walk.awaitClear('EnclaveSilent');
    await until('its ports are open', isExposed);
  });

  test('EnclaveSilent: open the ports of an enclave again, and keep its key', async () => {
    const key = machine.get(3000);
    const conf = machine.path('var/lib/sui-enclave/relay/blue.conf');
    writeFileSync(conf, readFileSync(conf, 'utf8').replace(/^listen .*9101.*\n/m, ''));
    machine.mustRun('systemctl', 'reload', 'sui-enclave-relay.service');
    await walk.awaitFiring('EnclaveSilent');
    expect(walk.runBlock('EnclaveSilent', 0)).toMatch(/^ {2}PORT_CLOSED: /m);
    walk.runBlock('EnclaveSilent', 2);
    await walk.awaitClear('EnclaveSilent');
    expect(machine.get(3000)).toBe(key);
  });

  test('RelayDown: start the relay, and keep the key', async () => {
    const key = machine.get(3000);
    machine.mustRun('systemctl', 'stop', 'sui-enclave-relay.service');
    expect([walk.isFiring('RelayDown'), machine.get(3000)]).toEqual([true, '']);
    expect(walk.runBlock('EnclaveSilent', 0)).toMatch(/^BAD host\n {2}RELAY_DOWN: /);
    walk.runBlock('RelayDown', 0);
    await walk.awaitClear('RelayDown');
    expect(await machine.waitForKey(3000)).toBe(key);
  });

  test('EnclaveSecretsMissing: make the unit pass the secrets again, and keep the key', async () => {
    const settings = machine.path('etc/sui-enclave/blue/settings.env');
    const text = readFileSync(settings, 'utf8');
    writeFileSync(settings, text.replace(/^EXPOSE_OPTIONS=/m, '$&--root /run/nitro_enclaves/.root.pem '));
    const key = machine.get(3000);
    expect(machine.get(3000, 'fault?secrets')).toBe('secrets');
    expect(walk.isFiring('EnclaveSecretsMissing')).toBe(true);
    expect(walk.runBlock('EnclaveSecretsMissing', 0)).toMatch(/^ {2}SECRETS_MISSING: .*: API_KEY$/m);
    expect(walk.runBlock('EnclaveSecretsMissing', 1)).toBe('');
    await walk.awaitClear('EnclaveSecretsMissing');
    expect(machine.get(3000)).toBe(key);
    writeFileSync(settings, text);
  });

  test('EnclaveEnded: find why the enclave ended, while its successor runs', async () => {
    walk.isFiring('EnclaveEnded');
    const key = machine.get(3000);
    const [pid = ''] = machine.mustRun('pgrep', '--full', 'run-enclave.*--enclave-name blue').split('\n');
    machine.mustRun('kill', '-9', pid);
    await machine.waitForKey(3000, (newKey) => newKey !== key);
    await until('its ports are open', isExposed);
    await walk.awaitFiring('EnclaveEnded');
    expect(walk.runBlock('EnclaveEnded', 0)).toMatch(/has ended: it reported no reason[\s\S]*^ok {2}blue/m);
    expect(walk.isFiring('EnclaveEnded')).toBe(false);
    // The rollback to the former image does not affect the running enclave.
    const before = machine.get(3000);
    expect(walk.runBlock('EnclaveEnded', 1, { IMAGE: image })).toMatch(/keeps its image and its key/);
    expect(machine.get(3000)).toBe(before);
  });

  test('EnclaveUncaughtErrors, EnclaveEventsDropped: find the event in the journal of the relay', async () => {
    const key = machine.get(3000);
    const alerts = ['EnclaveUncaughtErrors', 'EnclaveEventsDropped'];
    for (const alert of alerts) expect(walk.isFiring(alert)).toBe(false);
    machine.get(3000, 'fault?uncaught');
    expect(alerts.map((alert) => walk.isFiring(alert))).toEqual([true, false]);
    expect(walk.runBlock('EnclaveUncaughtErrors', 0)).toMatch(
      /blue \{"event":"uncaught",.*"class":"TypeError","place":"main.js:1:2"\}$/m,
    );
    machine.get(3000, 'fault?flood');
    await walk.awaitFiring('EnclaveEventsDropped');
    const log = walk.runBlock('EnclaveEventsDropped', 0);
    expect(log).toMatch(/^ok {2}blue/m);
    expect(log.match(/"code":"OVERLOADED"/g)?.length).toBeGreaterThan(90);
    for (const alert of alerts) await walk.awaitClear(alert);
    expect(machine.get(3000)).toBe(key);
  });

  test('RelayUnknownEnclave: find an enclave that nobody installed, and end it', async () => {
    walk.isFiring('RelayUnknownEnclave');
    const options = ['--enclave-name', 'stray', '--enclave-cid', '99', '--eif-path', image];
    const started = machine.mustRun('env', `VSOCK_NET=${VSOCK_NET}`, 'nitro-cli', 'run-enclave', ...options);
    expect(walk.isFiring('RelayUnknownEnclave')).toBe(true);
    const id = JSON.parse(started).EnclaveID;
    expect(walk.runBlock('RelayUnknownEnclave', 0)).toMatch(
      new RegExp(`not installed here: enclave stray \\(${id}\\)`),
    );
    walk.runBlock('RelayUnknownEnclave', 1, { ID: id });
    expect(walk.isFiring('RelayUnknownEnclave')).toBe(false);
    expect(walk.runBlock('RelayUnknownEnclave', 0)).not.toMatch(/stray/);
  });

  test('KeeperSilent, ProvisionerSilent: start the keeper and the watcher again', async () => {
    installKeeper();
    installWatcher();
    for (const [alert, unit] of [
      ['KeeperSilent', 'sui-enclave-keep'],
      ['ProvisionerSilent', 'sui-enclave-provision'],
    ] as const) {
      machine.mustRun('systemctl', 'start', unit);
      await walk.awaitClear(alert);
      machine.mustRun('systemctl', 'stop', unit);
      expect(walk.isFiring(alert)).toBe(true);
      walk.runBlock(alert, 0);
      await walk.awaitClear(alert);
    }
  });

  test('EnclaveTaskFails: find the code of the failures, and wait until the source answers', async () => {
    const key = machine.get(3000);
    expect(walk.isFiring('EnclaveTaskFails')).toBe(false);
    expect(machine.get(3000, 'source?fails')).toBe('fails');
    await walk.awaitFiring('EnclaveTaskFails');
    const log = walk.runBlock('EnclaveTaskFails', 0);
    expect(log).toMatch(/^ {2}TASK_FAILS: .*the task price has failed in \d+ runs in a row$/m);
    expect(log).toMatch(/blue \{"event":"task",.*"outcome":"failed","code":"PRICE_UNAVAILABLE","ms":\d+\}$/m);
    machine.get(3000, 'source?answers');
    await walk.awaitClear('EnclaveTaskFails');
    expect(walk.runBlock('EnclaveTaskFails', 0)).toMatch(
      /^ok {2}blue\n[\s\S]*blue \{"event":"task",.*"outcome":"done","code":null,"ms":\d+\}$/m,
    );
    expect(machine.get(3000)).toBe(key);
  });

  test('EnclaveTaskFails: replace an enclave whose run does not end', async () => {
    const key = machine.get(3000);
    machine.get(3000, 'source?hangs');
    await walk.awaitFiring('EnclaveTaskFails');
    // From now on, an answer of the source does not help.
    machine.get(3000, 'source?answers');
    expect(walk.runBlock('EnclaveTaskFails', 0)).toMatch(
      /^ {2}TASK_FAILS: .*the task price has not ended, although its time is over$/m,
    );
    expect(walk.isFiring('EnclaveTaskFails')).toBe(true);
    walk.runBlock('Replace an enclave', 2);
    await machine.waitForKey(3000, (newKey) => newKey !== key);
    await until('its ports are open', isExposed);
    await walk.awaitClear('EnclaveTaskFails');
  });

  test('EnclaveClosed: replace the enclave under its name', async () => {
    const key = machine.get(3000);
    machine.get(3000, 'fault?closed');
    // The relay notices the closed port when a caller connects.
    expect([machine.get(3000), machine.get(9101)]).toEqual(['', '']);
    await walk.awaitFiring('EnclaveClosed');
    expect(walk.runBlock('EnclaveClosed', 0)).toMatch(/^ {2}SERVER_SILENT: /m);
    walk.runBlock('Replace an enclave', 2);
    await machine.waitForKey(3000, (newKey) => newKey !== key);
    await until('its ports are open', isExposed);
    await walk.awaitClear('EnclaveClosed');
  });

  test('EnclaveClockUnconfirmed, EnclaveFiguresOld, EnclavePartEnded: replace the enclave without a gap', async () => {
    const alerts = ['EnclaveClockUnconfirmed', 'EnclaveFiguresOld', 'EnclavePartEnded'];
    for (const fault of ['clock', 'figures', 'part']) machine.get(3000, `fault?${fault}`);
    expect(alerts.filter((alert) => walk.isFiring(alert))).toEqual(alerts);
    expect(walk.runBlock('EnclaveClockUnconfirmed', 0)).toMatch(
      /^ {2}CLOCK_DOUBTFUL: [\s\S]*^ {2}parts +the inbound bridge was ended by signal 9$/m,
    );
    // The new enclave gets a port of its own while the old one runs.
    const names = {
      NEW: 'red',
      IMAGE: `${image} --metrics-port 9102 --secrets /var/tmp/secrets.json`,
      PORT: '3001',
    };
    const key = machine.get(3000);
    const installed = walk.runBlock('Replace an enclave', 0, names);
    expect(installed).toMatch(/^red is installed: PCR0 /m);
    await machine.waitForKey(3001);
    await until('its ports are open', () => isExposed('red'));
    expect(machine.get(3000)).toBe(key);
    walk.runBlock('Replace an enclave', 1);
    walk.ports['enclave'] = 9102;
    expect(alerts.filter((alert) => walk.isFiring(alert))).toEqual([]);
    expect(machine.run(...PROGRAM, 'host_status').stdout).toMatch(
      /^ok {2}red\n[\s\S]*^relay: active[^\n]*$/m,
    );
  });
});
