/**
 * Tests SECURITY.md's statements about the relay's user: the power of this user over the rest of a parent
 * instance after the relay was taken over. The tests need root, for the two users of the units; `make
 * test-units` tests the real users.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { measureImage } from '../../../../src/cli/image/eif/measure.ts';
import { readEif } from '../../../../src/cli/image/eif/read.ts';
import { recordImage } from '../../../../src/cli/parent/foreground.ts';
import type { Host } from '../../../../src/cli/parent/host.ts';
import { install } from '../../../../src/cli/parent/host_install.ts';
import { remove } from '../../../../src/cli/parent/host_remove.ts';
import { upgrade } from '../../../../src/cli/parent/host_upgrade.ts';
import { readConf, writeConf } from '../../../../src/cli/parent/relay.ts';
import { lastEnd } from '../../../../src/cli/parent/reports.ts';
import { formatPcrs } from '../../../../src/library/attestation/image.ts';
import { Parent } from './fakes.ts';

const isRoot = process.getuid?.() === 0;
if (!isRoot) {
  process.stdout.write('Skipped: what the relay can do as its own user (relay_user.test.ts needs root)\n');
}

/** Ids that no user and no group of this machine has. */
const [ENCLAVES, RELAY, GROUP] = [61_001, 61_002, 61_000];
const END = '{"event":"end","reason":"the server ended"}\n';

let parent: Parent;
let host: Host;
let root: string;
let eif: string;
/** A file that belongs to root alone. */
let victim: string;

const state = (...path: string[]) => join(root, 'var/lib/sui-enclave', ...path);
const output = (...path: string[]) => join(root, 'var/lib/sui-enclave-relay', ...path);
/** Returns the environment that the units set. */
const env = () => ({
  ...parent.env,
  SUI_ENCLAVE_STATE: state(),
  SUI_ENCLAVE_RELAY: output(),
});

/** Runs a shell script as a user of the units. */
function runAs(user: number, script: string) {
  const args = ['--reuid', String(user), '--regid', String(GROUP), '--clear-groups', 'sh', '-c', script];
  return spawnSync('setpriv', args, { encoding: 'utf8', cwd: root, timeout: 20_000 });
}

/** Runs a script as an attacker who has taken the relay over. @throws if a line of the script fails */
function attack(script: string): void {
  const { status, stderr } = runAs(RELAY, `set -e\n${script}`);
  expect([status, stderr]).toEqual([0, '']);
}

/** Makes a file as the unit of the enclave would. */
function createAsEnclaveUnit(path: string, make: (path: string) => void): void {
  make(path);
  spawnSync('chown', ['-h', `${ENCLAVES}:${GROUP}`, path]);
}

/** Turns the install into that of an older version, whose relay can write to the folders of others. */
function makeOlder(): void {
  spawnSync('rm', ['-r', output()]);
  for (const folder of ['relay', 'weather']) chmodSync(state(folder), 0o3770);
}

beforeEach(() => {
  if (!isRoot) return;
  parent = new Parent();
  chmodSync(parent.dir, 0o755);
  root = join(parent.dir, 'root');
  mkdirSync(root);
  host = { root, env: parent.env, program: ['/usr/bin/node', '/opt/cli/bin.cjs'] };
  parent.set('owner of root', `0:${GROUP}`);
  parent.set('owner of sui-enclave', `${ENCLAVES}:${GROUP}`);
  parent.set('owner of sui-enclave-relay', `${RELAY}:${GROUP}`);
  eif = parent.makeImage();
  rmSync(join(parent.dir, 'relay'));
  writeFileSync(join(parent.dir, 'relay'), 'a relay with --in-effect');
  writeFileSync(join(parent.dir, 'x.pcrs'), formatPcrs(measureImage(readEif(readFileSync(eif)))));
  victim = join(parent.dir, 'victim');
  writeFileSync(victim, 'kept', { mode: 0o600 });
  install(host, 'weather', { eif, cpus: 2, port: 3000 });
});

const CONF = { cid: 16, upstreams: [], listens: [] };
/** Writes the files that a start of the enclave leaves in the folders of the state. */
function run(): void {
  createAsEnclaveUnit(state('relay/weather.conf'), () => writeConf(env(), 'weather', CONF));
  createAsEnclaveUnit(state('weather/image.eif'), () => recordImage(state('weather'), eif));
  createAsEnclaveUnit(state('relay/changed'), (path) => writeFileSync(path, '', { mode: 0o640 }));
}

