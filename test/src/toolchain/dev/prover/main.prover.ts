/**
 * Runs `make prover` as its user does, with curl, a token of a local oidc-provider, snarkjs and @mysten/sui.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import {
  generateNonce,
  generateRandomness,
  getExtendedEphemeralPublicKey,
  getZkLoginSignature,
} from '@mysten/sui/zklogin';
import { expect, onTestFinished, test } from 'vitest';
import { buildInput } from '../../../../../src/prover/input.ts';
import { PROFILES } from '../../../../../src/prover/profile.ts';
import { CLIENTS, startProvider } from '../../../../../src/toolchain/dev/wallet/servers.ts';
import { builtArtifacts, CIRCUIT_SOURCES, ROOT } from '../../../../../src/toolchain/prover/artifacts.ts';
import { logInByHttp } from './log_in.ts';

const artifacts = builtArtifacts('small');
const SNARKJS = join(CIRCUIT_SOURCES, 'node_modules/snarkjs/build/cli.cjs');
const REDIRECT = 'http://127.0.0.1/back';
const MAX_EPOCH = 7;

interface Prover {
  readonly child: ChildProcess;
  readonly url: string;
  output(): string;
}

async function start(env: Record<string, string> = {}): Promise<Prover> {
  const { PATH = '', HOME = '', CACHE } = process.env;
  const child = spawn(process.execPath, [join(ROOT, 'src/toolchain/dev/prover/main.ts')], {
    env: { PATH, HOME, ...(CACHE !== undefined && { CACHE }), PORT: '0', ...env },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  await expect.poll(() => output).toMatch(/Ctrl-C ends it\.\n/);
  const [, url = ''] = /^(http\S+) {2}the proving service/m.exec(output) ?? [];
  return { child, url, output: () => output };
}

/** Returns all descendants of a process. */
function listDescendants(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .split(' ')
    .filter(Boolean)
    .map(Number);
  return children.flatMap((child) => [child, ...listDescendants(child)]);
}

/**
 * Sends a request by the real curl, with the body on its standard input. This can't be execFileSync, since
 * the provider answers in this process.
 */
async function curl(url: string, body: object) {
  const child = spawn('curl', ['-sS', url, '-H', 'Content-Type: application/json', '-d', '@-']);
  child.stdin.end(JSON.stringify(body));
  return JSON.parse(await text(child.stdout));
}

async function startLocalProvider(): Promise<string> {
  const { server, issuer } = await startProvider();
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return issuer;
}

test('make prover proves a token of a local oidc-provider: snarkjs verifies the proof, @mysten/sui assembles a signature', async () => {
  const issuer = await startLocalProvider();
  const { url, output } = await start({ ISSUER: issuer });
  const ephemeral = new Ed25519Keypair();
  const randomness = generateRandomness();
  const nonce = generateNonce(ephemeral.getPublicKey(), MAX_EPOCH, randomness);
  const query = {
    client_id: CLIENTS.implicit.clientId,
    response_type: 'id_token',
    scope: 'openid',
    redirect_uri: REDIRECT,
    nonce,
  };
  const jwt = await logInByHttp(`${issuer}/auth?${new URLSearchParams(query)}`, 'alice');
  const request = {
    jwt,
    extendedEphemeralPublicKey: getExtendedEphemeralPublicKey(ephemeral.getPublicKey()),
    maxEpoch: MAX_EPOCH,
    jwtRandomness: randomness,
    salt: '129390038577185583942388216820280642146',
    keyClaimName: 'sub',
  };
  const answer = await curl(url, request);
  expect(Object.keys(answer).sort()).toEqual(['headerBase64', 'issBase64Details', 'proofPoints']);

  const { keys } = (await (await fetch(`${issuer}/jwks`)).json()) as { keys: [{ n: string }] };
  const key = { kty: 'RSA', n: keys[0].n, e: 'AQAB' } as const;
  const { publicInput, addressSeed } = buildInput(request, key, PROFILES.small);
  const { a, b, c } = answer.proofPoints;
  const folder = mkdtempSync(join(tmpdir(), 'prover-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const verifies = (value: bigint) => {
    const [inputs, proof] = [join(folder, 'public.json'), join(folder, 'proof.json')];
    writeFileSync(inputs, JSON.stringify([String(value)]));
    writeFileSync(proof, JSON.stringify({ pi_a: a, pi_b: b, pi_c: c, protocol: 'groth16', curve: 'bn128' }));
    try {
      return execFileSync(
        process.execPath,
        [SNARKJS, 'groth16', 'verify', artifacts.verifyingKey, inputs, proof],
        {
          encoding: 'utf8',
        },
      ).includes('OK!');
    } catch {
      return false;
    }
  };
  expect(verifies(publicInput)).toBe(true);
  expect(verifies(publicInput + 1n)).toBe(false);
  const { signature } = await ephemeral.signPersonalMessage(new Uint8Array(1));
  const inputs = { ...answer, addressSeed: String(addressSeed) };
  expect(getZkLoginSignature({ inputs, maxEpoch: MAX_EPOCH, userSignature: signature })).toMatch(/^BQ/);

  for (const secret of [...jwt.split('.').slice(1), nonce, randomness, request.salt, 'alice', a[0]]) {
    expect(output()).not.toContain(secret);
  }
});

test('the printed command makes a proof; for a token that is too long, the error names the size that accepts it', async () => {
  const { url, output, child } = await start();
  const [, line = ''] = /^ {2}(curl .*)$/m.exec(output()) ?? [];
  const answer = JSON.parse(execFileSync('sh', ['-c', line], { encoding: 'utf8' }));
  expect(Object.keys(answer)).toContain('proofPoints');

  const [, requestUrl = ''] = /curl -s (\S+)/.exec(line) ?? [];
  const request = await (await fetch(`${requestUrl}?sub=${'x'.repeat(120)}&more=${'y'.repeat(200)}`)).json();
  expect(await curl(url, request as object)).toMatchObject({
    code: 'PROVER_PROFILE',
    error: expect.stringMatching(/sui-v1 \(small\) accepts 512.*make prover SIZE=full/),
  });

  const pids = listDescendants(child.pid as number);
  expect(pids.length).toBeGreaterThanOrEqual(2);
  child.kill('SIGINT');
  expect(await once(child, 'close')).toEqual([0, null]);
  for (const pid of pids) expect(existsSync(`/proc/${pid}/exe`)).toBe(false);
});

test('a backend that dies is reported, and nothing outlives a front end that is killed', async () => {
  const first = await start();
  const [backend = 0] = listDescendants(first.child.pid as number);
  process.kill(backend, 'SIGKILL');
  expect(await once(first.child, 'close')).toEqual([1, null]);
  expect(first.output()).toContain('make prover: the backend ended: SIGKILL');

  const second = await start();
  const pids = listDescendants(second.child.pid as number);
  second.child.kill('SIGKILL');
  await once(second.child, 'close');
  await expect.poll(() => pids.filter((pid) => existsSync(`/proc/${pid}/exe`))).toEqual([]);
});
