/** Tests the backend over HTTP. The engine and the witness generator are fakes, which run as processes. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type RunningBackend, startBackend } from '../../../../src/prover/backend/backend.ts';
import { readBackendConfig } from '../../../../src/prover/backend/config.ts';
import { fakeWorker, LASTS, LOADED, LOADS, PROOF, PROVES } from '../fake_worker.ts';
import { createInput, fakeGenerator, keyFile, recordedLog, WITNESS_SCRIPT } from './support.ts';

const HASH_OF_KEY = createHash('blake2b512').update('a key').digest('hex');
const WORKER = LOADS + PROVES;
/** JavaScript of a worker that waits for the file `go` in its folder before it proves. */
const WAITS = `${LOADS}
  const poll = setInterval(() => {
    if (!fs.existsSync(folder + '/go')) return;
    clearInterval(poll);
    ${PROVES}
  }, 10);`;

interface Options {
  readonly worker?: string;
  readonly generator?: string;
  readonly env?: Record<string, string>;
  readonly beatMs?: number;
}

async function start({
  worker = WORKER,
  generator = fakeGenerator(),
  env = {},
  ...supervisorOptions
}: Options = {}) {
  const { log, printed } = recordedLog();
  const engine = fakeWorker(worker);
  const config = readBackendConfig({
    ZKEY: keyFile('a key'),
    WITNESS_BINARIES: generator,
    PROVER_ENGINE: engine,
    ALLOW_INSECURE_DEV_KEY: '1',
    PORT: '0',
    ...env,
  });
  const backend = await startBackend({ config, log, backoffMs: 10, ...supervisorOptions });
  onTestFinished(() => backend.close());
  const file = (name: string) => join(engine, '..', name);
  return { ...backend, printed, go: () => writeFileSync(file('go'), ''), ...createCalls(backend) };
}

function createCalls({ url }: RunningBackend) {
  const post = (body: unknown, init: RequestInit = {}) =>
    fetch(`${url}/input`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...init,
    });
  const healthz = async () => {
    const answer = await fetch(`${url}/healthz`);
    return { http: answer.status, ...((await answer.json()) as Record<string, unknown>) };
  };
  return { post, healthz };
}

const { circuit, publicInput } = createInput(5);
const readAnswer = async (response: Promise<Response> | Response) => {
  const { status, headers } = await response;
  return {
    status,
    type: headers.get('content-type'),
    retry: headers.get('retry-after'),
    text: await (await response).text(),
  };
};

