import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ed25519 } from '@noble/curves/ed25519.js';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { WeatherResponse } from '../../src/apps/weather/types.ts';
import { shareModules } from '../../src/toolchain/image/share_modules.ts';

const VERIFY = fileURLToPath(new URL('../../src/cli/verify/verify_enclave.ts', import.meta.url));
const OUT = new URL('../../out/', import.meta.url);
const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Starts the process of `make dev`, on a free port. @param root of the repository, or of a copy */
function startDev(env: Record<string, string>, root = ROOT) {
  const child = spawn(process.execPath, ['src/toolchain/dev/main.ts'], {
    cwd: root,
    env: { PATH: process.env['PATH'] ?? '', PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const run = { output: '', ended: once(child, 'close'), child };
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      run.output += chunk;
    });
  }
  return run;
}

/** Sends the request of the curl command that `make dev` prints. @returns its URL and its answer */
async function sendPrintedRequest(run: { output: string }): Promise<{ url: string; answer: Response }> {
  const line = /curl -s (\S+) -H '(\S+): (\S+)' -d '(.*)'/;
  await expect.poll(() => run.output).toMatch(line);
  const [, url = '', name = '', value = '', body = ''] = line.exec(run.output) ?? [];
  return { url, answer: await fetch(url, { method: 'POST', headers: { [name]: value }, body }) };
}

test('make dev answers the curl command that it prints with a signature that an independent verifier accepts', async () => {
  // The command neither needs nor uses the developer's own key.
  const run = startDev({ API_KEY: 'hunter2' });
  const { url, answer } = await sendPrintedRequest(run);
  expect(answer.status).toBe(200);
  const { response, signature } = (await answer.json()) as {
    response: { intent: number; timestamp_ms: number; data: { location: string; temperature: number } };
    signature: string;
  };
  expect(response.data.location).toBe('San Francisco');
  const { pk } = (await (await fetch(new URL('/health_check', url))).json()) as { pk: string };
  const { intent, timestamp_ms, data } = response;
  const bytes = WeatherResponse.message.serialize({ intent, timestamp_ms, payload: data }).toBytes();
  expect(ed25519.verify(Buffer.from(signature, 'hex'), bytes, Buffer.from(pk, 'hex'))).toBe(true);
  const foreignAnswer = await fetch(url, { headers: { origin: 'https://attacker.example' } });
  expect(await foreignAnswer.json()).toMatchObject({ code: 'INVALID_INPUT' });
  const localAnswer = await fetch(url, { headers: { origin: 'http://localhost:5173' } });
  expect(localAnswer.headers.get('access-control-allow-origin')).toBe('http://localhost:5173');
  const attestationAnswer = await fetch(new URL('/get_attestation', url));
  expect(attestationAnswer.status).toBe(503);
  expect(await attestationAnswer.json()).toEqual({
    error: expect.stringMatching(/start ATTEST=emulated npx --offline sui-enclave dev/),
    code: 'NSM_UNAVAILABLE',
  });
  run.child.kill('SIGINT');
  expect(await run.ended).toEqual([0, null]);
  expect(run.output).not.toMatch(/hunter2/);
  expect(run.output).toMatch(/^\[\d\d:\d\d:\d\d\] INFO: listening /);
  expect(run.output).toMatch(
    /ATTEST=emulated npx --offline sui-enclave dev starts a server that does, and needs no NSM addon/,
  );
  // The log has each request, and the code and the reason of a refusal. The reason is a sentence, not a
  // stack.
  expect(run.output).toMatch(/DEBUG: request .*"route":"\/process_data","status":200,/);
  expect(run.output).toMatch(/DEBUG: request .*"route":"\/health_check","status":200,/);
  expect(run.output).toMatch(
    /INFO: request .*"route":"\/get_attestation","status":503,"code":"NSM_UNAVAILABLE",/,
  );
  expect(run.output).toMatch(/WARN: request failed .*start ATTEST=emulated npx --offline sui-enclave dev/s);
  expect(run.output).not.toMatch(/"stack"|\bat .*\.ts:\d+/);
});

