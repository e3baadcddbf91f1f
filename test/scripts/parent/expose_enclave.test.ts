import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { reportsPath } from '../../../scripts/parent/reports.ts';
import { Parent } from './stand_ins.ts';

/** A parent with a running enclave, whose server is a process of its own: the scripts are waited for here. */
async function start({
  ready = false,
  missing = [],
}: {
  ready?: boolean;
  missing?: ('vsock-proxy' | 'socat')[];
} = {}) {
  const parent = new Parent(missing);
  parent.run('run_enclave.ts', ['--eif', parent.makeImage()]);
  const source = `require('node:http').createServer((request, response) => response.writeHead(${ready ? 200 : 503}).end())
    .listen(0, '127.0.0.1', function () { console.log(this.address().port); });`;
  const server = spawn(process.execPath, ['-e', source], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => {
    server.kill();
  });
  const [port] = await once(server.stdout, 'data');
  const expose = (args: string[] = [], input = '') =>
    parent.run('expose_enclave.ts', ['--port', String(port).trim(), ...args], {}, input);
  const pids = () =>
    readdirSync(parent.state)
      .filter((file) => file.endsWith('.json'))
      .map((file) => JSON.parse(readFileSync(join(parent.state, file), 'utf8')).pid as number);
  const before = parent.calls().length;
  const calls = () =>
    parent
      .calls()
      .slice(before)
      .filter((call) => !call.startsWith('nitro-cli'));
  return { parent, expose, pids, calls, port: String(port).trim() };
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
}

const SECRETS = '{"API_KEY":"hunter2"}';

