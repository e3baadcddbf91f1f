import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../../../scripts/check/bench/ports.ts';
import { writeCpio } from '../../../../src/cli/image/cpio.ts';
import { loadImage } from '../../../../src/cli/parent/image.ts';
import { reportsPath } from '../../../../src/cli/parent/reports.ts';
import { decodeSealedSecrets, type EnclaveState } from '../../../../src/library/sealing/secrets.ts';
import { encodeUserData } from '../../../../src/library/sealing/user_data.ts';
import { Nsm } from '../../../../src/server/nsm/nsm.ts';
import { SealingKey } from '../../../../src/server/sealing/sealing_key.ts';
import { createRoot, toPem } from '../../../../src/testing/attestation_ca.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';
import { writeEif } from '../../../../src/toolchain/image/eif/write.ts';
import { newProvisioner } from '../../server/provisioner.ts';
import { METADATA } from '../../toolchain/image/metadata.ts';
import { Parent, writeImage } from './fakes.ts';

/** A root that is made only once, since making it is slow. */
const root = createRoot(new Date());

/** Creates an enclave that runs the image: it attests, and opens the secrets that are sealed for it. */
function createEnclave(eif: string, isDebug: boolean) {
  const { pcr0, pcr1, pcr2 } = loadImage(eif).registers;
  const registers = [pcr0, pcr1, pcr2].map((hex) =>
    isDebug ? new Uint8Array(48) : Uint8Array.from(Buffer.from(hex, 'hex')),
  ) as unknown as EnclaveState['registers'];
  const nsm = new Nsm(new EmulatedNsm(Date.now, root, registers));
  const key = SealingKey.create();
  const signingKey = new Uint8Array(32).fill(7);
  const identity = { application: 'weather', version: '1.0.0' };
  const userData = encodeUserData({ sealingKey: key.publicKey, ...identity });
  return {
    async attest(url: URL): Promise<string> {
      const nonce = Buffer.from(url.searchParams.get('nonce') ?? '', 'hex');
      const document = await nsm.attestation({ publicKey: signingKey, userData, nonce });
      return JSON.stringify({ attestation: Buffer.from(document).toString('hex') });
    },
    async open(message: string): Promise<unknown> {
      const sealed = decodeSealedSecrets(JSON.parse(message));
      const { content } = await key.openSecrets(sealed, { ...identity, registers, signingKey });
      return JSON.parse(Buffer.from(content).toString());
    },
  };
}

/** Starts a parent with a running enclave, whose server answers in this process. */
async function start({
  manifest,
  serverEnv,
  runningManifest,
  isDebug = false,
  ready = false,
  body = '{}',
  onRequest = async () => {},
}: {
  manifest?: string;
  serverEnv?: string;
  /** Manifest of the running image, if it is not the image that is passed as `--eif`. */
  runningManifest?: string;
  isDebug?: boolean;
  ready?: boolean;
  body?: string;
  onRequest?: (parent: Parent) => Promise<void>;
} = {}) {
  const parent = new Parent();
  const enclave = createEnclave(parent.makeImage(runningManifest ?? manifest), isDebug);
  const eif = parent.makeImage(manifest, serverEnv);
  parent.set('root.pem', toPem(root.certificate));
  parent.setEnclave();
  const server = createServer(async ({ url }, response) => {
    if (url?.startsWith('/get_attestation')) {
      response.end(await enclave.attest(new URL(url, 'http://a')));
      return;
    }
    await onRequest(parent);
    response.writeHead(ready ? 200 : 503).end(body);
  });
  const secrets = createTcpServer({ allowHalfOpen: true }, async (socket) => {
    // In Node 22, `text` would destroy the connection before the answer is sent.
    let message = '';
    socket.setEncoding('utf8').on('data', (piece) => {
      message += piece;
    });
    await once(socket, 'end');
    parent.set('handed', message);
    socket.end(existsSync(join(parent.dir, 'verdict')) ? parent.read('verdict') : 'accepted\n');
  });
  const enclaveAddress = `${parent.network}.16`;
  await new Promise<void>((resolve) => server.listen(3000, enclaveAddress, resolve));
  await new Promise<void>((resolve) => secrets.listen(7777, enclaveAddress, resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
    secrets.close();
  });
  const port = await findFreePort();
  const common = ['--eif', eif, '--port', String(port), '--root', join(parent.dir, 'root.pem')];
  const expose = (args: string[] = [], stdin = '', env: Record<string, string> = {}) =>
    parent.run('expose_enclave.ts', [...common, ...args], env, stdin);
  const openSecrets = () => enclave.open(parent.read('handed'));
  const hasReceived = () => existsSync(join(parent.dir, 'handed'));
  return { parent, expose, openSecrets, hasReceived, port };
}