test('an error in a timer is logged and does not end the server, as in production', async () => {
  const throwOnceItListens = `
    if (process.argv[1]?.endsWith('serve.ts')) {
      const send = process.send.bind(process);
      process.send = (message, ...rest) => {
        if ('port' in message) setTimeout(() => { throw new Error('thrown by a timer'); });
        return send(message, ...rest);
      };
    }`;
  const run = startDev({
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(throwOnceItListens)}`,
  });
  const { url } = await sendPrintedRequest(run);
  await expect.poll(() => run.output).toMatch(/thrown by a timer/);
  expect((await fetch(new URL('/health_check', url))).status).toBe(200);
  expect(run.output).toMatch(/ERROR: an error occurred outside of any request: the server continues/);
  run.child.kill('SIGINT');
  expect(await run.ended).toEqual([0, null]);
});

test('ATTEST=emulated attests under a root of its own, and prints that this proves nothing', async () => {
  for (const name of ['dev.pcrs', 'dev-root.pem', 'dev-root.key'])
    rmSync(new URL(name, OUT), { force: true });
  const run = startDev({ ATTEST: 'emulated' });
  const { url } = await sendPrintedRequest(run);
  expect(run.output).toMatch(/proves? nothing/);
  const { attestation } = (await (await fetch(new URL('/get_attestation?nonce=abcd', url))).json()) as {
    attestation: string;
  };
  expect(attestation).toMatch(/^(d2)?8444a1013822/);
  expect(readFileSync(new URL('dev.pcrs', OUT), 'utf8')).toMatch(
    /^([0-9a-f]{96}) PCR0\n(?!\1)[0-9a-f]{96} PCR1\n[0-9a-f]{96} PCR2\n$/,
  );
  expect(readFileSync(new URL('dev-root.pem', OUT), 'utf8')).toMatch(/^-----BEGIN CERTIFICATE-----/);
  // The printed line works. Without the root, clients do not accept the server as an enclave.
  const [, line = ''] = /npx --offline sui-enclave verify (.*)/.exec(run.output) ?? [];
  const args = line.split(' ');
  expect(args).toEqual([new URL(url).origin, '--pcrs', 'out/dev.pcrs', '--root', 'out/dev-root.pem']);
  const verify = (args: string[]) =>
    spawnSync(process.execPath, [VERIFY, ...args], { cwd: ROOT, encoding: 'utf8' });
  expect(verify(args)).toMatchObject({ status: 0, stdout: expect.stringMatching(/TRUSTED/) });
  expect(verify(args.slice(0, 3))).toMatchObject({ status: 1, stdout: expect.stringMatching(/CHAIN_ROOT/) });
});

test('EMULATED_IMAGE=2 attests to other registers, under the root in the folder that OUT names', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-dev-out-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const options = ['--root', join(folder, 'dev-root.pem'), '--json'];
  const fetchVerdict = (url: string, pcrs: string) => {
    const args = [VERIFY, new URL(url).origin, '--pcrs', join(folder, pcrs), ...options];
    return JSON.parse(spawnSync(process.execPath, args, { encoding: 'utf8' }).stdout);
  };
  const first = await sendPrintedRequest(startDev({ ATTEST: 'emulated', OUT: folder }));
  const second = await sendPrintedRequest(startDev({ ATTEST: 'emulated', OUT: folder, EMULATED_IMAGE: '2' }));
  expect(fetchVerdict(first.url, 'dev.pcrs')).toMatchObject({ verdict: 'trusted' });
  expect(fetchVerdict(second.url, 'dev.2.pcrs')).toMatchObject({ verdict: 'trusted' });
  expect(fetchVerdict(second.url, 'dev.pcrs')).toMatchObject({ code: 'POLICY_PCRS' });
});

test('a second make dev on the same port reports the conflict, and does not change the files of the first', async () => {
  const first = startDev({ ATTEST: 'emulated' });
  const { url } = await sendPrintedRequest(first);
  const root = readFileSync(new URL('dev-root.pem', OUT), 'utf8');
  const second = startDev({ ATTEST: 'emulated', PORT: new URL(url).port });
  expect(await second.ended).toEqual([1, null]);
  expect(second.output).toMatch(/^sui-enclave dev: can't listen on .* set PORT to another port\n$/);
  expect(readFileSync(new URL('dev-root.pem', OUT), 'utf8')).toBe(root);
});

test('APP=salt returns the salt of a token that a fake of Google signed', async () => {
  const run = startDev({ APP: 'salt', ATTEST: 'emulated' });
  const { answer } = await sendPrintedRequest(run);
  // Another application has other registers, in a file of its own.
  expect(run.output).toMatch(/^Attestation is emulated .* Registers: out\/dev-salt\.pcrs\.$/m);
  expect(run.output).toMatch(/npx --offline sui-enclave verify \S+ --pcrs out\/dev-salt\.pcrs --root/);
  expect(run.output).toMatch(/^Client id: development, of https:\/\/accounts\.google\.com\./m);
  expect(answer.status).toBe(200);
  expect(await answer.json()).toEqual({ salt: expect.stringMatching(/^\d{30,39}$/) });
});

test('an application finds its files as in the image, from any folder', async () => {
  const copy = mkdtempSync(join(tmpdir(), 'sui-enclave-site-'));
  onTestFinished(() => rmSync(copy, { recursive: true }));
  for (const path of ['src', 'package.json', 'package-lock.json', 'enclave/pcr1.txt']) {
    const filter = (source: string) => !source.includes('node_modules');
    cpSync(join(ROOT, path), join(copy, path), { recursive: true, filter });
  }
  cpSync(join(ROOT, 'test/fixtures/apps/site'), join(copy, 'src/apps/site'), { recursive: true });
  shareModules(ROOT, copy);
  const run = startDev({ APP: 'site', OUT: 'elsewhere', ATTEST: 'emulated' }, copy);
  await expect.poll(() => run.output).toMatch(/--root elsewhere\/dev-root\.pem/);
  const [, url = ''] =
    /npx --offline sui-enclave verify (\S+) --pcrs elsewhere\/dev-site\.pcrs/.exec(run.output) ?? [];
  for (const path of ['home', 'static/index.html']) {
    const answer = await fetch(new URL(`/site/${path}`, url));
    expect(await answer.text()).toBe('<!doctype html><title>Site</title>\n');
  }
  run.child.kill('SIGINT');
  await run.ended;
  writeFileSync(join(copy, 'src/apps/site/public/.env'), 'KEY=1');
  const refusedRun = startDev({ APP: 'site' }, copy);
  expect(await refusedRun.ended).toEqual([1, null]);
  expect(refusedRun.output).toMatch(/^sui-enclave dev: app\.yaml, files: "public\/\.env" is a hidden file/);
});

test('an unknown ATTEST, or a mistake in the configuration, stops make dev with an error of one line', async () => {
  for (const [env, message] of [
    [{ ATTEST: 'true' }, 'sui-enclave dev: ATTEST must be emulated, or not set\n'],
    [{ EMULATED_IMAGE: '0' }, 'sui-enclave dev: EMULATED_IMAGE must be an integer from 1 to 9\n'],
    [{ PORT: 'x' }, 'sui-enclave dev: PORT must be an integer from 0 to 65535\n'],
  ] as const) {
    const run = startDev(env);
    expect(await run.ended).toEqual([1, null]);
    expect(run.output).toBe(message);
  }
});

describe('a save', () => {
  let copy: string;
  beforeAll(() => {
    copy = mkdtempSync(join(tmpdir(), 'sui-enclave-dev-'));
    for (const path of ['src', 'scripts', 'package.json', 'package-lock.json', 'enclave/pcr1.txt']) {
      const filter = (source: string) => !source.includes('node_modules');
      cpSync(join(ROOT, path), join(copy, path), { recursive: true, filter });
    }
    shareModules(ROOT, copy);
  });
  afterAll(() => rmSync(copy, { recursive: true }));

  /** Saves as `sed -i`, git and many editors do: a new file takes the name of the old one. */
  function saveByRename(path: string, change: (text: string) => string): void {
    const file = join(copy, path);
    writeFileSync(`${file}.new`, change(readFileSync(file, 'utf8')));
    renameSync(`${file}.new`, file);
  }

  const countStarts = (run: { output: string }) => run.output.split('INFO: listening').length - 1;
  const fetchKey = async (url: string) =>
    ((await (await fetch(new URL('/health_check', url))).json()) as { pk: string }).pk;

  test('restarts only the make dev that has loaded the file, and the emulated enclave keeps its key', async () => {
    const [weather, salt] = [
      startDev({ ATTEST: 'emulated' }, copy),
      startDev({ APP: 'salt', ATTEST: 'emulated' }, copy),
    ];
    const { url } = await sendPrintedRequest(weather);
    const { url: saltUrl } = await sendPrintedRequest(salt);
    const [key, saltKey] = [await fetchKey(url), await fetchKey(saltUrl)];
    // The two servers have different keys.
    expect(key).not.toBe(saltKey);

    // No server has loaded these files.
    saveByRename('src/library/sui/send.ts', (text) => `${text}\n`);
    saveByRename('src/toolchain/dev/new_app.ts', (text) => `${text}\n`);
    const refusal = async () => {
      const headers = { 'content-type': 'application/json' };
      return (await fetch(url, { method: 'POST', headers, body: '{"payload":{"location":""}}' })).text();
    };
    for (const [index, word] of ['first', 'second'].entries()) {
      const types = 'src/apps/weather/types.ts';
      saveByRename(types, (text) => text.replace(/'must \w+ a place'/, `'must ${word} a place'`));
      await expect.poll(() => countStarts(weather)).toBe(index + 2);
      await expect.poll(() => refusal().catch(() => '')).toContain(`must ${word} a place`);
      expect(await fetchKey(url)).toBe(key);
    }
    expect(countStarts(weather)).toBe(3);
    expect(countStarts(salt)).toBe(1);
    expect(await fetchKey(saltUrl)).toBe(saltKey);

    // Both servers have loaded this file.
    saveByRename('src/server/boot.ts', (text) => `${text}\n`);
    await expect.poll(() => [countStarts(weather), countStarts(salt)]).toEqual([4, 2]);
    await expect.poll(() => fetchKey(saltUrl).catch(() => '')).toBe(saltKey);

    weather.child.kill('SIGTERM');
    await weather.ended;
    const laterRun = startDev({ ATTEST: 'emulated' }, copy);
    expect(await fetchKey((await sendPrintedRequest(laterRun)).url)).not.toBe(key);
  });

  /** Appends lines to the weather application, and removes them when the test ends. */
  function appendToWeather(lines: string): void {
    const path = 'src/apps/weather/app.ts';
    const before = readFileSync(join(copy, path), 'utf8');
    saveByRename(path, (text) => `${text}${lines}`);
    onTestFinished(() => saveByRename(path, () => before));
  }

  test('leaves the key t working, which runs the tasks of the application', async () => {
    const folder = join(copy, 'src/apps/ticking');
    mkdirSync(folder);
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'app.yaml'), 'name: ticking\nendpoints: []\nsecrets: []\n');
    const app = `
      import { defineApp, task } from 'sui-enclave-server';
      let runs = 0;
      const run = async () => console.log('run', ++runs, 'of version 1');
      const tick = task({ name: 'tick', everyMs: 86_400_000, jitterMs: 0, timeoutMs: 1000, run });
      export default defineApp({ signs: [], create: () => ({ tasks: [tick] }) });\n`;
    writeFileSync(join(folder, 'app.ts'), app);
    // The process gets a terminal of its own, to which this test writes.
    const command = `${process.execPath} src/toolchain/dev/main.ts`;
    const child = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
      cwd: copy,
      env: { PATH: process.env['PATH'] ?? '', PORT: '0', APP: 'ticking', ATTEST: 'emulated' },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    onTestFinished(() => {
      child.kill('SIGKILL');
    });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    const ended = once(child, 'close');
    const expectOutput = (text: string) => expect.poll(() => output).toContain(text);
    await expectOutput('The key t runs each task now: tick.');
    await expectOutput('run 1 of version 1');
    child.stdin.write('t');
    await expectOutput('run 2 of version 1');
    saveByRename('src/apps/ticking/app.ts', (text) => text.replace('version 1', 'version 2'));
    await expectOutput('run 1 of version 2');
    child.stdin.write('t');
    await expectOutput('run 2 of version 2');
    child.stdin.write('\u0003');
    await ended;
    expect(output.split('The key t')).toHaveLength(2);
  });

  test('that breaks the syntax makes make dev print the file, line, column and code', async () => {
    const run = startDev({}, copy);
    await sendPrintedRequest(run);
    appendToWeather('const x = ;\n');
    const frame = /\/weather\/app\.ts:\d+:11: SyntaxError: .+\n(.*\n)?> \d+ \| const x = ;\n +\| {11}\^/;
    await expect.poll(() => run.output).toMatch(frame);
  });

  test('after which the application connects to another machine by fetch causes an error that names upstream()', async () => {
    appendToWeather(
      "setInterval(() => fetch('https://feed.invalid/').catch(({ cause }) => console.log(String(cause))), 200);\n",
    );
    const run = startDev({}, copy);
    const refusal =
      /a connection to feed\.invalid leaves this machine.*send requests to it by upstream\(\) of create/;
    await expect.poll(() => run.output).toMatch(refusal);
    expect((await sendPrintedRequest(run)).answer.status).toBe(200);
  });

  test.each(['gen/gen.ts', 'schema/schema.ts'])(
    'after which the application throws at import makes %s print the line',
    (command) => {
      appendToWeather("throw new Error('there is no feed');\n");
      const argv = [`src/toolchain/${command}`, 'weather'];
      const { status, stderr } = spawnSync(process.execPath, argv, { cwd: copy, encoding: 'utf8' });
      const frame =
        /\/weather\/app\.ts:\d+:7: Error: there is no feed\n(.*\n)?> \d+ \| throw new Error\('there is no feed'\);\n +\| {7}\^/;
      expect(stderr).toMatch(frame);
      expect(status).toBe(1);
    },
  );
});