describe.skipIf(!isRoot)("the relay's user", () => {
  test('can write its own two folders and nothing else, and read its configuration', () => {
    run();
    const { stdout } = runAs(RELAY, 'find . ! -type l -writable | sort');
    expect(stdout.trim().split('\n')).toEqual(
      ['relay', 'weather'].map((name) => `./var/lib/sui-enclave-relay/${name}`),
    );
    expect(runAs(RELAY, 'cat var/lib/sui-enclave/relay/weather.conf').stdout).toBe('cid 16\n');
    // The user can neither replace its own folders, nor put files into the folders of others or above them.
    for (const path of ['relay/x', 'weather/x', 'x', '../x', '../sui-enclave-relay/x']) {
      for (const make of ['mkdir', 'mkfifo', 'touch', 'ln -s /etc']) {
        expect(runAs(RELAY, `${make} var/lib/sui-enclave/${path}`).status, `${make} ${path}`).not.toBe(0);
      }
    }
    expect(runAs(RELAY, 'mv var/lib/sui-enclave-relay/weather var/lib/sui-enclave-relay/x').status).not.toBe(
      0,
    );
  });

  test.each([
    ['a FIFO', 'mkfifo $file'],
    ['a link', 'ln -s $victim $file'],
    ['a folder with links', 'mkdir $file; ln -s $victim $file/reports.jsonl'],
    ['a file without end', 'truncate -s 4T $file'],
    ['a file that nobody may read', ': >$file; chmod 0 $file'],
  ])('cannot block a start, an upgrade or a removal by %s', (_kind, script) => {
    const folder = 'var/lib/sui-enclave-relay';
    for (const file of [`${folder}/weather/reports.jsonl`, `${folder}/relay/in_effect`]) {
      attack(script.replaceAll('$file', file).replaceAll('$victim', victim));
    }
    run();
    expect(readConf(env(), 'weather')).toEqual(CONF);
    // Root can read any file, so the unreadable kind is an empty file here.
    expect(lastEnd(output('weather')) ?? 'unknown: ').toMatch(/^unknown: /);
    upgrade(host, 'weather', eif);
    remove(host, 'weather', false);
    expect([existsSync(state()), existsSync(output()), readFileSync(victim, 'utf8')]).toEqual([
      false,
      false,
      'kept',
    ]);
  });

  test('cannot make a removal follow its links', () => {
    install(host, 'green', { eif, cpus: 2, port: 3001 });
    mkdirSync(join(parent.dir, 'others'));
    writeFileSync(join(parent.dir, 'others/file'), 'kept');
    attack(
      `cd var/lib/sui-enclave-relay/green; mkdir -p a/b; ln -s ${parent.dir}/others a/b/c; ln -s ${victim} d`,
    );
    // The links are swapped as often as possible while the command runs.
    const swap = 'while :; do mv a/b/c e; mv e a/b/c; done';
    const pid = runAs(RELAY, `cd var/lib/sui-enclave-relay/green; (${swap}) >/dev/null 2>&1 & echo $!`);
    try {
      remove(host, 'green', false);
    } finally {
      process.kill(Number(pid.stdout), 'SIGKILL');
    }
    expect(readFileSync(join(parent.dir, 'others/file'), 'utf8')).toBe('kept');
    expect(readFileSync(victim, 'utf8')).toBe('kept');
  });
});

