/** Effects of host install, upgrade and remove on the files and the systemd of a machine. */
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { measureImage } from '../../../../src/cli/image/eif/measure.ts';
import { readEif } from '../../../../src/cli/image/eif/read.ts';
import { type Host, requireStartable } from '../../../../src/cli/parent/host.ts';
import { type InstallOptions, install } from '../../../../src/cli/parent/host_install.ts';
import { remove } from '../../../../src/cli/parent/host_remove.ts';
import { upgrade } from '../../../../src/cli/parent/host_upgrade.ts';
import { formatPcrs } from '../../../../src/library/attestation/image.ts';
import { hasSystemd, verifyUnits } from '../../../systemd_units.ts';
import { callScript } from '../run.ts';
import { Parent } from './fakes.ts';

let parent: Parent;
let host: Host;
let root: string;

beforeEach(() => {
  parent = new Parent();
  root = join(parent.dir, 'root');
  host = { root, env: parent.env, program: ['/usr/bin/node', '/opt/cli/bin.cjs'] };
});

/** Creates an image in a folder of its own, with its registers and the relay, as the build does. */
function build(name = 'out', manifest?: string, serverEnv?: string): string {
  const folder = join(parent.dir, name);
  mkdirSync(folder);
  const eif = join(folder, 'nitro.eif');
  copyFileSync(parent.makeImage(manifest, serverEnv), eif);
  writeFileSync(join(folder, 'nitro.pcrs'), formatPcrs(measureImage(readEif(readFileSync(eif)))));
  writeFileSync(join(folder, 'relay'), `the relay of ${name}, with --in-effect`);
  return eif;
}