describe('POST /input', () => {
  test("answers with the proof in snarkjs' form", async () => {
    const { post } = await start();
    const response = await post(circuit);
    expect(response.status).toBe(200);
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.json()).toEqual({ ...PROOF, protocol: 'groth16', curve: 'bn128' });
  });

  test('refuses a body that is not an input of the circuit, in plain text', async () => {
    const { post } = await start();
    const refusals: readonly [caseName: string, body: unknown, status: number, text: string][] = [
      ['not JSON', '{', 400, 'the body is not JSON'],
      ['empty', '', 400, 'the body is not JSON'],
      ['a list', [], 400, 'the input must be an object with the signals of the circuit'],
      ['without a signal', { ...circuit, salt: undefined }, 400, 'the signal salt is missing'],
      [
        'of another size',
        createInput(5, 'full').circuit,
        400,
        'padded_unsigned_jwt must be a list of 512 items: this service has the circuit of small size',
      ],
      ['too large', `"${'x'.repeat(300_000)}"`, 413, 'the body is larger than 262144 bytes'],
    ];
    for (const [caseName, body, status, text] of refusals) {
      const refusal = { status, type: 'text/plain; charset=utf-8', text };
      expect(await readAnswer(post(body)), caseName).toMatchObject(refusal);
    }
  });

  test('answers 400 to an input that does not satisfy the circuit, and proves the next input', async () => {
    const generator = fakeGenerator(`case "$input" in *'"salt":"6"'*) exit 1;; esac ${WITNESS_SCRIPT}`);
    const { post } = await start({ generator });
    const text = expect.stringMatching(/^the input does not satisfy the circuit: check/);
    expect(await readAnswer(post(createInput(6).circuit))).toMatchObject({ status: 400, text });
    expect((await post(circuit)).status).toBe(200);
  });

  test.each<[string, string, RegExp]>([
    ['crashes', 'kill -SEGV $$', /^BACKEND_WITNESS: the witness generator crashed/],
    ['writes nothing', 'true', /^BACKEND_WITNESS: the witness generator wrote no witness/],
    [
      'makes witnesses for another key',
      'printf wtns > "$2"',
      /^BACKEND_WITNESS: .* belong to different circuits/,
    ],
    [
      'makes larger witnesses',
      'head -c 900000 /dev/zero > "$2"',
      /^BACKEND_WITNESS: .* belong to different circuits/,
    ],
  ])('answers 500 if the generator %s', async (_, script, message) => {
    const { post } = await start({ generator: fakeGenerator(script) });
    expect(await readAnswer(post(circuit))).toMatchObject({
      status: 500,
      text: expect.stringMatching(message),
    });
  });

  test('kills a generator that runs for longer than PROVER_TIMEOUT', async () => {
    const generator = fakeGenerator(`[ -e "$folder/go" ] || exec sleep 60; ${WITNESS_SCRIPT}`);
    const { post } = await start({ generator, env: { PROVER_TIMEOUT: '1' } });
    const text = expect.stringMatching(/^BACKEND_WITNESS: .* did not finish within 1000 ms/);
    expect(await readAnswer(post(circuit))).toMatchObject({ status: 500, text });
    writeFileSync(join(generator, 'go'), '');
    expect((await post(circuit)).status).toBe(200);
  });

  test('fails one request if the engine crashes', async () => {
    const worker = `${LOADS} if (!fs.existsSync(folder + '/go')) process.exit(1); ${PROVES}`;
    const { post, go, enginePid } = await start({ worker });
    const pid = enginePid();
    const failed = { status: 500, text: 'BACKEND_ENGINE: the engine exited before it answered: try again' };
    expect(await readAnswer(post(circuit))).toMatchObject(failed);
    go();
    expect((await post(circuit)).status).toBe(200);
    expect(enginePid()).not.toBe(pid);
  });

  test('answers BACKEND_ENGINE_HUNG within a few heartbeats if the engine hangs', async () => {
    const worker = `${LOADS} if (fs.existsSync(folder + '/go')) { ${PROVES} }`;
    const { post, healthz, go, enginePid } = await start({ worker, beatMs: 300 });
    const proofAnswer = readAnswer(post(circuit));
    await expect.poll(healthz).toMatchObject({ status: 'proving' });
    go();
    process.kill(enginePid() as number, 'SIGSTOP');
    expect(await proofAnswer).toMatchObject({
      status: 500,
      retry: '1',
      text: 'BACKEND_ENGINE_HUNG: the engine did not answer for 0.9 s, and is being replaced: try again',
    });
    expect((await post(circuit)).status).toBe(200);
  });

  test('kills an engine whose proof takes longer than PROVER_TIMEOUT', async () => {
    const worker = `${LOADS} if (!fs.existsSync(folder + '/go')) return; ${PROVES}`;
    const { post, go } = await start({ worker, env: { PROVER_TIMEOUT: '1' } });
    const failed = {
      status: 500,
      text: 'BACKEND_ENGINE: the engine did not answer within 1000 ms: try again',
    };
    expect(await readAnswer(post(circuit))).toMatchObject(failed);
    go();
    expect((await post(circuit)).status).toBe(200);
  });

  test('refuses other methods and paths, in plain text', async () => {
    const { url } = await start();
    expect(await readAnswer(fetch(`${url}/input`))).toMatchObject({
      status: 405,
      text: 'this endpoint supports POST',
    });
    expect(await readAnswer(fetch(`${url}/`))).toMatchObject({ status: 404, text: 'no such endpoint' });
  });
});

