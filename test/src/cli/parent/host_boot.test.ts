/** The first boot of the hosts of deploy/aws, with fakes of the programs of Amazon Linux. */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { measureImage } from '../../../../src/cli/image/eif/measure.ts';
import { readEif } from '../../../../src/cli/image/eif/read.ts';
import type { Host } from '../../../../src/cli/parent/host.ts';
import { boot, parseBootFile } from '../../../../src/cli/parent/host_boot.ts';
import { formatPcrs } from '../../../../src/library/attestation/image.ts';
import { Parent } from './fakes.ts';

const ARN = 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:x-AbCdEf';
const PCRS = { pcr0: '1'.repeat(96), pcr1: '2'.repeat(96), pcr2: '3'.repeat(96) };
const ENCLAVE = {
  role: 'enclave',
  region: 'eu-west-1',
  name: 'weather',
  ...PCRS,
  cpus: '2',
  memoryMib: '1024',
  port: '3000',
  address: '',
  secretArn: ARN,
  logGroup: '/sui-enclave/test',
};
const KEEPER = { role: 'keeper', region: 'eu-west-1', address: `0x${'a'.repeat(64)}`, secretArn: ARN };
const PROVISIONER = {
  role: 'provisioner',
  region: 'eu-west-1',
  ...PCRS,
  keyArn: ARN,
  secretArn: ARN,
  urls: 'http://10.0.0.5:3000,http://10.0.1.5:3000',
};

let parent: Parent;
let host: Host;
const resolvePath = (path: string) => join(parent.dir, 'root', path);
const read = (path: string) => readFileSync(resolvePath(path), 'utf8');
const readMode = (path: string) => (statSync(resolvePath(path)).mode & 0o777).toString(8);

function writeProgram(path: string): void {
  writeFileSync(
    path,
    '#!/bin/sh\nprintf "%s\\1" "$(basename "$0")" "$@" >>"$FAKES/calls"; echo >>"$FAKES/calls"\n',
  );
  chmodSync(path, 0o755);
}

beforeEach(() => {
  parent = new Parent();
  for (const name of ['dnf', 'useradd', 'id']) writeProgram(join(parent.dir, 'bin', name));
  for (const folder of ['etc/nitro_enclaves', 'opt/aws/amazon-cloudwatch-agent/bin', 'etc/sui-enclave']) {
    mkdirSync(resolvePath(folder), { recursive: true });
  }
  writeProgram(resolvePath('opt/aws/amazon-cloudwatch-agent/bin/amazon-cloudwatch-agent-ctl'));
  writeFileSync(resolvePath('etc/nitro_enclaves/allocator.yaml'), '---\nmemory_mib: 512\ncpu_count: 2\n');
  const program = ['/opt/sui-enclave/bin/node', '/opt/sui-enclave/bin.cjs'] as const;
  host = { root: join(parent.dir, 'root'), env: parent.env, program };
});

/** Writes the image and the relay as a release has them. @returns the registers of the image */
function unpackImage() {
  mkdirSync(join(parent.dir, 'image'));
  const eif = join(parent.dir, 'image/nitro.eif');
  copyFileSync(parent.makeImage(), eif);
  writeFileSync(join(parent.dir, 'image/relay'), 'a relay with --in-effect');
  const { pcr0, pcr1, pcr2 } = measureImage(readEif(readFileSync(eif)));
  return { pcr0, pcr1, pcr2 };
}

test('installs and starts an enclave, reserves its memory and ships its events', () => {
  const registers = unpackImage();
  boot(host, parseBootFile(JSON.stringify({ ...ENCLAVE, ...registers })), parent.dir);
  expect(read('etc/nitro_enclaves/allocator.yaml')).toBe('---\nmemory_mib: 1024\ncpu_count: 2\n');
  expect(read('usr/local/lib/sui-enclave/weather/nitro.pcrs')).toBe(formatPcrs(registers));
  expect(read('etc/sui-enclave/weather/settings.env')).toMatch(`--port 3000 --secret-id ${ARN}\n`);
  expect(read('etc/systemd/system/sui-enclave-expose@weather.service.d/region.conf')).toMatch(
    /^Environment=AWS_REGION=eu-west-1$/m,
  );
  const agent = JSON.parse(read('opt/aws/amazon-cloudwatch-agent/etc/sui-enclave.json'));
  const [file] = agent.logs.logs_collected.files.collect_list;
  expect(file).toMatchObject({ log_group_name: '/sui-enclave/test' });
  expect(file).not.toHaveProperty('retention_in_days');
  expect(read('etc/systemd/system/sui-enclave-events.service')).toMatch(
    /^ExecStart=\/opt\/sui-enclave\/bin\/node \/opt\/sui-enclave\/bin.cjs export_events \/var/m,
  );
  const calls = parent.calls();
  const [start, packages] = ['systemctl start sui-enclave@weather.service', 'dnf install -y aws-nitro'];
  expect(calls.findIndex((call) => call.startsWith(packages))).toBe(0);
  expect(calls.at(-1)).toMatch(start);
});

