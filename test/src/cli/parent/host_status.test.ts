/** Tests of host_status: the faults that it finds on a host, and its advice. */
import { copyFileSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { HOST_FAULTS } from '../../../../src/cli/parent/host_faults.ts';
import { install } from '../../../../src/cli/parent/host_install.ts';
import { formatStatus, type HostStatus, readHostStatus } from '../../../../src/cli/parent/host_status.ts';
import { upgrade } from '../../../../src/cli/parent/host_upgrade.ts';
import { loadImage } from '../../../../src/cli/parent/image.ts';
import { formatPcrs } from '../../../../src/library/attestation/image.ts';
import { callScript } from '../run.ts';
import { Parent, writeImage } from './fakes.ts';

const UNIT = 'sui-enclave@weather.service';
const EXPOSE = 'sui-enclave-expose@weather.service';
const STATE = 'root/var/lib/sui-enclave';
const RELAY_STATE = 'root/var/lib/sui-enclave-relay';

let parent: Parent;
let host: { root: string; env: Record<string, string> };
let eif: string;
let server: Server;
let answers: Record<string, [status: number, body: object]>;

const port = () => (server.address() as AddressInfo).port;

/** Creates an image in a folder of its own, as the build does. */
function build(name: string, manifest?: string): string {
  mkdirSync(join(parent.dir, name));
  const path = writeImage(join(parent.dir, name, 'nitro.eif'), manifest);
  writeFileSync(join(parent.dir, name, 'nitro.pcrs'), formatPcrs(loadImage(path).registers));
  writeFileSync(join(parent.dir, name, 'relay'), 'a relay with --in-effect');
  return path;
}

function setEnclave(properties: object = {}): void {
  const { pcr0, pcr1, pcr2 } = loadImage(eif).registers;
  const Measurements = { HashAlgorithm: 'Sha384', PCR0: pcr0, PCR1: pcr1, PCR2: pcr2 };
  parent.setEnclave({ EnclaveName: 'weather', Flags: 'NONE', Measurements, ...properties });
}

function setConf(conf: string, inEffect = conf): void {
  parent.set(`${STATE}/relay/weather.conf`, conf);
  parent.set(`${RELAY_STATE}/relay/in_effect`, `weather\n${inEffect}\n`);
}

/** Sets up a host on which the enclave `weather` runs without a fault. */
beforeEach(async () => {
  parent = new Parent();
  const root = join(parent.dir, 'root');
  host = { root, env: parent.env };
  answers = {
    '/readyz': [200, { ready: true }],
    '/boot': [200, { clock: { source: 'ptp0', difference_ms: 3 }, last_end: null }],
  };
  server = createServer(({ url = '' }, response) => {
    const [status, body] = answers[url] ?? [404, {}];
    response.writeHead(status).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  eif = build('out');
  install({ ...host, program: ['/usr/bin/node', '/opt/cli/bin.cjs'] }, 'weather', {
    eif,
    cpus: 2,
    address: '127.0.0.1',
    port: port(),
    secrets: '{"API_KEY":"hunter2"}',
  });
  setConf(`cid 16\nlisten 127.0.0.1:${port()} 3000\n`);
  parent.set(`${RELAY_STATE}/weather/reports.jsonl`, '{"event":"boot"}\n');
  const image = `${loadImage(eif).registers.pcr0.slice(0, 16)}.eif`;
  symlinkSync(
    `/usr/local/lib/sui-enclave/weather/${image}`,
    join(root, 'var/lib/sui-enclave/weather/image.eif'),
  );
  setEnclave();
});
afterEach(() => {
  server.close();
});

const codes = ({ faults, enclaves }: HostStatus) =>
  [...faults, ...enclaves.flatMap((enclave) => enclave.faults)].map(({ code }) => code);

/** Changes to the host that cause one fault each, and the advice to expect, by the code of the fault. */
const FAULTS: Readonly<Record<string, readonly [harm: () => unknown, advice: RegExp]>> = {
  NITRO_UNREADABLE: [() => parent.set('describe fails', '[ E07 ]'), /are not affected/],
  RELAY_DOWN: [
    () => parent.set('unit sui-enclave-relay.service', 'failed failed exit-code 0'),
    /^systemctl start sui-enclave-relay\.service: /,
  ],
  RELAY_PATH_DOWN: [
    () => parent.set('unit sui-enclave-relay.path', 'inactive dead success 0'),
    /^systemctl start sui-enclave-relay\.path: /,
  ],
  ENCLAVE_STOPPED: [
    () => {
      parent.set('enclaves', '');
      parent.set(`unit ${UNIT}`, 'inactive dead success 0');
    },
    /^systemctl start sui-enclave@weather\.service: it makes a new key/,
  ],
  ENCLAVE_FAILED: [
    () => {
      parent.set('enclaves', '');
      parent.set(`unit ${UNIT}`, 'failed failed start-limit-hit 0');
    },
    /Then systemctl reset-failed sui-enclave@weather\.service && systemctl start sui-enclave@weather\.service: /,
  ],
  ENCLAVE_CHANGING: [
    () => {
      parent.set('enclaves', '');
      parent.set(`unit ${UNIT}`, 'activating auto-restart exit-code 0');
    },
    /host_status weather again/,
  ],
  ENCLAVE_UNWATCHED: [
    () => parent.set(`unit ${UNIT}`, 'failed failed signal 0'),
    /^systemctl start sui-enclave@weather\.service: .* keeps its key\. To end/,
  ],
  END_UNIT_DOWN: [
    () => parent.set('unit sui-enclave-end@weather.service', 'inactive dead success 0'),
    /^systemctl start sui-enclave-end@weather\.service, or .*: neither ends an enclave$/,
  ],
  ENCLAVE_TWICE: [
    () =>
      parent.set('enclaves', `${parent.read('enclaves')},${parent.read('enclaves').replace('enc1', 'enc2')}`),
    /nitro-cli terminate-enclave --enclave-id <id>: that ends the enclave/,
  ],
  DEBUG_MODE: [
    () => setEnclave({ Flags: 'DEBUG_MODE' }),
    /^systemctl restart sui-enclave@weather\.service: that ends/,
  ],
  IMAGE_UNREADABLE: [
    () => {
      rmSync(join(host.root, 'usr/local/lib/sui-enclave/weather/nitro.pcrs'));
      copyFileSync(
        join(parent.dir, 'out/relay'),
        join(host.root, 'usr/local/lib/sui-enclave/weather/nitro.pcrs'),
      );
    },
    /host_upgrade weather --eif <file>/,
  ],
  IMAGE_PENDING: [
    () =>
      upgrade({ ...host, program: ['/a', '/b'] }, 'weather', build('next', 'endpoints: []\nsecrets: []\n')),
    /systemctl stop sui-enclave@weather\.service: that ends the enclave, and its key is lost/,
  ],
  IMAGE_UNKNOWN: [() => setEnclave({ Measurements: { PCR0: 'ab'.repeat(48) } }), /^give it no secrets/],
  EXPOSE_FAILED: [
    () => parent.set(`unit ${EXPOSE}`, 'failed failed start-limit-hit 0'),
    /Then systemctl reset-failed sui-enclave-expose@weather\.service && systemctl restart sui-enclave-expose@weather\.service: .* ends no enclave$/,
  ],
  PORT_CLOSED: [
    () => setConf('cid 17\n'),
    /^systemctl restart sui-enclave-expose@weather\.service: .* ends no enclave$/,
  ],
  SERVER_SILENT: [() => (answers = {}), /^wait a minute .* its key is lost/],
  SECRETS_MISSING: [
    () => (answers['/readyz'] = [503, { error: '', code: 'SECRETS_MISSING', missing: ['API_KEY'] }]),
    /^systemctl restart sui-enclave-expose@weather\.service: /,
  ],
  CLOCK_DOUBTFUL: [
    () => (answers['/readyz'] = [200, { ready: true, warnings: ['no document confirms the clock'] }]),
    /^check again after ten minutes/,
  ],
  TASK_FAILS: [
    () => {
      const warnings = ['the task price has failed in 3 runs in a row', 'the task mark has not ended'];
      answers['/readyz'] = [200, { ready: true, warnings }];
    },
    /^journalctl -u sui-enclave-relay\.service .*; this ends no enclave$/,
  ],
};

describe('host_status', () => {
  test('finds no fault on a healthy host, and prints its state', async () => {
    const timestamp = String(Date.UTC(2026, 10, 27) * 1000);
    const message = (text: unknown) =>
      `${JSON.stringify({ MESSAGE: text, __REALTIME_TIMESTAMP: timestamp })}\n`;
    parent.set(
      'journal',
      message('weather {"event":"listening","ms":3}') + message('weathervane {"event":"a"}') + message([1]),
    );
    const status = await readHostStatus(host);
    expect(codes(status)).toEqual([]);
    const { pcr0 } = loadImage(eif).registers;
    expect(formatStatus(status).split('\n')).toEqual([
      'ok  weather',
      `  unit          ${UNIT}: active (running) since 2026-11-27T19:05:51.000Z`,
      `  port          127.0.0.1:${port()}, ${EXPOSE}: active (running) since 2026-11-27T19:05:51.000Z`,
      '  enclave       i-1-enc1, CID 16',
      `  image         runs PCR0 ${pcr0}, which is installed`,
      '  last report   boot',
      '  last event    2026-11-27T00:00:00.000Z {"event":"listening","ms":3}',
      '  secrets       complete',
      '  clock         corrected by ptp0, 3 ms off',
      '  parts         none was restarted',
      '  registration  not read: give --network',
      'relay: active (running) since 2026-11-27T19:05:51.000Z',
    ]);
  });

  test.each([
    ['kernel', 'not corrected by init'],
    ['unknown', 'unknown'],
  ])('describes a clock whose source is %s as %s', async (source, description) => {
    answers['/boot'] = [200, { clock: { source }, last_end: null }];
    expect(formatStatus(await readHostStatus(host)).split('\n')).toContain(`  clock         ${description}`);
  });

  test.each(Object.entries(FAULTS))(
    'finds %s, and advises the command that mends it',
    async (code, [harm, advice]) => {
      harm();
      const status = await readHostStatus(host, 'weather');
      expect(codes(status)).toEqual([code]);
      const fault = [...status.faults, ...(status.enclaves[0]?.faults ?? [])][0];
      expect(fault?.advice).toMatch(advice);
      expect(endsWithoutWarning(fault?.advice ?? '')).toBe(false);
      const [first = '', line] = formatStatus(status).split('\n');
      expect(first).toMatch(/^BAD (host|weather)$/);
      expect(line).toBe(`  ${code}: ${fault?.text}`);
    },
  );

  test('is tested by endsWithoutWarning, which detects advice to end an enclave without a warning', () => {
    expect(endsWithoutWarning('systemctl restart sui-enclave@a.service: it starts')).toBe(true);
    expect(endsWithoutWarning('systemctl start sui-enclave@a.service: it starts')).toBe(false);
  });

  test.each([
    ['activating start success 77', 'ENCLAVE_CHANGING'],
    ['activating auto-restart exit-code 0', 'EXPOSE_FAILED'],
    ['inactive dead success 0', 'EXPOSE_FAILED'],
  ])("reports the port's unit in the state %s as %s", async (state, code) => {
    parent.set(`unit ${EXPOSE}`, state);
    expect(codes(await readHostStatus(host))).toEqual([code]);
  });

  test('repeats why an enclave ended, from its last report', async () => {
    parent.set('enclaves', '');
    parent.set(`unit ${UNIT}`, 'failed failed exit-code 0');
    parent.set(`${RELAY_STATE}/weather/reports.jsonl`, '{"event":"end","reason":"out of memory"}\n');
    const status = await readHostStatus(host);
    expect(formatStatus(status)).toMatch(/ENCLAVE_FAILED: .*; the last enclave reported: out of memory\n/);
    expect(formatStatus(status)).toMatch(/last report +end: out of memory/);
  });

  test('advises provision, which ends nothing, if the secrets are not on the host', async () => {
    rmSync(join(host.root, 'etc/sui-enclave/weather/secrets.json'));
    answers['/readyz'] = [503, { missing: ['API_KEY'], refused: '\u001b[31mno\n' }];
    const [fault] = (await readHostStatus(host)).enclaves[0]?.faults ?? [];
    expect(fault).toEqual({
      code: 'SECRETS_MISSING',
      text: 'weather waits for its secrets: API_KEY; the last set was refused: \\u{1b}[31mno\\u{a}',
      advice: expect.stringMatching(/^npx --offline sui-enclave provision, .* this ends no enclave$/),
    });
  });

  test('lists the host and enclaves with faults first, and faults of the host before those of enclaves', async () => {
    const second = build('green', 'endpoints: []\nsecrets: []\n');
    const program = ['/usr/bin/node', '/opt/cli/bin.cjs'] as const;
    install({ ...host, program }, 'green', { eif: second, cpus: 2, port: 3999 });
    parent.set('unit sui-enclave@green.service', 'inactive dead success 0');
    parent.set('unit sui-enclave-relay.service', 'inactive dead success 0');
    const status = await readHostStatus(host);
    expect(codes(status)).toEqual(['RELAY_DOWN', 'ENCLAVE_STOPPED']);
    expect(formatStatus(status).match(/^(BAD|ok ) \w+/gm)).toEqual(['BAD host', 'BAD green', 'ok  weather']);
    expect(codes(await readHostStatus(host, 'weather'))).toEqual(['RELAY_DOWN']);
  });

  test('says that nothing is installed, and names enclaves that were started by hand', async () => {
    const bareHost = { root: join(parent.dir, 'nowhere'), env: parent.env };
    const status = await readHostStatus(bareHost);
    expect(codes(status)).toEqual(['NOTHING_INSTALLED']);
    expect(formatStatus(status)).toMatch(
      /^not installed here: enclave weather \(i-1-enc1\) runs as CID 16$/m,
    );
    await expect(readHostStatus(bareHost, 'weather')).rejects.toMatchObject({ code: 'WRONG_STATE' });
  });

  test('is not misled or held up by the files of a relay that was taken over', async () => {
    for (const file of ['weather/reports.jsonl', 'relay/in_effect']) {
      rmSync(join(parent.dir, RELAY_STATE, file));
      symlinkSync('/dev/zero', join(parent.dir, RELAY_STATE, file));
    }
    const status = await readHostStatus(host);
    expect(codes(status)).toEqual(['PORT_CLOSED']);
    expect(status.enclaves[0]?.state.lastReport).toMatch(/^unknown: /);
  });

  test('prints only one short line of text from a hostile journal, and uses no line of another enclave', async () => {
    const line = (message: unknown, time = '1767225600000000') =>
      JSON.stringify({ MESSAGE: message, __REALTIME_TIMESTAMP: time });
    const hostile = [
      line('weather {"event":"listening"}'),
      'garbage',
      '['.repeat(100_000),
      line([27, 91]),
      line(null),
      line('weather {"x":1}', '9'.repeat(40)),
      line('__proto__ {"event":"polluted"}'),
      line('weather.other {"event":"other"}'),
      line(`../weather {"event":"path"}`),
      line(`weather {"event":"\u001b[2J\u202e${'x'.repeat(100_000)}"}`),
      line('weather {"event":\nok  weather'),
    ];
    parent.set('journal', hostile.join('\n'));
    const status = await readHostStatus(host);
    expect(codes(status)).toEqual([]);
    const event = status.enclaves[0]?.state.lastEvent ?? '';
    expect(event).toMatch(/^2026-01-01T00:00:00\.000Z \{"event":"[\x20-\x7e]+…$/);
    expect(event.length).toBeLessThan(400);
    expect(formatStatus(status)).not.toMatch(/[^\x20-\x7e\n…→]|polluted|"path"/);
    expect({}).not.toHaveProperty('event');
  });

  test('fails if systemd does not answer', async () => {
    parent.set('systemctl fails', 'show');
    await expect(readHostStatus(host)).rejects.toMatchObject({ code: 'PROGRAM_FAILED' });
  });

  test('has a code for every fault that it finds, and no other', () => {
    const chainCodes = ['CHAIN_UNREADABLE', 'ATTESTATION_REFUSED', 'CONFIG_RETIRED', 'UNREGISTERED'];
    const keyCodes = ['KEY_DESTROYED', 'KEY_TOO_OLD'];
    const tested = ['NOTHING_INSTALLED', ...Object.keys(FAULTS), ...chainCodes, ...keyCodes];
    expect(tested.toSorted()).toEqual(Object.keys(HOST_FAULTS).toSorted());
  });

  test('needs root, and --network to read the chain', async () => {
    onTestFinished(() => void vi.restoreAllMocks());
    const getuid = vi.spyOn(process, 'getuid').mockReturnValue(0);
    expect(await callScript('parent/host_status.ts', ['--app', 'weather'])).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^USAGE: give --network with --app/),
    });
    getuid.mockReturnValue(1000);
    expect(await callScript('parent/host_status.ts', [])).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^USAGE: this command reads the state of units: run it as root/),
    });
  });
});

/** Returns whether a text advises ending an enclave without the warning that its key is lost. */
function endsWithoutWarning(text: string): boolean {
  const ends =
    /systemctl (re)?(start|stop) sui-enclave@\S+|terminate-enclave|stop_enclave|host_remove|allocator/g;
  const isEnd = (words: string) => !/^systemctl start /.test(words);
  return (text.match(ends) ?? []).some(isEnd) && !text.includes('key is lost');
}