test('the backend serves metrics only with METRICS_PORT: outcomes, durations, restarts and the engine', async () => {
  expect((await start()).metricsUrl).toBeUndefined();
  const worker = `${LOADS} if (!fs.existsSync(folder + '/go')) process.exit(1); ${PROVES}`;
  const { post, go, metricsUrl } = await start({ worker, env: { METRICS_PORT: '0' } });
  expect((await post(circuit)).status).toBe(500);
  go();
  expect((await post(circuit)).status).toBe(200);
  expect((await post([])).status).toBe(400);
  const name = 'sui_enclave_prover_backend';
  const lines = async () => (await (await fetch(metricsUrl as string)).text()).split('\n');
  await expect
    .poll(lines)
    .toEqual(
      expect.arrayContaining([
        `${name}_requests_total{code="OK"} 1`,
        `${name}_requests_total{code="BACKEND_ENGINE"} 1`,
        `${name}_requests_total{code="BACKEND_INPUT"} 1`,
        `${name}_requests_total{code="BACKEND_AT_CAPACITY"} 0`,
        `${name}_part_seconds_count{part="witness"} 2`,
        `${name}_engine_restarts_total 1`,
        `${name}_ready 1`,
        `${name}_waiting 0`,
        expect.stringMatching(/_engine_info\{path="\w+",network="[a-z ]+"\} 1$/),
        '# EOF',
      ]),
    );
});

describe('the queue', () => {
  /** Resolves when this number of requests is in the queue. */
  const waitForQueue = (healthz: () => Promise<object>, queue: number) =>
    expect.poll(healthz).toMatchObject({ status: 'proving', queue });

  test('has room for QUEUE requests; further ones get 503 with Retry-After', async () => {
    const { post, healthz, go } = await start({ worker: WAITS, env: { QUEUE: '2' } });
    const inputs = [1, 2, 3].map((salt) => createInput(salt).circuit);
    const first = inputs.map((input) => readAnswer(post(input)));
    await waitForQueue(healthz, 2);
    const busy = { status: 503, type: 'text/plain; charset=utf-8', text: 'Server at capacity' };
    for (let extra = 0; extra < 3; extra++) {
      expect(await readAnswer(post(circuit))).toMatchObject({
        ...busy,
        retry: expect.stringMatching(/^[1-9]\d?$/),
      });
    }
    go();
    for (const answer of await Promise.all(first)) expect(answer.status).toBe(200);
    expect(await healthz()).toMatchObject({ status: 'ready', queue: 0, capacity: 2 });
  });

  test('of length 0 admits one request at a time', async () => {
    const { post, healthz, go } = await start({ worker: WAITS, env: { QUEUE: '0' } });
    const first = post(circuit);
    await waitForQueue(healthz, 0);
    expect((await post(circuit)).status).toBe(503);
    go();
    expect((await first).status).toBe(200);
    expect((await post(circuit)).status).toBe(200);
  });

  test('forgets a caller who has left', async () => {
    const { post, healthz, go } = await start({ worker: WAITS, env: { QUEUE: '2' } });
    const first = post(circuit);
    await waitForQueue(healthz, 0);
    const leaver = new AbortController();
    const abandoned = [6, 7].map((salt) =>
      post(createInput(salt).circuit, { signal: leaver.signal }).catch(() => 'left'),
    );
    await waitForQueue(healthz, 2);
    leaver.abort();
    expect(await Promise.all(abandoned)).toEqual(['left', 'left']);
    await waitForQueue(healthz, 0);
    go();
    expect((await first).status).toBe(200);
  });

  test('ends the proof of a caller who has left, and keeps the engine and its key', async () => {
    const worker = `${LOADS} if (type === 4 || !fs.existsSync(folder + '/go')) { ${LASTS} } ${PROVES}`;
    const { post, healthz, go, enginePid, printed } = await start({ worker, env: { QUEUE: '0' } });
    const pid = enginePid();
    for (let caller = 0; caller < 3; caller++) {
      const leaver = new AbortController();
      const abandoned = post(circuit, { signal: leaver.signal }).catch(() => 'left');
      await waitForQueue(healthz, 0);
      leaver.abort();
      expect(await abandoned).toBe('left');
      await expect.poll(healthz).toMatchObject({ status: 'ready' });
    }
    go();
    expect((await post(circuit)).status).toBe(200);
    expect(enginePid()).toBe(pid);
    expect(printed().match(/ended the work on a request whose caller has left/g)).toHaveLength(3);
    expect(printed()).not.toContain('the engine ended');
  });

  test('lets no request wait for longer than PROVER_TIMEOUT', async () => {
    const worker = `if (type === 1 && fs.existsSync(folder + '/go')) return; ${WORKER}`;
    const { post, healthz, go, enginePid } = await start({ worker, env: { PROVER_TIMEOUT: '1' } });
    go();
    process.kill(enginePid() as number, 'SIGKILL');
    await expect.poll(healthz).toMatchObject({ status: 'loading' });
    const late = {
      status: 503,
      text: 'the proof did not begin within 1 s: try again',
      retry: expect.any(String),
    };
    expect(await Promise.all([1, 2].map(() => readAnswer(post(circuit))))).toMatchObject([late, late]);
    expect(await healthz()).toMatchObject({ queue: 0 });
  });
});