test.each(['start', 'enable'])('continues after systemctl %s has failed', (verb) => {
  const parameters = parseBootFile(JSON.stringify({ ...ENCLAVE, ...unpackImage() }));
  parent.set('systemctl fails', verb);
  expect(() => boot(host, parameters, parent.dir)).toThrow(new RegExp(`systemctl ${verb} .* failed`));
  parent.set('systemctl fails', '');
  const failedCalls = parent.calls().length;
  boot(host, parameters, parent.dir);
  const calls = parent.calls().slice(failedCalls);
  expect(calls.at(-1)).toMatch('systemctl start');
  // Only an installation that was complete is not repeated.
  const isEnabled = calls.some((call) => /^systemctl enable .*sui-enclave@weather.service/.test(call));
  expect(isEnabled).toBe(verb === 'enable');
});

test("refuses an image whose registers differ from the stack's, and installs nothing", () => {
  unpackImage();
  expect(() => boot(host, parseBootFile(JSON.stringify(ENCLAVE)), parent.dir)).toThrow(
    /nitro.pcrs does not have the registers of/,
  );
  expect(existsSync(resolvePath('etc/systemd/system/sui-enclave@.service'))).toBe(false);
});

test('starts a keeper, whose keystore only root can read', () => {
  parent.set('secret', '["a key"]');
  writeFileSync(join(parent.dir, 'keeper.yaml'), 'network: testnet\n');
  boot(host, parseBootFile(JSON.stringify(KEEPER)), parent.dir);
  expect([read('etc/sui-enclave/sui.keystore'), readMode('etc/sui-enclave/sui.keystore')]).toEqual([
    '["a key"]',
    '600',
  ]);
  expect(read('etc/sui-enclave/keeper.yaml')).toBe('network: testnet\n');
  expect(read('etc/sui-enclave/keeper.env')).toBe(`KEEPER_ADDRESS=0x${'a'.repeat(64)}\n`);
  expect(read('etc/systemd/system/sui-enclave-keep.service')).toMatch(
    /^ExecStart=\/opt\/sui-enclave\/bin\/node \/opt\/sui-enclave\/bin.cjs keep \/etc\/sui-enclave\/keeper.yaml /m,
  );
  expect(parent.calls().join('\n')).not.toMatch(/a key/);
});

test('starts a watcher for each enclave', () => {
  parent.set('secret', 'hunter2');
  boot(host, parseBootFile(JSON.stringify(PROVISIONER)), parent.dir);
  expect(read('etc/sui-enclave/provision-2.env')).toBe('ENCLAVE_URL=http://10.0.1.5:3000\n');
  expect(read('etc/sui-enclave/nitro.pcrs')).toBe(formatPcrs(PCRS));
  expect(['secrets.json', 'provisioner.pem'].map((file) => readMode(`etc/sui-enclave/${file}`))).toEqual([
    '600',
    '600',
  ]);
  const unit = read('etc/systemd/system/sui-enclave-provision-2.service');
  expect(unit).toMatch(/^EnvironmentFile=\/etc\/sui-enclave\/provision-2.env$/m);
  expect(unit).toMatch(/^ExecStart=\/opt\/sui-enclave\/bin\/node \/opt\/sui-enclave\/bin.cjs provision \$/m);
  expect(parent.calls().filter((call) => call.includes('enable --now'))).toHaveLength(2);
  expect(parent.calls().join('\n')).not.toMatch(/hunter2/);
});

test('starts no unit without its secret', () => {
  expect(() => boot(host, parseBootFile(JSON.stringify(PROVISIONER)), parent.dir)).toThrow(
    /could not read the secret/,
  );
  expect(parent.calls('systemctl')).toEqual([]);
});

test.each<[string, object, RegExp]>([
  ['a name with a command', { ...ENCLAVE, name: '$(id)' }, /parameter name/],
  ['a newline in an address', { ...ENCLAVE, address: '10.0.0.1\n' }, /parameter address/],
  ['a register that is too short', { ...ENCLAVE, pcr1: '22' }, /parameter pcr1/],
  ['an unknown parameter', { ...KEEPER, more: '' }, /parameter more/],
  ['an unknown role', { ...KEEPER, role: 'admin' }, /parameter role/],
  ['a URL with a password', { ...PROVISIONER, urls: 'http://a:b@c' }, /parameter urls/],
  [
    'a secret of another region',
    { ...ENCLAVE, secretArn: ARN.replace('eu-west-1', 'us-east-1') },
    /is not in this host's region, eu-west-1/,
  ],
  [
    "a provisioner's key of another region",
    { ...PROVISIONER, keyArn: ARN.replace('eu-west-1', 'us-east-1') },
    /is not in this host's region/,
  ],
])('refuses %s', (_case, parameters, message) => {
  expect(() => parseBootFile(JSON.stringify(parameters))).toThrow(
    expect.objectContaining({ code: 'USAGE', message: expect.stringMatching(message) }),
  );
});