describe.skipIf(!isRoot)(
  'host upgrade of an install whose relay could write to the folders of others',
  () => {
    /** Writes the files that a running enclave and relay of the older version leave. */
    function runOlder(): void {
      makeOlder();
      run();
      attack(`cd var/lib/sui-enclave
printf '%s' '${END}' >weather/reports.jsonl
echo older >weather/reports.jsonl.old
echo weather >relay/in_effect`);
      parent.set('active', 'active\n');
    }
    const restarts = () => parent.calls('systemctl').filter((call) => / restart /.test(call));

    test('moves the reports, keeps the configuration, and restarts the relay once', () => {
      runOlder();
      const conf = readFileSync(state('relay/weather.conf'), 'utf8');
      const image = readlinkSync(state('weather/image.eif'));
      expect(upgrade(host, 'weather', eif)).toMatchObject({ isRelayRestarted: true });
      expect(lastEnd(output('weather'))).toBe('the server ended');
      expect(readFileSync(output('weather/reports.jsonl.old'), 'utf8')).toBe('older\n');
      expect([
        readFileSync(state('relay/weather.conf'), 'utf8'),
        readlinkSync(state('weather/image.eif')),
      ]).toEqual([conf, image]);
      expect([readdirSync(state('relay')), readdirSync(state('weather'))]).toEqual([
        ['changed', 'weather.conf'],
        ['image.eif'],
      ]);
      expect(restarts()).toEqual(['systemctl restart sui-enclave-relay.service']);
      // The new relay writes this file when it starts.
      attack('echo weather >var/lib/sui-enclave-relay/relay/in_effect');
      expect(upgrade(host, 'weather', eif)).toMatchObject({ isRelayRestarted: false });
      expect(restarts().length).toBe(1);
    });

    test('is finished by a second run, after an interruption at any point', () => {
      // The first run is interrupted after each program that it starts.
      const programs = ['systemd-sysusers', 'systemd-tmpfiles', 'systemctl'] as const;
      runOlder();
      for (const program of programs) {
        parent.set(`${program} is interrupted`, '1');
        expect(() => upgrade(host, 'weather', eif)).toThrow(/failed: interrupted/);
        parent.set(`${program} is interrupted`, '');
      }
      expect(upgrade(host, 'weather', eif)).toMatchObject({ isRelayRestarted: true });
      expect(lastEnd(output('weather'))).toBe('the server ended');
      expect(runAs(RELAY, 'find . ! -type l -writable').stdout).not.toMatch(/sui-enclave\//);
    });

    test('keeps older reports beside the reports of the new relay', () => {
      runOlder();
      parent.set('systemctl is interrupted', '1');
      expect(() => upgrade(host, 'weather', eif)).toThrow(/failed: interrupted/);
      parent.set('systemctl is interrupted', '');
      // Another report appears after the first run was interrupted.
      chmodSync(state('weather'), 0o3770);
      attack(`echo '{}' >var/lib/sui-enclave/weather/reports.jsonl`);
      upgrade(host, 'weather', eif);
      expect(lastEnd(output('weather'))).toBe('the server ended');
      expect(readdirSync(output('weather')).filter((file) => /^reports\.jsonl\.\d+$/.test(file)).length).toBe(
        1,
      );
    });

    test("removes all other files that the relay's user left in those folders, without opening or following them", () => {
      runOlder();
      mkdirSync(join(parent.dir, 'others'));
      writeFileSync(join(parent.dir, 'others/file'), 'kept');
      attack(`cd var/lib/sui-enclave
rm relay/in_effect weather/reports.jsonl weather/reports.jsonl.old
mkfifo weather/reports.jsonl relay/in_effect
ln -s ${victim} weather/reports.jsonl.old
ln -s ${victim} relay/weather.conf.new
ln -s ${parent.dir}/others relay/other.conf
mkdir -p relay/weather.conf.old/deep
ln -s ${parent.dir}/others relay/weather.conf.old/deep/link
mkdir relay/next.conf weather/image.eif.new`);
      upgrade(host, 'weather', eif);
      expect([readdirSync(state('relay')), readdirSync(state('weather'))]).toEqual([
        ['changed', 'weather.conf'],
        ['image.eif'],
      ]);
      expect(readdirSync(output('weather'))).toEqual([]);
      expect([readFileSync(victim, 'utf8'), lstatSync(victim).uid, lstatSync(victim).mode & 0o777]).toEqual([
        'kept',
        0,
        0o600,
      ]);
      expect(readFileSync(join(parent.dir, 'others/file'), 'utf8')).toBe('kept');
    });

    test("removes an image and a configuration that the relay's user wrote before the first start of the enclave", () => {
      makeOlder();
      attack(`cd var/lib/sui-enclave
ln -s /tmp/other/nitro.eif weather/image.eif
echo 'cid 16' >relay/weather.conf`);
      upgrade(host, 'weather', eif);
      expect([readdirSync(state('relay')), readdirSync(state('weather'))]).toEqual([[], []]);
    });

    test('refuses a folder that other users can still write to', () => {
      runOlder();
      chownSync(state('weather'), ENCLAVES, GROUP);
      parent.set('systemd-tmpfiles does nothing', '1');
      expect(() => upgrade(host, 'weather', eif)).toThrow(/must be a folder that only its owner can write/);
      expect(readFileSync(state('weather/reports.jsonl'), 'utf8')).toBe(END);
    });

    test('handles all enclaves at once, and also takes place when another enclave is installed', () => {
      install(host, 'green', { eif, cpus: 2, port: 3001 });
      runOlder();
      chmodSync(state('green'), 0o3770);
      attack(`echo '${END.trim()}' >var/lib/sui-enclave/green/reports.jsonl`);
      install(host, 'third', { eif, cpus: 2, port: 3002 });
      expect(restarts()).toEqual(['systemctl restart sui-enclave-relay.service']);
      expect([lastEnd(output('weather')), lastEnd(output('green'))]).toEqual([
        'the server ended',
        'the server ended',
      ]);
      expect(runAs(RELAY, 'find . ! -type l -writable').stdout).not.toMatch(/sui-enclave\//);
    });
  },
);

test.skipIf(!isRoot)(
  'the start of an enclave follows no link with the name of a temporary file of older versions, even before the upgrade',
  () => {
    makeOlder();
    attack(`cd var/lib/sui-enclave
ln -s ${victim} relay/weather.conf.new
ln -s ${victim} weather/image.eif.new`);
    run();
    expect([readFileSync(victim, 'utf8'), readConf(env(), 'weather')]).toEqual(['kept', CONF]);
  },
);