describe('GET /healthz', () => {
  test('shows the key by its hash and network, and the queue', async () => {
    const { healthz, printed } = await start();
    const key = { blake2b: HASH_OF_KEY, network: 'development', development: true, publicInputs: 1 };
    const engine = 'avx512ifma';
    expect(await healthz()).toEqual({ http: 200, status: 'ready', key, engine, queue: 0, capacity: 16 });
    expect(printed()).toContain(HASH_OF_KEY);
    expect(printed()).toContain('"engine":"avx512ifma"');
    expect(printed()).not.toContain('AVX-512');
    expect(printed()).toContain('DEVELOPMENT KEY');
  });

  test("reports the engine's code path, and the log warns of an engine without AVX-512 IFMA", async () => {
    for (const path of ['adx', 'portable']) {
      const { healthz, printed } = await start({ worker: `status.path = '${path}'; ${WORKER}` });
      expect(await healthz()).toMatchObject({ engine: path });
      expect(printed()).toMatch(new RegExp(`"level":"warn".*"engine":"${path}".*no AVX-512 IFMA`));
    }
  });

  test('answers 503 while no engine has the key', async () => {
    const worker = `if (fs.existsSync(folder + '/go')) return; ${WORKER}`;
    const { healthz, go, enginePid } = await start({ worker });
    go();
    process.kill(enginePid() as number, 'SIGKILL');
    await expect.poll(healthz).toMatchObject({ http: 503, status: 'loading' });
  });
});