describe.runIf(process.platform === 'linux')('expose_enclave', () => {
  test('forwards in and out, and hands the secrets over, which stay out of every argument and file', async () => {
    const { parent, expose, pids, calls, port } = await start();
    const { status, stdout, stderr } = expose(['--secrets', '-'], SECRETS);
    expect(stderr).toBe('');
    expect(status).toBe(0);
    expect(stdout).toMatch(/The enclave has taken its secrets/);
    expect(parent.read('handed')).toBe(SECRETS);
    expect(calls()).toEqual([
      `vsock-proxy 8101 api.weatherapi.com 443 --config ${parent.state}/vsock-proxy.yaml`,
      `socat -t 600 TCP-LISTEN:${port},bind=0.0.0.0,reuseaddr,fork,backlog=128 VSOCK-CONNECT:16:3000`,
      'socat -t 20 - VSOCK-CONNECT:16:7777',
    ]);
    expect(parent.read('state/vsock-proxy.yaml')).toBe(
      'allowlist:\n- {address: api.weatherapi.com, port: 443}\n',
    );
    expect(pids().every(isAlive)).toBe(true);
    const kept = readdirSync(parent.state).map((file) => parent.read(`state/${file}`));
    expect(kept.join('') + stdout + parent.calls().join('')).not.toMatch(/hunter2/);
    expect(statSync(parent.state).mode & 0o077).toBe(0);
  });

  test('uses socat where vsock-proxy is not installed', async () => {
    const { expose, calls } = await start({ ready: true, missing: ['vsock-proxy'] });
    expect(expose().status).toBe(0);
    expect(calls()[0]).toBe(
      'socat -t 600 VSOCK-LISTEN:8101,reuseaddr,fork,backlog=128 TCP:api.weatherapi.com:443',
    );
  });

  test('run again leaves alone what runs, and starts again what has ended', async () => {
    const { parent, expose, pids } = await start({ ready: true });
    expect(expose().stdout).toMatch(/inbound: started/);
    const first = pids();
    expect(expose().stdout).toMatch(/inbound: running/);
    expect(pids()).toEqual(first);
    process.kill(first[1] as number, 'SIGKILL');
    await expect.poll(() => isAlive(first[1] as number)).toBe(false);
    expect(expose().stdout).toMatch(/: started/);
    expect(pids().filter((pid) => !first.includes(pid))).toHaveLength(1);
    expect(parent.calls('socat').filter((call) => call.includes(':7777'))).toEqual([]);
  });

  test('leads to the new enclave after it was run again', async () => {
    const { parent, expose, pids } = await start({ ready: true });
    expose();
    const first = pids();
    parent.set('enclaves', [{ EnclaveName: 'sui-enclave', EnclaveID: 'i-1-enc9', EnclaveCID: 20 }]);
    expect(expose().stdout).toMatch(/inbound: started/);
    expect(parent.calls('socat').at(-1)).toMatch(/VSOCK-CONNECT:20:3000$/);
    expect(pids().filter((pid) => !first.includes(pid))).toHaveLength(1);
  });

  test('takes the secrets from Secrets Manager', async () => {
    const { parent, expose } = await start();
    parent.set('secret', SECRETS);
    expect(expose(['--secret-id', 'sui-enclave']).status).toBe(0);
    expect(parent.read('handed')).toBe(SECRETS);
    expect(parent.calls('aws')).toEqual([
      'aws secretsmanager get-secret-value --secret-id sui-enclave --query SecretString --output text',
    ]);
  });

  test('without secrets says which are waited for', async () => {
    const { expose } = await start();
    expect(expose()).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/waits for its secrets: API_KEY/),
    });
  });

  test.each([
    ['hunter2', /the secrets are not JSON/],
    ['["hunter2"]', /not a JSON object/],
    ['{"NODE_OPTIONS":"hunter2"}', /missing: API_KEY; not named in app.yaml: 1/],
    ['{"API_KEY":"hunter2","hunter2":"x"}', /not named in app.yaml: 1/],
    ['{"API_KEY":""}', /missing: API_KEY/],
    ['{"API_KEY":5}', /missing: API_KEY/],
  ])(
    'refuses the secrets %s before anything is started, without repeating them',
    async (secrets, message) => {
      const { expose, calls } = await start();
      const { status, stderr, stdout } = expose(['--secrets', '-'], secrets);
      expect(status).toBe(1);
      expect(stderr).toMatch(message);
      expect(stderr + stdout).not.toMatch(/hunter2/);
      expect(calls()).toEqual([]);
    },
  );

  test.each([
    ['refused\n', /the enclave did not take the secrets: refused/],
    ['', /still booting, or has had its own already/],
  ])('tells when the enclave answers %j', async (verdict, message) => {
    const { parent, expose } = await start();
    parent.set('verdict', verdict);
    const { status, stderr } = expose(['--secrets', '-'], SECRETS);
    expect(status).toBe(1);
    expect(stderr).toMatch(message);
  });

  test('tells when a port is taken', async () => {
    const { parent, expose } = await start({ ready: true });
    parent.set('busy', 'TCP-LISTEN');
    const { status, stderr } = expose();
    expect(status).toBe(1);
    expect(stderr).toMatch(/PROGRAM_FAILED: inbound ended at once: see .*inbound.log/);
    expect(parent.read('state/inbound.log')).toMatch(/Address already in use/);
  });

  test('says why an enclave that runs no more has ended', async () => {
    const { parent, expose } = await start();
    parent.set('enclaves', []);
    expect(expose().stderr).toBe('WRONG_STATE: no enclave named sui-enclave runs: run run_enclave first\n');
    const told = ['{"event":"failed","code":"CONFIG"}', '{"event":"end","reason":"the server ended"}'];
    writeFileSync(reportsPath(parent.state), `${told.join('\n')}\n`);
    expect(expose().stderr).toBe(
      'WRONG_STATE: no enclave named sui-enclave runs: run run_enclave first; the last one said: the server ended (CONFIG)\n',
    );
  });

  test.each([
    [['--name', 'other'], /no enclave named other runs/],
    [['--app', '../x'], /--app must be a folder/],
    [['--app', 'nothing'], /there is no application nothing/],
    [['--port', '0'], /--port must be a port/],
    [['--address', 'everywhere'], /--address must be an IPv4 address/],
    [['--secrets', '/nonexistent'], /\/nonexistent can't be read/],
    [['--secrets', '-', '--secret-id', 'x'], /either --secrets or --secret-id/],
  ])('refuses %j', async (args, message) => {
    const { expose } = await start({ ready: true });
    const { status, stderr } = expose(args);
    expect(status).toBe(1);
    expect(stderr).toMatch(message);
  });
});

describe.runIf(process.platform === 'linux')('stop_enclave', () => {
  test('ends the enclave and what was started for it, and nothing else', async () => {
    const { parent, expose, pids } = await start({ ready: true });
    parent.run('run_enclave.ts', ['--name', 'other', '--eif', parent.makeImage()]);
    expose();
    const own = pids();
    // A record of a process that has ended, whose number is another's now.
    const stranger = spawn('sleep', ['60']);
    onTestFinished(() => {
      stranger.kill();
    });
    const record = { pid: stranger.pid, startedAt: '1', command: ['socat'] };
    writeFileSync(join(parent.state, 'old.json'), JSON.stringify(record));
    const { status, stdout } = parent.run('stop_enclave.ts');
    expect(status).toBe(0);
    expect(stdout).toBe(
      'endpoint-api.weatherapi.com: stopped\ninbound: stopped\nreports: stopped\ni-1-enc1: terminated\n',
    );
    expect(own.some(isAlive)).toBe(false);
    expect(isAlive(stranger.pid as number)).toBe(true);
    expect(JSON.parse(parent.read('enclaves'))).toMatchObject([{ EnclaveName: 'other' }]);
    expect(parent.run('stop_enclave.ts').stdout).toBe('no enclave named sui-enclave runs\n');
  });
});
