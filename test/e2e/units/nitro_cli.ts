/**
 * Stands in for nitro-cli in the machine of the units. As with the real program, a helper process stays in
 * the process group that started it, and the enclave lives as long as the helper. An enclave's vsock is TCP
 * on loopback, as for the test build of the relay (test/enclave/vsock_stand_in.cc). Its server answers with a
 * key that each start makes anew.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { parseArgs } from 'node:util';

const FOLDER = '/run/nitro_enclaves';
/** Name of an image whose enclave ends during its boot. */
const BROKEN = 'broken';
const REPORTS = 7778;

interface Enclave {
  readonly EnclaveName: string;
  readonly EnclaveID: string;
  readonly EnclaveCID: number;
  readonly ProcessID: number;
}

const network = process.env['VSOCK_NET'] ?? '';
const [command, ...commandArguments] = process.argv.slice(2);
const { values } = parseArgs({
  args: commandArguments,
  options: {
    'enclave-name': { type: 'string', default: '' },
    'enclave-id': { type: 'string', default: '' },
    'enclave-cid': { type: 'string', default: '' },
    'eif-path': { type: 'string', default: '' },
    'cpu-count': { type: 'string' },
    memory: { type: 'string' },
    helper: { type: 'string' },
  },
});
const name = values['enclave-name'];
const cid = Number(values['enclave-cid'] || 16);

function enclaves(): Enclave[] {
  return readdirSync(FOLDER)
    .filter((file) => !file.startsWith('.'))
    .map((file): Enclave => JSON.parse(readFileSync(`${FOLDER}/${file}`, 'utf8')))
    .filter(({ ProcessID }) => existsSync(`/proc/${ProcessID}`));
}

function fail(code: string): never {
  process.stderr.write(`[ ${code} ]\n`);
  process.exit(1);
}

/** Reports as init does: sends a line in a connection of its own, from the enclave's CID. */
function report(text: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ host: `${network}.3`, port: REPORTS, localAddress: `${network}.${cid}` });
    socket.once('error', () => resolve()).once('close', () => resolve());
    socket.end(`${text}\n`);
    socket.resume();
  });
}

async function help(id: string): Promise<void> {
  await report('{"event":"boot"}');
  if (name === BROKEN) {
    await report('{"event":"end","reason":"the server ended"}');
    process.exit(1);
  }
  const key = randomUUID();
  const server = createServer((request, response) => {
    response.end(request.url === '/readyz' ? '{"ready":true}' : key);
  });
  await new Promise<void>((resolve) => server.listen(3000, `${network}.${cid}`, resolve));
  // Only this call imports the module, because the other calls must be fast.
  const { measureImage } = await import('../../../src/cli/image/eif/measure.ts');
  const { readEif } = await import('../../../src/cli/image/eif/read.ts');
  const { pcr0 } = measureImage(readEif(readFileSync(values['eif-path'])));
  const enclave = {
    EnclaveName: name,
    EnclaveID: id,
    EnclaveCID: cid,
    ProcessID: process.pid,
    Flags: 'NONE',
    Measurements: { PCR0: pcr0 },
  };
  writeFileSync(`${FOLDER}/.${id}`, JSON.stringify(enclave));
  renameSync(`${FOLDER}/.${id}`, `${FOLDER}/${id}`);
}

async function start(): Promise<void> {
  // Opens the driver, as nitro-cli does.
  closeSync(openSync('/dev/nitro_enclaves', 'r+'));
  if (enclaves().some(({ EnclaveCID }) => EnclaveCID === cid)) fail('E33');
  const id = `i-1-enc${randomUUID().slice(0, 8)}`;
  const args = process.argv.slice(1);
  const helper = spawn(process.execPath, [...args, '--helper', id], { detached: true, stdio: 'ignore' });
  let hasEnded = false;
  helper.once('exit', () => {
    hasEnded = true;
  });
  while (!existsSync(`${FOLDER}/${id}`)) {
    if (hasEnded) fail('E36');
    await new Promise((done) => setTimeout(done, 20));
  }
  process.stdout.write(readFileSync(`${FOLDER}/${id}`));
  process.exit(0);
}

function terminate(): void {
  const enclave = enclaves().find(({ EnclaveID }) => EnclaveID === values['enclave-id']);
  if (!enclave) fail('E08');
  process.kill(enclave.ProcessID, 'SIGKILL');
  rmSync(`${FOLDER}/${enclave.EnclaveID}`);
  process.stdout.write('{}');
}

if (values.helper !== undefined) await help(values.helper);
else if (command === 'describe-enclaves') process.stdout.write(JSON.stringify(enclaves()));
else if (command === 'run-enclave') await start();
else if (command === 'terminate-enclave') terminate();
else fail('E14');