describe('the start is stopped by', () => {
  const refusal = (message: RegExp) =>
    expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(message) });

  test.each<[string, Options, RegExp]>([
    [
      'a missing engine',
      { env: { PROVER_ENGINE: '/nonexistent' } },
      /^PROVER_ENGINE: .* make prover-dev builds/,
    ],
    [
      'another program as the engine',
      { env: { PROVER_ENGINE: '/bin/true' } },
      /^ZKEY: .* exited before it answered/,
    ],
    ['a missing key', { env: { ZKEY: '/nonexistent' } }, /^ZKEY: \/nonexistent can't be read: ENOENT/],
    ['a damaged key', { worker: "refuse('PROVER_BAD_KEY')" }, /^ZKEY: .* can't be loaded: .*PROVER_BAD_KEY/],
    [
      'a damaged key, which is reported as damaged even if its hash is unknown',
      { worker: "refuse('PROVER_BAD_KEY')", env: { ZKEY_BLAKE2B: 'ab'.repeat(64) } },
      /PROVER_BAD_KEY/,
    ],
    ['a development key', { env: { ALLOW_INSECURE_DEV_KEY: '0' } }, /set ALLOW_INSECURE_DEV_KEY=1 for tests/],
    [
      'an unknown key',
      { worker: LOADS.replace('"development":true', '"development":false') },
      new RegExp(`set ZKEY_BLAKE2B=${HASH_OF_KEY}$`),
    ],
    ['a key that is not the pinned key', { env: { ZKEY_BLAKE2B: 'ab'.repeat(64) } }, /ZKEY_BLAKE2B requires/],
    [
      'a key with two public inputs',
      { worker: LOADS.replace('"public":1', '"public":2') },
      /has 2 public inputs: a key for zkLogin has exactly one/,
    ],
    [
      'a key and a generator of different circuits',
      { worker: LOADS.replace(`"wires":${LOADED.wires}`, '"wires":6249') },
      /^ZKEY and WITNESS_BINARIES belong to different circuits: .* 6249 wires/,
    ],
    ['a wrong folder', { generator: '/' }, /^WITNESS_BINARIES: .* the folder must hold zkLogin/],
  ])('%s', async (_, options, message) => {
    await expect(start(options)).rejects.toThrow(refusal(message));
  });

  test('a port in use', async () => {
    const { url } = await start();
    await expect(start({ env: { PORT: new URL(url).port } })).rejects.toThrow(
      refusal(/^can't listen on HOST/),
    );
  });

  test('nothing if an unknown key is pinned: its network is then `unknown`', async () => {
    const worker = WORKER.replace('"development":true', '"development":false');
    const { key } = await start({ worker, env: { ZKEY_BLAKE2B: HASH_OF_KEY } });
    expect(key).toEqual({ blake2b: HASH_OF_KEY, network: 'unknown', development: false, publicInputs: 1 });
  });
});

test('close finishes the running proof, and refuses waiting and new requests', async () => {
  const { post, healthz, go, close, enginePid } = await start({ worker: WAITS });
  const first = readAnswer(post(circuit));
  await expect.poll(healthz).toMatchObject({ status: 'proving', queue: 0 });
  const second = readAnswer(post(createInput(6).circuit));
  await expect.poll(healthz).toMatchObject({ status: 'proving', queue: 1 });
  const pid = enginePid() as number;
  const closed = close();
  expect(await second).toMatchObject({ status: 503, text: 'the service is stopping: try again', retry: '1' });
  await expect(post(circuit)).rejects.toThrow('fetch failed');
  go();
  expect((await first).status).toBe(200);
  await closed;
  await expect.poll(() => existsSync(`/proc/${pid}/exe`)).toBe(false);
});

test('a request on an open connection is told that the service is stopping', async () => {
  const { url, post, healthz, go, close } = await start({ worker: WAITS });
  const first = post(circuit);
  await expect.poll(healthz).toMatchObject({ status: 'proving' });
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  let received = '';
  socket.on('data', (chunk) => (received += chunk));
  await once(socket, 'connect');
  socket.write('GET /healthz HTTP/1.1\r\nHost: x\r\n');
  // When this request is answered, the server has accepted the connection.
  await healthz();
  const closed = close();
  socket.write('\r\n');
  await expect.poll(() => received).toMatch(/^HTTP\/1\.1 503 [\s\S]*"status":"stopping"/);
  go();
  expect((await first).status).toBe(200);
  await closed;
});

test('the log contains no input, witness or proof, at any level and after any failure', async () => {
  // Each fake prints its input on every channel.
  const leak = 'printf %s "$input" >&2; printf %s "$input" >&2';
  const generator = fakeGenerator(`${leak}
    case "$input" in *'"salt":"777888991"'*) exit 1;; *'"salt":"777888992"'*) kill -SEGV $$;; esac ${WITNESS_SCRIPT}`);
  const worker = `${LOADS} process.stderr.write(body);
    fs.appendFileSync(folder + '/proofs', '.');
    const n = fs.statSync(folder + '/proofs').size;
    const text = String(body.subarray(0, 84));
    if (n === 1) return write(frame(255, id, JSON.stringify({ code: 'PROVER_UNSATISFIED', message: text })));
    if (n === 2) return write(frame(255, id, JSON.stringify({ code: text, message: text })));
    ${PROVES}`;
  const { post, printed } = await start({ generator, worker });
  const inputs = [777888991, 777888992, 777888993, 777888994, 777888993].map((salt) => createInput(salt));
  const statuses: number[] = [];
  for (const { circuit } of inputs) statuses.push((await post(circuit)).status);
  expect(statuses).toEqual([400, 500, 500, 500, 200]);
  await post({ ...circuit, salt: '-777888995' });
  await post(`{"salt": "777888996`);

  const secrets = [
    '77788899',
    '77700000',
    'wtns',
    'padded_unsigned_jwt"',
    ...inputs.flatMap(({ circuit: { modulus, signature }, publicInput }) => [
      publicInput,
      modulus?.[0] as string,
      signature?.[0] as string,
    ]),
  ];
  expect(printed()).toContain('worked on a request');
  for (const secret of secrets) expect(printed()).not.toContain(secret);
});

test('each of many simultaneous requests gets the proof of its own public input', async () => {
  // The fake proves for the public input in the witness. The backend would refuse a proof for another
  // public input.
  const { post } = await start({ env: { QUEUE: '20' } });
  const salts = Array.from({ length: 12 }, (_, index) => index);
  const answers = await Promise.all(salts.map((salt) => post(createInput(salt).circuit)));
  expect(answers.map(({ status }) => status)).toEqual(salts.map(() => 200));
  expect(publicInput).not.toBe(createInput(6).publicInput);
});