const options = (eif: string, more: Partial<InstallOptions> = {}): InstallOptions => ({
  eif,
  cpus: 2,
  port: 3000,
  ...more,
});
const listFiles = () =>
  globSync('**', { cwd: root, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .sort();
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const readMode = (path: string) => (statSync(join(root, path)).mode & 0o777).toString(8);
const measurePcr0Prefix = (eif: string) => measureImage(readEif(readFileSync(eif))).pcr0.slice(0, 16);
const listChanges = () =>
  parent.calls().filter((call) => /^(systemctl|systemd-|userdel)/.test(call) && !call.includes('is-active'));

describe('host install', () => {
  test('writes image, relay, settings, units and users, and enables the units', () => {
    const eif = build();
    install(host, 'weather', options(eif));
    const imagePath = `usr/local/lib/sui-enclave/weather/${measurePcr0Prefix(eif)}`;
    expect(listFiles()).toEqual(
      [
        'etc/sui-enclave/weather/settings.env',
        'etc/systemd/system/sui-enclave-end@.service',
        'etc/systemd/system/sui-enclave-expose@.service',
        'etc/systemd/system/sui-enclave-relay-reload.service',
        'etc/systemd/system/sui-enclave-relay.path',
        'etc/systemd/system/sui-enclave-relay.service',
        'etc/systemd/system/sui-enclave@.service',
        'etc/sysusers.d/sui-enclave.conf',
        'etc/tmpfiles.d/sui-enclave-weather.conf',
        'usr/local/lib/sui-enclave/relay',
        `${imagePath}.eif`,
        `${imagePath}.pcrs`,
        'usr/local/lib/sui-enclave/weather/nitro.eif',
        'usr/local/lib/sui-enclave/weather/nitro.pcrs',
        'usr/local/lib/sui-enclave/weather/relay',
      ].sort(),
    );
    expect(realpathSync(join(root, 'usr/local/lib/sui-enclave/weather/nitro.eif'))).toBe(
      join(root, `${imagePath}.eif`),
    );
    expect(read('usr/local/lib/sui-enclave/weather/relay')).toBe('the relay of out, with --in-effect');
    expect([readMode(`${imagePath}.eif`), readMode('usr/local/lib/sui-enclave/relay')]).toEqual([
      '644',
      '755',
    ]);
    expect(read('etc/sui-enclave/weather/settings.env')).toMatch(
      /^RUN_OPTIONS=--cpus 2 --memory 512\nEXPOSE_OPTIONS=--address 0\.0\.0\.0 --port 3000$/m,
    );
    expect(read('etc/systemd/system/sui-enclave@.service')).toMatch(
      /^ExecStart=\/usr\/bin\/node \/opt\/cli\/bin\.cjs run_enclave --foreground --name %i /m,
    );
    expect(listChanges()).toEqual([
      'systemd-sysusers /etc/sysusers.d/sui-enclave.conf',
      'systemd-tmpfiles --create /etc/tmpfiles.d/sui-enclave-weather.conf',
      'systemctl daemon-reload',
      'systemctl daemon-reload',
      'systemctl enable --quiet sui-enclave-relay.service sui-enclave-relay.path sui-enclave@weather.service sui-enclave-expose@weather.service',
    ]);
  });

  test('lets only root read the secrets, and gives the service a copy', () => {
    install(host, 'weather', options(build(), { secrets: '{"API_KEY":"hunter2"}' }));
    expect(read('etc/sui-enclave/weather/secrets.json')).toBe('{"API_KEY":"hunter2"}');
    expect(readMode('etc/sui-enclave/weather/secrets.json')).toBe('600');
    expect(read('etc/systemd/system/sui-enclave-expose@weather.service.d/secrets.conf')).toBe(
      '[Service]\nLoadCredential=secrets.json:/etc/sui-enclave/weather/secrets.json\nEnvironment="EXPOSE_SECRETS=--secrets %d/secrets.json"\n',
    );
    expect(listFiles().filter((path) => read(path).includes('hunter2'))).toEqual([
      'etc/sui-enclave/weather/secrets.json',
    ]);
    expect(parent.calls().join('')).not.toMatch(/hunter2/);
  });

  test('exposes an image that trusts proxies on the loopback address', () => {
    const eif = build('out', undefined, 'TRUSTED_PROXIES=1\n');
    install(host, 'weather', options(eif));
    expect(read('etc/sui-enclave/weather/settings.env')).toMatch(/--address 127\.0\.0\.1 --port 3000$/m);
  });

  test('writes the id of a secret to the settings', () => {
    install(host, 'weather', options(build(), { 'secret-id': 'arn:aws:x/y' }));
    expect(read('etc/sui-enclave/weather/settings.env')).toMatch(/--port 3000 --secret-id arn:aws:x\/y$/m);
  });

  test.each<[string, () => Partial<InstallOptions> & { name?: string }, RegExp]>([
    ['secrets that the image does not name', () => ({ secrets: '{"OTHER":"hunter2"}' }), /^missing: API_KEY/],
    ['secrets from two places', () => ({ secrets: '{"API_KEY":"a"}', 'secret-id': 'b' }), /^give either/],
    ['too little memory', () => ({ memory: 100 }), /^--memory must be at least 512 MiB/],
    ["the name of the relay's folder", () => ({ name: 'relay' }), /^relay can't be the name/],
    [
      'an image without a relay',
      () => {
        const eif = build('alone');
        rmSync(join(dirname(eif), 'relay'));
        return { eif };
      },
      /relay is missing: the build writes it beside the image$/,
    ],
    [
      'registers of another image',
      () => {
        const eif = build('other');
        copyFileSync(parent.makeImage('endpoints: []\nsecrets: []\n'), eif);
        return { eif };
      },
      /nitro\.pcrs does not have the registers of/,
    ],
    [
      'secrets for an image with provisioners',
      () => ({
        eif: build(
          'sealed',
          `endpoints: []\nsecrets: [API_KEY]\nprovisioners: ["d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"]\n`,
        ),
        secrets: '{"API_KEY":"a"}',
      }),
      /provisioners of its app\.yaml only/,
    ],
  ])('refuses %s, and changes nothing', (_case, installOptions, message) => {
    const { name = 'weather', ...more } = installOptions();
    expect(() => install(host, name, options(more.eif ?? build(), more))).toThrow(message);
    expect([existsSync(root), listChanges()]).toEqual([false, []]);
  });

  test('refuses a second enclave with the same name or port, and accepts another name with another port', () => {
    const eif = build();
    install(host, 'blue', options(eif));
    const before = listFiles();
    expect(() => install(host, 'blue', options(eif, { port: 3001 }))).toThrow(
      expect.objectContaining({ code: 'WRONG_STATE' }),
    );
    expect(() => install(host, 'green', options(eif))).toThrow(
      'the enclave blue has port 3000: pass another port',
    );
    expect(listFiles()).toEqual(before);
    install(host, 'green', options(eif, { port: 3001 }));
    expect(read('etc/sui-enclave/green/settings.env')).toMatch(/--port 3001$/m);
  });

  test('starts a program in a folder whose name has spaces and characters that systemd expands', () => {
    const folder = join(parent.dir, 'with 50 % of $HOME');
    mkdirSync(folder);
    const main = join(folder, 'main.cjs');
    writeFileSync(main, '');
    symlinkSync('/bin/true', join(folder, 'node'));
    install({ ...host, program: [join(folder, 'node'), main] }, 'weather', options(build()));
    const unit = read('etc/systemd/system/sui-enclave@.service');
    const quoted = `${parent.dir}/with 50 %% of $HOME`;
    expect(/^ExecStart=(.*) run_enclave /m.exec(unit)?.[1]).toBe(
      `"${quoted}/node" "${quoted.replace('$', '$$$$')}/main.cjs"`,
    );
    if (hasSystemd) expect(verifyUnits({ 'sui-enclave@.service': unit })).toEqual([0, '']);
  });

  test.each([
    '/home/admin/main.cjs',
    '/root/main.cjs',
    `/opt/it's/node`,
    '/opt/"a"/node',
    '/opt/a\\b',
    '/opt/a\nb',
  ])('refuses a program at %j', (path) => {
    expect(() => requireStartable(path)).toThrow(expect.objectContaining({ code: 'USAGE' }));
  });

  test('needs root', async () => {
    vi.spyOn(process, 'getuid').mockReturnValue(1000);
    onTestFinished(() => void vi.restoreAllMocks());
    const { status, stderr } = await callScript('parent/host_install.ts', ['weather']);
    expect([status, stderr]).toEqual([
      2,
      expect.stringMatching(/^USAGE: this command writes units and users: run it as root/),
    ]);
  });
});

describe('host upgrade', () => {
  const OTHER_APP_YAML = 'endpoints: []\nsecrets: []\n';

  test('places the image for the next start, and keeps the running image', () => {
    const first = build('first');
    install(host, 'weather', options(first));
    const folder = join(root, 'usr/local/lib/sui-enclave/weather');
    // run_enclave --foreground leaves this link.
    mkdirSync(join(root, 'var/lib/sui-enclave/weather'), { recursive: true });
    symlinkSync(
      join(folder, `${measurePcr0Prefix(first)}.eif`),
      join(root, 'var/lib/sui-enclave/weather/image.eif'),
    );
    parent.set('active', 'active\n');
    const second = build('second', OTHER_APP_YAML);
    expect(upgrade(host, 'weather', second)).toMatchObject({ isNewRelay: true, isRunning: true });
    expect(readlinkSync(join(folder, 'nitro.eif'))).toBe(`${measurePcr0Prefix(second)}.eif`);
    const images = () => listFiles().flatMap((path) => /weather\/(\w{16})\.eif$/.exec(path)?.[1] ?? []);
    expect(images()).toEqual([measurePcr0Prefix(first), measurePcr0Prefix(second)].sort());
    expect(read('usr/local/lib/sui-enclave/relay')).toBe('the relay of second, with --in-effect');
    // The image that neither runs nor starts next is removed.
    const third = build('third', 'endpoints: [a.example]\nsecrets: []\n');
    upgrade(host, 'weather', third);
    expect(images()).toEqual([measurePcr0Prefix(first), measurePcr0Prefix(third)].sort());
  });

  test('rewrites the units of all enclaves if they name the program at its old path', () => {
    install(host, 'blue', options(build()));
    install(host, 'green', options(build('other'), { port: 3001 }));
    const units = ['sui-enclave@.service', 'sui-enclave-expose@.service', 'sui-enclave-end@.service'].map(
      (unit) => `etc/systemd/system/${unit}`,
    );
    const before = units.map(read);
    for (const unit of units) {
      const older = '/opt/sui-enclave/node_modules/.bin/node /opt/sui-enclave/src/commands/main.ts';
      writeFileSync(join(root, unit), read(unit).replace(host.program.join(' '), older));
      expect(read(unit)).toContain(older);
    }
    upgrade(host, 'blue', build('second', OTHER_APP_YAML));
    expect(units.map(read)).toEqual(before);
  });

  test('starts, stops and restarts nothing if no enclave runs', () => {
    install(host, 'weather', options(build()));
    const before = listChanges().length;
    upgrade(host, 'weather', build('second', OTHER_APP_YAML));
    const commands = listChanges()
      .slice(before)
      .map((call) => call.split(' ').slice(0, 2).join(' '));
    expect(commands).toEqual([
      'systemd-sysusers /etc/sysusers.d/sui-enclave.conf',
      'systemd-tmpfiles --create',
      'systemctl daemon-reload',
    ]);
  });

  test('starts sui-enclave-end, which older versions lack, for each enclave that runs', () => {
    install(host, 'blue', options(build()));
    install(host, 'green', options(build('other'), { port: 3001 }));
    const before = listChanges().length;
    parent.set('active', 'active\n');
    upgrade(host, 'blue', build('second', OTHER_APP_YAML));
    expect(
      listChanges()
        .slice(before)
        .filter((call) => / (start|stop|restart|try-restart) /.test(call)),
    ).toEqual([
      'systemctl start sui-enclave-end@blue.service sui-enclave-end@green.service',
      'systemctl restart sui-enclave-relay.service',
    ]);
  });

  test('keeps the settings', () => {
    install(host, 'weather', options(build(), { secrets: '{"API_KEY":"a"}', memory: 700 }));
    const before = read('etc/sui-enclave/weather/settings.env');
    upgrade(host, 'weather', build('second'));
    expect(read('etc/sui-enclave/weather/settings.env')).toBe(before);
    expect(read('etc/sui-enclave/weather/secrets.json')).toBe('{"API_KEY":"a"}');
  });

  test('refuses an enclave that is not installed', () => {
    expect(() => upgrade(host, 'weather', build())).toThrow(expect.objectContaining({ code: 'WRONG_STATE' }));
  });
});

describe('host remove', () => {
  test('leaves nothing behind', () => {
    install(host, 'weather', options(build(), { secrets: '{"API_KEY":"a"}' }));
    for (const path of ['relay/weather.conf', 'weather/reports.jsonl']) {
      mkdirSync(join(root, 'var/lib/sui-enclave', path, '..'), { recursive: true });
      writeFileSync(join(root, 'var/lib/sui-enclave', path), '');
    }
    remove(host, 'weather', false);
    expect(listFiles()).toEqual([]);
    expect(globSync('*/*/sui-enclave*', { cwd: root })).toEqual([]);
    expect(listChanges().slice(-6)).toEqual([
      'systemctl disable --quiet --now sui-enclave-expose@weather.service sui-enclave@weather.service sui-enclave-relay.path sui-enclave-relay.service',
      'systemctl stop sui-enclave-end@weather.service',
      'systemctl reset-failed sui-enclave-expose@weather.service sui-enclave@weather.service sui-enclave-end@weather.service sui-enclave-relay.path sui-enclave-relay.service',
      'systemctl daemon-reload',
      'userdel sui-enclave-relay',
      'userdel sui-enclave',
    ]);
  });

  test('touches neither files of another enclave nor shared ones', () => {
    const eif = build();
    install(host, 'blue', options(eif));
    const blueFiles = listFiles();
    install(host, 'green', options(eif, { port: 3001 }));
    remove(host, 'green', false);
    expect(listFiles()).toEqual(blueFiles);
    expect(listChanges().slice(-3).join('\n')).not.toMatch(/sui-enclave-relay|blue|userdel/);
  });

  test('keeps the files of other programs in the folder of the settings', () => {
    install(host, 'weather', options(build()));
    writeFileSync(join(root, 'etc/sui-enclave/keeper.yaml'), '');
    remove(host, 'weather', false);
    expect(listFiles()).toEqual(['etc/sui-enclave/keeper.yaml']);
  });

  test.each(['active', 'activating', 'deactivating', 'reloading'])(
    'refuses while the enclave is %s, unless told to stop it',
    (state) => {
      install(host, 'weather', options(build()));
      const before = [listFiles(), listChanges()];
      parent.set('active', `${state}\n`);
      expect(() => remove(host, 'weather', false)).toThrow(
        'weather runs: give --stop to end it, and lose its key',
      );
      expect([listFiles(), listChanges()]).toEqual(before);
      remove(host, 'weather', true);
      expect(listFiles()).toEqual([]);
    },
  );

  test('notices an enclave that its unit no longer watches', () => {
    install(host, 'weather', options(build()));
    parent.set('active', 'failed\n');
    parent.set('enclaves', '{"EnclaveName":"weather","EnclaveID":"i-1-enc7","EnclaveCID":16}');
    expect(() => remove(host, 'weather', false)).toThrow(expect.objectContaining({ code: 'WRONG_STATE' }));
    remove(host, 'weather', true);
    expect(parent.calls()).toContain('nitro-cli terminate-enclave --enclave-id i-1-enc7');
    expect(listFiles()).toEqual([]);
  });

  test('removes an enclave of an older version, which has no unit for its end', () => {
    install(host, 'weather', options(build()));
    parent.set('systemctl fails', 'stop');
    remove(host, 'weather', false);
    expect(listFiles()).toEqual([]);
  });

  test('removes no file if the units can not be stopped', () => {
    install(host, 'weather', options(build()));
    const before = listFiles();
    parent.set('systemctl fails', 'disable');
    expect(() => remove(host, 'weather', true)).toThrow(/^systemctl disable .* failed: no such unit$/);
    expect(listFiles()).toEqual(before);
  });

  test('can be repeated if the relay keeps its folder from being removed', () => {
    install(host, 'weather', options(build()));
    const before = listFiles();
    const rm = join(parent.dir, 'bin/rm');
    writeFileSync(rm, '#!/bin/sh\necho "rm: cannot remove: Directory not empty" >&2\nexit 1\n', {
      mode: 0o755,
    });
    expect(() => remove(host, 'weather', false)).toThrow(
      /^rm .* failed: rm: cannot remove: Directory not empty$/,
    );
    expect(listFiles()).toEqual(before);
    rmSync(rm);
    remove(host, 'weather', false);
    expect(listFiles()).toEqual([]);
  });
});
