/**
 * Stand-ins of the parent's programs on PATH: they record how they were called, and keep as much state as the
 * real ones show. nitro-cli and aws can't be had here.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { onTestFinished } from 'vitest';
import { writeCpio } from '../../../scripts/image/cpio.ts';
import { writeEif } from '../../../scripts/image/eif/write.ts';
import { METADATA } from '../image/metadata.ts';

const SCRIPTS = fileURLToPath(new URL('../../../scripts/parent', import.meta.url));

const COMMON = `
const fs = require('node:fs');
const path = require('node:path');
const dir = process.env.STAND_INS;
const args = process.argv.slice(2);
const name = path.basename(process.argv[1]);
fs.appendFileSync(path.join(dir, 'calls'), JSON.stringify([name, ...args]) + '\\n');
const file = (n) => path.join(dir, n);
const read = (n, otherwise) => fs.existsSync(file(n)) ? JSON.parse(fs.readFileSync(file(n), 'utf8')) : otherwise;
const write = (n, value) => fs.writeFileSync(file(n), JSON.stringify(value));
const fail = (text) => { process.stderr.write(text); process.exit(1); };
const after = (option) => args[args.indexOf(option) + 1];
`;

const PROGRAMS = {
  'nitro-cli': `
const enclaves = read('enclaves', []);
if (process.env.NITRO_FAILS) fail(process.env.NITRO_FAILS);
switch (args[0]) {
  case 'describe-enclaves': console.log(JSON.stringify(enclaves)); break;
  case 'run-enclave': {
    // What an enclave sends to the parent's log port, and socat to this file.
    if (process.env.NITRO_REPORTS) fs.appendFileSync(path.join(process.env.SUI_ENCLAVE_STATE, after('--enclave-name'), 'reports.jsonl'), process.env.NITRO_REPORTS);
    if (process.env.NITRO_RUN_FAILS) fail(process.env.NITRO_RUN_FAILS);
    const enclave = { EnclaveName: after('--enclave-name'), EnclaveID: 'i-1-enc' + (enclaves.length + 1), EnclaveCID: 16 + enclaves.length,
      Flags: args.includes('--debug-mode') ? 'DEBUG_MODE' : 'NONE' };
    if (process.env.NITRO_PCR0) enclave.Measurements = { PCR0: process.env.NITRO_PCR0 };
    write('enclaves', [...enclaves, enclave]);
    console.log(JSON.stringify(enclave));
    break;
  }
  case 'terminate-enclave':
    write('enclaves', enclaves.filter((each) => each.EnclaveID !== after('--enclave-id')));
    console.log('{}');
    break;
  case 'console':
    console.log('the console');
    if (read('console stays', false)) setInterval(() => {}, 1000);
    break;
  case '--version': console.log('Nitro CLI 1.4.2'); break;
  default: fail('[ E14 ] no such command');
}`,
  socat: `
if (args.includes('-') && args.some((arg) => arg.startsWith('VSOCK-CONNECT:'))) {
  fs.writeFileSync(file('handed'), fs.readFileSync(0));
  process.stdout.write(read('verdict', 'accepted\\n'));
} else if (read('busy', '') && args.some((arg) => arg.includes(read('busy', '')))) fail('Address already in use');
else setInterval(() => {}, 1000);`,
  'vsock-proxy': `
setInterval(() => {}, 1000);
if (read('ends', 0)) setTimeout(() => process.exit(1), read('ends', 0));`,
  aws: `
const [service, action] = args.slice(args[0] === '--region' ? 2 : 0);
if (read('denied', '') === action) fail('An error occurred (UnauthorizedOperation): not allowed');
const refused = read('refused', {});
if (refused.action === action) fail(refused.text);
const made = read('made', {});
// The real one expands variables in the path (awscli/paramfile.py, get_file).
const expand = (text) => text.replace(/\\$(\\w+)|\\$\\{(\\w+)\\}/g, (all, bare, braced) => process.env[bare ?? braced] ?? all);
const paramFile = (option) => fs.readFileSync(expand(after(option).slice('file://'.length)), 'utf8');
// What a command makes, and the command that finds it.
const makes = {
  'create-security-group': ['describe-security-groups', 'sg-1'],
  'authorize-security-group-ingress': ['rule ' + after('--port') + ' ' + after('--cidr'), 'sgr-1'],
  'create-role': ['get-role', after('--role-name')],
  'put-role-policy': ['get-role-policy', 'read-secret'],
  'create-instance-profile': ['profile', after('--instance-profile-name')],
  'add-role-to-instance-profile': ['role of profile', after('--role-name')],
  'create-secret': ['describe-secret', 'arn:secret'],
  'run-instances': ['describe-instances', 'i-1'],
};
const [, port, cidr] = /FromPort==.(\\d+). && CidrIpv4=='(.+?)'/.exec(args.join(' ')) || [];
const asked = port ? 'rule ' + port + ' ' + cidr : action !== 'get-instance-profile' ? action
  : args.join(' ').includes('RoleName') ? 'role of profile' : 'profile';
if (args.join(' ').includes('PublicIpAddress')) console.log(read('running', false) ? '203.0.113.5' : 'None');
else if (action === 'wait') write('running', true);
else if (makes[action]) {
  const [finder, id] = makes[action];
  if (action === 'create-secret') write('secret string', paramFile('--secret-string'));
  if (action === 'run-instances') write('user data', paramFile('--user-data'));
  write('made', { ...made, [finder]: id });
  console.log(id);
} else if (action === 'get-parameter') console.log('ami-1');
else if (action === 'get-secret-value') console.log(read('secret', ''));
else if (made[asked]) console.log(made[asked]);
else if (service === 'iam') fail('An error occurred (NoSuchEntity)');
else if (service === 'secretsmanager') fail('An error occurred (ResourceNotFoundException)');
else console.log('None');`,
};

export class Parent {
  readonly dir = mkdtempSync(join(tmpdir(), 'parent-'));
  readonly #bin = join(this.dir, 'bin');

  /** @param missing programs that this machine does not have */
  constructor(missing: readonly (keyof typeof PROGRAMS)[] = []) {
    mkdirSync(this.#bin);
    for (const [name, source] of Object.entries(PROGRAMS)) {
      if (missing.includes(name as keyof typeof PROGRAMS)) continue;
      writeFileSync(join(this.#bin, name), `#!${process.execPath}\n${COMMON}${source}\n`);
      chmodSync(join(this.#bin, name), 0o755);
    }
    onTestFinished(() => {
      const state = join(this.dir, 'state');
      for (const name of existsSync(state) ? readdirSync(state) : [])
        this.run('stop_enclave.ts', ['--name', name]);
      rmSync(this.dir, { recursive: true });
    });
  }

  get path(): string {
    // The system's own programs, such as id, but none of those that are stood in for.
    return `${this.#bin}:/usr/bin:/bin`;
  }

  get #env(): Record<string, string> {
    return {
      HOME: this.dir,
      PATH: this.path,
      STAND_INS: this.dir,
      SUI_ENCLAVE_STATE: join(this.dir, 'state'),
    };
  }

  get state(): string {
    return join(this.dir, 'state/sui-enclave');
  }

  /** Runs one of the parent's scripts. */
  run(script: string, args: readonly string[] = [], env: Record<string, string> = {}, input = '') {
    const { status, stdout, stderr } = spawnSync(process.execPath, [join(SCRIPTS, script), ...args], {
      cwd: this.dir,
      encoding: 'utf8',
      input,
      env: { ...this.#env, ...env },
    });
    return { status, stdout, stderr };
  }

  /** Starts one of the parent's scripts that runs until it is ended; it ends with the test. */
  start(script: string, args: readonly string[]): ChildProcess {
    const child = spawn(process.execPath, [join(SCRIPTS, script), ...args], {
      cwd: this.dir,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: this.#env,
      // A group of its own, so that nothing of it outlives the test.
      detached: true,
    });
    onTestFinished(() => {
      try {
        process.kill(-(child.pid as number), 'SIGKILL');
      } catch {
        // It has ended.
      }
    });
    return child;
  }

  /** How the programs were called so far, but for questions about what is there. */
  calls(name?: string): string[] {
    const lines = existsSync(join(this.dir, 'calls')) ? readFileSync(join(this.dir, 'calls'), 'utf8') : '';
    return lines
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => (JSON.parse(line) as string[]).join(' '))
      .filter((line) => name === undefined || line.startsWith(`${name} `));
  }

  set(file: string, value: unknown): void {
    writeFileSync(join(this.dir, file), JSON.stringify(value));
  }

  read(file: string): string {
    return readFileSync(join(this.dir, file), 'utf8');
  }

  /** An image of the given size or a little more, whose application has the manifest. */
  makeImage(bytes = 0, manifest = 'endpoints: [api.weatherapi.com]\nsecrets: [API_KEY]\n'): string {
    const application = writeCpio(new Map([['app/app.yaml', { data: Buffer.from(manifest) }]]));
    const parts = {
      kernel: Buffer.alloc(bytes + 1),
      cmdline: 'a',
      ramdisks: [Buffer.from('b'), gzipSync(application)],
    };
    const path = join(this.dir, 'x.eif');
    writeFileSync(path, writeEif(parts, METADATA));
    return path;
  }
}