function isAlive(pid: number): boolean {
  return existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
}

const SECRETS = '{"API_KEY":"hunter2"}';

describe.runIf(process.platform === 'linux')('expose_enclave', () => {
  test('forwards connections both ways, and hands over the secrets, which appear in no argument or file', async () => {
    const { parent, expose, openSecrets, port } = await start();
    const { status, stdout, stderr } = await expose(['--secrets', '-'], SECRETS);
    expect(stderr).toBe('');
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /The enclave has accepted its secrets. They were sealed for it: the relay read nothing/,
    );
    expect(await openSecrets()).toEqual(JSON.parse(SECRETS));
    expect(parent.conf()).toBe(`cid 16\nupstream 8101 api.weatherapi.com\nlisten 0.0.0.0:${port} 3000\n`);
    expect(isAlive(parent.relayPid as number)).toBe(true);
    const stateFiles = readdirSync(parent.state).map((file) => parent.read(`state/sui-enclave/${file}`));
    expect(stateFiles.join('') + parent.read('handed') + stdout + parent.calls().join('')).not.toMatch(
      /hunter2/,
    );
    for (const folder of [parent.state, join(parent.dir, 'state/relay')]) {
      expect(statSync(folder).mode & 0o077).toBe(0);
    }
  });

  test('leaves a running relay alone in a second run, and restarts a relay that has ended', async () => {
    const { parent, expose } = await start({ ready: true });
    expect((await expose()).stdout).toMatch(/relay: started/);
    const first = parent.relayPid as number;
    expect((await expose()).stdout).toMatch(/relay: running/);
    expect(parent.relayPid).toBe(first);
    process.kill(first, 'SIGKILL');
    await expect.poll(() => isAlive(first)).toBe(false);
    expect((await expose()).stdout).toMatch(/relay: started/);
    expect(isAlive(parent.relayPid as number)).toBe(true);
  });

  test('forwards to the new enclave after a second run, through the same relay', async () => {
    const { parent, expose, port } = await start({ ready: true });
    await expose();
    const first = parent.relayPid;
    parent.setEnclave({ EnclaveID: 'i-1-enc9', EnclaveCID: 20 });
    const newServer = createServer((_request, response) => void response.end('"the new one"'));
    await new Promise<void>((resolve) => newServer.listen(3000, `${parent.network}.20`, resolve));
    onTestFinished(() => void newServer.close());
    expect((await expose()).status).toBe(0);
    expect(parent.conf()).toMatch(/^cid 20\n/);
    expect(await (await fetch(`http://127.0.0.1:${port}`)).json()).toBe('the new one');
    expect(parent.relayPid).toBe(first);
    newServer.closeAllConnections();
  });

  test('forwards a port to a second enclave only with --take-port', async () => {
    const { parent, expose, port } = await start({ ready: true });
    await expose();
    const blue = JSON.parse(parent.read('enclaves'));
    parent.set(
      'enclaves',
      `${JSON.stringify(blue)},${JSON.stringify({ ...blue, EnclaveName: 'green', EnclaveCID: 17 })}`,
    );
    const green = createServer((_request, response) => void response.end('"green"'));
    await new Promise<void>((resolve) => green.listen(3000, `${parent.network}.17`, resolve));
    onTestFinished(() => {
      green.close();
      green.closeAllConnections();
    });
    expect(await expose(['--name', 'green'])).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(
        `^WRONG_STATE: port ${port} is forwarded to the enclave sui-enclave: pass --take-port`,
      ),
    });
    expect((await expose(['--name', 'green', '--take-port'])).status).toBe(0);
    expect(await (await fetch(`http://127.0.0.1:${port}`)).json()).toBe('green');
    expect(parent.conf()).toBe('cid 16\nupstream 8101 api.weatherapi.com\n');
  });

  test('reports that the image has no relay beside it', async () => {
    const { parent, expose } = await start({ ready: true });
    rmSync(join(parent.dir, 'relay'));
    expect((await expose()).stderr).toMatch(
      /^PROGRAM_FAILED: .*\/relay is missing or can't be run: the build/,
    );
  });

  test('reads the secrets from Secrets Manager', async () => {
    const { parent, expose, openSecrets } = await start();
    parent.set('secret', SECRETS);
    expect((await expose(['--secret-id', 'sui-enclave'])).status).toBe(0);
    expect(await openSecrets()).toEqual(JSON.parse(SECRETS));
    expect(parent.calls('aws')).toEqual([
      'aws secretsmanager get-secret-value --secret-id sui-enclave --query SecretString --output text',
    ]);
  });

  test('names the secrets that the enclave waits for, if none are passed', async () => {
    const { expose } = await start();
    expect(await expose()).toMatchObject({
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
      const { parent, expose } = await start();
      const { status, stderr, stdout } = await expose(['--secrets', '-'], secrets);
      expect(status).toBe(1);
      expect(stderr).toMatch(message);
      expect(stderr + stdout).not.toMatch(/hunter2/);
      expect(parent.relayPid).toBeUndefined();
    },
  );

  test.each([
    ['refused\n', /the enclave did not accept the secrets: refused/],
    ['', /still booting, or has its secrets already/],
  ])('reports that the enclave answers %j', async (verdict, message) => {
    const { parent, expose } = await start();
    parent.set('verdict', verdict);
    const { status, stderr } = await expose(['--secrets', '-'], SECRETS);
    expect(status).toBe(1);
    expect(stderr).toMatch(message);
  });

  test('repeats why the server refused the secrets', async () => {
    const { parent, expose } = await start({
      body: '{"refused":"SALT_SEED, line 1, must be 64 hex characters"}',
    });
    parent.set('verdict', 'refused\n');
    expect((await expose(['--secrets', '-'], SECRETS)).stderr).toMatch(
      /^SECRETS_REFUSED: the enclave did not accept the secrets: SALT_SEED, line 1, must be 64 hex characters$/m,
    );
  });

  test('reports a port that another program has', async () => {
    const { parent, expose, port } = await start({ ready: true });
    const otherProgram = createServer().listen(port, '127.0.0.1');
    onTestFinished(() => void otherProgram.close());
    expect(await expose()).toMatchObject({
      status: 1,
      stderr: `PROGRAM_FAILED: port ${port} of 0.0.0.0 can't be taken (EADDRINUSE): another program may have it\n`,
    });
    expect(parent.relayPid).toBeUndefined();
  });

  test('reports why the enclave has ended', async () => {
    const { parent, expose } = await start();
    parent.set('enclaves', '');
    expect((await expose()).stderr).toBe(
      'WRONG_STATE: no enclave named sui-enclave runs: run run_enclave first\n',
    );
    const reports = ['{"event":"failed","code":"CONFIG"}', '{"event":"end","reason":"the server ended"}'];
    mkdirSync(parent.state, { recursive: true });
    writeFileSync(reportsPath(parent.state), `${reports.join('\n')}\n`);
    expect((await expose()).stderr).toBe(
      'WRONG_STATE: no enclave named sui-enclave runs: run run_enclave first; the last enclave reported: the server ended (CONFIG)\n',
    );
  });

  test('passes no secrets to an enclave in debug mode, by default', async () => {
    const { parent, expose, openSecrets } = await start({ isDebug: true });
    parent.setEnclave({ Flags: 'DEBUG_MODE' });
    const { status, stderr } = await expose(['--secrets', '-'], SECRETS);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^WRONG_STATE: the enclave runs in debug mode, and can keep no secret/);
    expect((await expose()).status).toBe(0);
    expect((await expose(['--debug', '--secrets', '-'], SECRETS)).stdout).toMatch(/has accepted its secrets/);
    expect(await openSecrets()).toEqual(JSON.parse(SECRETS));
  });

  test('hands nothing to an enclave of an application whose config is open', async () => {
    const { parent, expose, hasReceived } = await start();
    const id = `0x${'1'.repeat(64)}`;
    const config = { id, name: 'main', version: 0, isOpen: true };
    const applications = { quotes: { package: id, original: id, config, registrars: [], enclaves: [] } };
    mkdirSync(join(parent.dir, 'deployments'));
    const file = { network: 'testnet', chain: '4c78adac', applications };
    parent.set('deployments/testnet.json', JSON.stringify(file));
    const env = { DEPLOYMENTS: join(parent.dir, 'deployments') };
    const { status, stderr } = await expose(['--secrets', '-'], SECRETS, env);
    expect([status, stderr]).toEqual([2, expect.stringMatching(/^CONFIG_OPEN: /)]);
    expect(stderr).not.toContain('hunter2');
    expect(hasReceived()).toBe(false);
    // Without secrets, the enclave is connected as usual.
    expect((await expose([], '', env)).status).toBe(0);
    expect(hasReceived()).toBe(false);

    // host_install refuses as well, before it stores any secrets.
    const install = ['weather', '--eif', join(parent.dir, 'missing.eif'), '--secret-id', 'sui-enclave'];
    const refused = await parent.run('host_install.ts', install, env);
    expect([refused.status, refused.stderr]).toEqual([2, expect.stringMatching(/^CONFIG_OPEN: /)]);
  });

  test('hands nothing to an enclave that does not attest to the registers of the image', async () => {
    const { expose, hasReceived } = await start({ runningManifest: 'endpoints: []\nsecrets: [API_KEY]\n' });
    const { status, stderr } = await expose(['--secrets', '-'], SECRETS);
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^POLICY_PCRS: /)]);
    expect(hasReceived()).toBe(false);
  });

  test("trusts only AWS's root by default", async () => {
    const { parent, hasReceived, port } = await start();
    const args = ['--eif', join(parent.dir, 'x.eif'), '--port', String(port), '--secrets', '-'];
    const { status, stderr } = await parent.run('expose_enclave.ts', args, {}, SECRETS);
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^CHAIN_ROOT: /)]);
    expect(hasReceived()).toBe(false);
  });

  test("signs the secrets with a provisioner's key if the image names provisioners", async () => {
    const [me, stranger] = [newProvisioner(), newProvisioner()];
    const manifest = `endpoints: []\nsecrets: [API_KEY]\nprovisioners: ["${me.hex}"]\n`;
    const { parent, expose, openSecrets } = await start({ manifest });
    const write = (name: string, { privateKey }: typeof me) => {
      const path = join(parent.dir, name);
      writeFileSync(path, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
      return path;
    };
    const withKey = (...args: string[]) => expose(['--secrets', '-', ...args], SECRETS);
    expect(await withKey()).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/give --provisioner-key/),
    });
    expect(await withKey('--provisioner-key', write('stranger.pem', stranger))).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/does not name the key/),
    });
    expect(parent.relayPid).toBeUndefined();
    expect((await withKey('--provisioner-key', write('me.pem', me))).status).toBe(0);
    expect(JSON.parse(parent.read('handed')).sealed.provisioner).toBe(me.hex);
    expect(await openSecrets()).toEqual(JSON.parse(SECRETS));
  });

  test('reports that the relay ended during the request to the server', async () => {
    const { expose } = await start({
      ready: true,
      async onRequest(parent) {
        const pid = parent.relayPid as number;
        // The relay has already forwarded its answer.
        setTimeout(() => process.kill(pid, 'SIGKILL'), 0);
      },
      body: 'x'.repeat(1000),
    });
    const { status, stderr } = await expose();
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^PROGRAM_FAILED: /)]);
  });

  test('asks the server at the address where it is exposed', async () => {
    const { expose, openSecrets } = await start();
    expect((await expose(['--address', '127.0.0.5', '--secrets', '-'], SECRETS)).status).toBe(0);
    expect(await openSecrets()).toEqual(JSON.parse(SECRETS));
  });

  test('listens only on the loopback address if the image trusts proxies, unless an address is given', async () => {
    const { parent, expose, port } = await start({ ready: true, serverEnv: 'TRUSTED_PROXIES=1' });
    const defaultRun = await expose();
    expect(parent.conf()).toContain(`listen 127.0.0.1:${port} 3000\n`);
    expect(defaultRun.stdout).toMatch(/TRUSTED_PROXIES.*proxy on another host, give --address/s);
    expect(JSON.parse((await expose(['--json'])).stdout)).toMatchObject({ address: '127.0.0.1' });
    const addressRun = await expose(['--address', '0.0.0.0']);
    expect(parent.conf()).toContain(`listen 0.0.0.0:${port} 3000\n`);
    expect(parent.conf()).not.toContain('127.0.0.1');
    expect(addressRun.stdout).not.toMatch(/TRUSTED_PROXIES/);
  });

  test('serves the metrics on the loopback address at a port of their own, which a later run keeps', async () => {
    const { parent, expose, port } = await start({ ready: true, serverEnv: 'METRICS_PORT=9100' });
    const metricsPort = await findFreePort();
    const line = `listen 127.0.0.1:${metricsPort} 9100\n`;
    expect((await expose(['--metrics-port', String(metricsPort)])).status).toBe(0);
    expect(parent.conf()).toContain(line);
    expect((await expose()).status).toBe(0);
    expect(parent.conf()).toContain(line);
    expect((await expose(['--metrics-port', String(port)])).stderr).toMatch(/^WRONG_STATE|^USAGE/);
  });

  test('refuses --metrics-port if the image serves no metrics', async () => {
    const { expose } = await start({ ready: true });
    expect(await expose(['--metrics-port', '9101'])).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^USAGE: --metrics-port: this image has no metrics/),
    });
  });

  test('listens on all addresses if the image trusts no proxies', async () => {
    const { parent, expose, port } = await start({ ready: true, serverEnv: 'TRUSTED_PROXIES=0' });
    expect((await expose()).stdout).not.toMatch(/TRUSTED_PROXIES/);
    expect(parent.conf()).toContain(`listen 0.0.0.0:${port} 3000\n`);
  });

  test('does not mention secrets if the application has none', async () => {
    const { expose } = await start({ ready: true, manifest: 'endpoints: []\nsecrets: []\n' });
    const { status, stdout } = await expose();
    expect(status).toBe(0);
    expect(stdout).toMatch(/^The application needs no secrets\.$/m);
    expect(stdout).not.toMatch(/has its secrets/);
  });

  test('reads the endpoints and the names of the secrets from the image', async () => {
    const { parent, expose } = await start();
    const eif = parent.makeImage('endpoints: [a.example.com, b.example.com]\nsecrets: [COIN_KEY]\n');
    expect((await expose(['--eif', eif])).stdout).toMatch(/waits for its secrets: COIN_KEY/);
    expect(parent.conf()).toMatch(/^upstream 8101 a\.example\.com\nupstream 8102 b\.example\.com\n/m);
  });

  test('reads endpoints and names of secrets from an image of an older build, which has app.yaml', async () => {
    const { parent, expose } = await start();
    const eif = join(parent.dir, 'older.eif');
    writeImage(eif, 'endpoints: [a.example.com] # ours\nsecrets: [COIN_KEY]\n', '', 'app.yaml');
    expect((await expose(['--eif', eif])).stdout).toMatch(/waits for its secrets: COIN_KEY/);
    expect(parent.conf()).toMatch(/^upstream 8101 a\.example\.com\n/m);
  });

  test('refuses an image other than the running one', async () => {
    const { parent, expose } = await start();
    parent.setEnclave({ Measurements: { PCR0: 'ab' } });
    const { status, stderr } = await expose();
    expect(status).toBe(1);
    expect(stderr).toMatch(/^WRONG_STATE: the enclave does not run the image .*x.eif: its PCR0 is ab$/m);
  });

  test('refuses an image of another project', async () => {
    const { parent, expose } = await start();
    const files = {
      yaml: ['app/app.yaml', { data: Buffer.from('endpoints: []\nsecrets: []\n') }],
      json: ['app/app.json', { data: Buffer.from('{"endpoints":[],"secrets":[]}\n') }],
      // Gets the path of app.json below, which has the same length, so that an archive has this path twice.
      twin: ['app/app.twin', { data: Buffer.from('{"endpoints":[],"secrets":[]}\n') }],
    } as const;
    const createRamdisk = (...names: (keyof typeof files)[]) => {
      const archive = writeCpio(new Map(names.map((name) => files[name])));
      return gzipSync(
        Buffer.from(archive.toString('latin1').replace('app/app.twin', 'app/app.json'), 'latin1'),
      );
    };
    for (const [ramdisk, fault] of [
      [Buffer.from('no archive'), 'no /app/app.json'],
      [createRamdisk(), 'no /app/app.json'],
      [createRamdisk('json'), 'no /app/enclave.conf'],
      [createRamdisk('yaml'), 'no /app/enclave.conf'],
      [createRamdisk('json', 'yaml'), '2 of /app/app.json, /app/app.yaml'],
      [createRamdisk('json', 'twin'), '2 of /app/app.json, /app/app.yaml'],
    ] as const) {
      const parts = { kernel: Buffer.alloc(1), cmdline: 'a', ramdisks: [Buffer.from('b'), ramdisk] };
      writeFileSync(join(parent.dir, 'other.eif'), writeEif(parts, METADATA));
      expect((await expose(['--eif', join(parent.dir, 'other.eif')])).stderr).toMatch(
        `USAGE: this image was not built by this project: it has ${fault}. See sui-enclave expose_enclave --help\n`,
      );
    }
  });

  test.each([
    [['--name', '../other'], 2, /--name must be at most 64 letters/],
    [['--name', 'relay'], 2, /--name must not be relay/],
    [['--name', 'other'], 1, /no enclave named other runs/],
    [['--eif', 'nothing.eif'], 2, /nothing.eif can't be read \(ENOENT\)/],
    [
      ['--image', 'weather'],
      2,
      /^USAGE: Unknown option '--image'\. See sui-enclave expose_enclave --help\n$/,
    ],
    [['--config', `0x${'1'.repeat(64)}`], 2, /--config and --rpc-url need --network/],
    [['--port', '0'], 2, /--port must be an integer from 1 to 65535/],
    [['--port', '65536'], 2, /--port must be an integer from 1 to 65535/],
    [['--address', 'everywhere'], 2, /--address must be an IPv4 address/],
    [['--address', '1.2.3.400'], 2, /--address must be an IPv4 address/],
    [['--secrets', '/nonexistent'], 2, /\/nonexistent can't be read/],
    [
      ['--secrets', '-', '--provisioner-key', '/nonexistent'],
      2,
      /^PROVISIONER_KEY: \/nonexistent can't be read/,
    ],
    [['--secrets', '-', '--root', '/nonexistent'], 2, /^UNREADABLE_FILE: \/nonexistent can't be read/],
    [['--secrets', '-', '--secret-id', 'x'], 2, /either --secrets or --secret-id/],
    [['--secrets', '-', '--secret-id', 'x', '--eif', 'missing.eif'], 2, /either --secrets or --secret-id/],
  ])('refuses %j', async (args, code, message) => {
    const { expose } = await start({ ready: true });
    const { status, stderr } = await expose(args, SECRETS);
    expect(status).toBe(code);
    expect(stderr).toMatch(message);
  });
});

describe.runIf(process.platform === 'linux')('stop_enclave', () => {
  test('stops the enclave and closes its ports, and leaves other enclaves running', async () => {
    const { parent, expose, port } = await start({ ready: true });
    await parent.run('run_enclave.ts', ['--name', 'other', '--eif', parent.makeImage()]);
    await expose();
    const relay = parent.relayPid as number;
    writeFileSync(join(parent.state, 'secrets.json'), SECRETS);
    const { status, stdout } = await parent.run('stop_enclave.ts');
    expect([status, stdout]).toEqual([0, 'i-1-enc1: terminated\n']);
    await expect.poll(() => fetch(`http://127.0.0.1:${port}`).then(String, () => 'refused')).toBe('refused');
    // The other enclave and its files stay.
    expect(JSON.parse(parent.read('enclaves'))).toMatchObject({ EnclaveName: 'other', EnclaveCID: 17 });
    expect(parent.conf('other')).toMatch(/^cid 17\n/);
    expect([parent.relayPid, isAlive(relay)]).toEqual([relay, true]);
    expect((await parent.run('stop_enclave.ts', ['--name', 'other'])).stdout).toMatch(/\nrelay: stopped\n$/);
    expect(isAlive(relay)).toBe(false);
    expect(parent.read('state/sui-enclave/secrets.json')).toBe(SECRETS);
    expect((await parent.run('stop_enclave.ts')).stdout).toBe('no enclave named sui-enclave runs\n');
  });
});
