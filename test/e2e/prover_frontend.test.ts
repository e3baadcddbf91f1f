/**
 * Runs the proving service's front end as a process: with DEBUG=*, none of its libraries prints data of a
 * request.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const MAIN = fileURLToPath(new URL('../../src/prover/frontend/main.ts', import.meta.url));

test('with DEBUG=*, only the service prints lines, and they contain no secret of a request', async () => {
  const child = spawn(process.execPath, [MAIN, '0'], {
    env: { PROVER_URI: 'http://127.0.0.1:9/input', DEBUG: '*', LOG_LEVEL: 'trace' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (printed += chunk));
  await expect.poll(() => printed).toMatch(/"url":"/);
  const url = /"url":"([^"]+)"/.exec(printed)?.[1];
  const secret = 'hunter2.hunter2.hunter2';
  const numbers = { extendedEphemeralPublicKey: '5', maxEpoch: '1', jwtRandomness: '1', salt: '1' };
  for (const body of [{ jwt: secret }, { jwt: secret, ...numbers, keyClaimName: 'sub' }]) {
    const response = await fetch(`${url}/v1?jwt=${secret}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: secret },
      body: JSON.stringify(body),
    });
    expect(response.status).toBe(400);
  }
  await fetch(`${url}/${secret}`);
  await expect.poll(() => printed.match(/"status":/g)?.length).toBe(3);
  expect(printed).toContain('"name":"zkLogin:info"');
  expect(printed).not.toContain('hunter2');
  for (const line of printed.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('level');
});
