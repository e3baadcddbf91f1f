import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { measureImage } from '../../../scripts/image/eif/measure.ts';
import { readEif } from '../../../scripts/image/eif/read.ts';
import { NITRO_CODES } from '../../../scripts/parent/nitro_codes.ts';
import { Parent } from './stand_ins.ts';

describe('run_enclave', () => {
  test('runs the image with room for it, under its name', () => {
    const parent = new Parent();
    const eif = parent.makeImage(200 * 1024 ** 2);
    const { status, stdout } = parent.run('run_enclave.ts', ['--eif', eif]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^i-1-enc1 runs as CID 16 with 801 MiB\./);
    expect(stdout).toMatch(measureImage(readEif(readFileSync(eif))).pcr0);
    expect(parent.calls('nitro-cli')).toContain(
      `nitro-cli run-enclave --enclave-name sui-enclave --eif-path ${eif} --cpu-count 2 --memory 801`,
    );
  });

  test('gives a small image 512 MiB', () => {
    const parent = new Parent();
    expect(parent.run('run_enclave.ts', ['--eif', parent.makeImage()]).stdout).toMatch(/512 MiB/);
  });

  test('runs none beside another of its name', () => {
    const parent = new Parent();
    const eif = parent.makeImage();
    parent.run('run_enclave.ts', ['--eif', eif]);
    const { status, stderr } = parent.run('run_enclave.ts', ['--eif', eif]);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^WRONG_STATE: an enclave named sui-enclave runs already: run stop_enclave first/);
    expect(parent.run('run_enclave.ts', ['--eif', eif, '--name', 'other']).status).toBe(0);
  });

  test('in debug mode says that it proves nothing, and shows the console', () => {
    const parent = new Parent();
    const { stdout } = parent.run('run_enclave.ts', ['--debug', '--eif', parent.makeImage()]);
    expect(stdout).toMatch(/must not be registered/);
    expect(stdout).toMatch(/the console/);
    expect(parent.calls().find((call) => call.includes('run-enclave'))).toMatch(/--debug-mode$/);
  });

  test('in debug mode ends with its console on SIGTERM', async () => {
    const parent = new Parent();
    parent.set('console stays', true);
    const child = parent.start('run_enclave.ts', ['--debug', '--eif', parent.makeImage()]);
    let output = '';
    child.stdout?.on('data', (chunk) => (output += chunk));
    // When the console, too, has closed its end of the pipe.
    const closed = once(child, 'close');
    await expect.poll(() => output, { timeout: 10_000 }).toMatch(/^the console$/m);
    child.kill('SIGTERM');
    await closed;
  });

  test('ends an enclave that measures something else', () => {
    const parent = new Parent();
    const { status, stderr } = parent.run('run_enclave.ts', ['--eif', parent.makeImage()], {
      NITRO_PCR0: 'ab',
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(/the enclave was ended: its PCR0 is ab/);
    expect(parent.calls()).toContain('nitro-cli terminate-enclave --enclave-id i-1-enc1');
  });

  test('listens for its reports before it starts', () => {
    const parent = new Parent();
    parent.run('run_enclave.ts', ['--eif', parent.makeImage()]);
    const calls = parent.calls();
    const listening = calls.indexOf(
      `socat -u VSOCK-LISTEN:7778,reuseaddr,fork,backlog=128,max-children=16 OPEN:${parent.state}/reports.jsonl,creat,append`,
    );
    expect(listening).toBeGreaterThan(-1);
    expect(calls.findIndex((call) => call.includes('run-enclave'))).toBeGreaterThan(listening);
  });

  test('tells what an enclave said that ended during its boot, and nothing of those before it', () => {
    const parent = new Parent();
    const run = (reports: string) =>
      parent.run('run_enclave.ts', ['--eif', parent.makeImage()], {
        NITRO_RUN_FAILS: '[ E36 ] x',
        NITRO_REPORTS: reports,
      }).stderr;
    expect(run('{"event":"failed","code":"CONFIG"}\n{"event":"end","reason":"the server ended"}\n')).toMatch(
      /^NITRO_FAILED: E36: .*\nThe enclave said: the server ended \(CONFIG\)\n$/,
    );
    expect(run('')).toMatch(/^NITRO_FAILED: E36: .*\n$/);
  });

  test.each([
    [[], {}, /out\/nitro.eif can't be read \(ENOENT\): build it by make/],
    [['--memory', '100'], {}, /--memory must be at least 512 MiB/],
    [['--memory', 'much'], {}, /--memory must be a whole number from 1 to/],
    [['--cpus', '0'], {}, /--cpus must be a whole number from 1 to/],
    [
      [],
      { NITRO_FAILS: '[ E27 ] Insufficient memory available.' },
      /NITRO_FAILED: E27: Too little memory is reserved/,
    ],
    [[], { NITRO_FAILS: '[ E39 ] x\n[ E36 ] y' }, /E39: .*\nE36: /],
    [[], { NITRO_FAILS: 'no code' }, /NITRO_FAILED: nitro-cli failed: no code/],
  ])('ends with what to do (%j, %j)', (args, env, message) => {
    const parent = new Parent();
    const eif = message.source.includes('ENOENT') ? [] : ['--eif', parent.makeImage()];
    const { status, stderr } = parent.run('run_enclave.ts', [...eif, ...args], env as Record<string, string>);
    expect(status).toBe(stderr.startsWith('USAGE') ? 2 : 1);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test('says what is missing where nitro-cli is', () => {
    const parent = new Parent(['nitro-cli']);
    const { stderr } = parent.run('run_enclave.ts', ['--eif', parent.makeImage()]);
    expect(stderr).toBe(
      'PROGRAM_FAILED: nitro-cli is not installed here: on the parent instance, npm run doctor tells what is missing\n',
    );
  });
});

test('every explained code is one of nitro-cli', () => {
  for (const [code, text] of Object.entries(NITRO_CODES)) {
    expect(code).toMatch(/^E[0-5]\d$/);
    expect(text.length).toBeGreaterThan(30);
  }
});
