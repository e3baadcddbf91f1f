import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { measureImage } from '../../../../src/cli/image/eif/measure.ts';
import { readEif } from '../../../../src/cli/image/eif/read.ts';
import { chooseMemory } from '../../../../src/cli/parent/nitro_cli.ts';
import { NITRO_CODES } from '../../../../src/cli/parent/nitro_codes.ts';
import { formatPcrs } from '../../../../src/library/attestation/image.ts';
import { spawnScript } from '../run.ts';
import { Parent } from './fakes.ts';

describe('run_enclave', () => {
  test('runs the image under its name', async () => {
    const parent = new Parent();
    const eif = parent.makeImage();
    const { status, stdout } = await parent.run('run_enclave.ts', ['--eif', eif, '--memory', '600']);
    expect(status).toBe(0);
    expect(stdout).toMatch(/^i-1-enc1 runs as CID 16 with 600 MiB\./);
    expect(stdout).toMatch(measureImage(readEif(readFileSync(eif))).pcr0);
    expect(parent.calls('nitro-cli')).toContain(
      `nitro-cli run-enclave --enclave-name sui-enclave --eif-path ${eif} --enclave-cid 16 --cpu-count 2 --memory 600`,
    );
  });

  test.each([
    ['512 MiB to a small image', 128 * 1024 ** 2, 512],
    ['four times its size in whole MiB to a larger image', 128 * 1024 ** 2 + 1, 513],
    ['four times its size to a large image', 1024 ** 3, 4096],
  ])('gives %s, and refuses less', (_case, bytes, memoryMib) => {
    expect(chooseMemory(undefined, bytes)).toBe(memoryMib);
    expect(chooseMemory(memoryMib, bytes)).toBe(memoryMib);
    const refused = new RegExp(`^--memory must be at least ${memoryMib} MiB: four times the image's size$`);
    expect(() => chooseMemory(memoryMib - 1, bytes)).toThrow(refused);
  });

  test('gives an image the minimum memory by default', async () => {
    const parent = new Parent();
    expect((await parent.run('run_enclave.ts', ['--eif', parent.makeImage()])).stdout).toMatch(/512 MiB/);
  });

  test('with --json prints JSON alone on standard output, and the console of a debug enclave on standard error', async () => {
    const parent = new Parent();
    const eif = parent.makeImage();
    const { stdout, stderr } = await parent.run('run_enclave.ts', ['--eif', eif, '--json']);
    const { pcr0 } = measureImage(readEif(readFileSync(eif)));
    expect(JSON.parse(stdout)).toEqual({ id: 'i-1-enc1', cid: 16, memoryMib: 512, debug: false, pcr0 });
    expect(stderr).toMatch(/^i-1-enc1 runs as CID 16/);
    const debug = await spawnScript(
      'parent/run_enclave.ts',
      ['--eif', eif, '--name', 'other', '--debug', '--json'],
      { env: parent.env },
    );
    expect(JSON.parse(debug.stdout)).toMatchObject({ memoryMib: 512, debug: true });
    expect(debug.stderr).toMatch(/must not be registered\.\nthe console\n/);
  });

  test('refuses a second enclave of the same name', async () => {
    const parent = new Parent();
    const eif = parent.makeImage();
    await parent.run('run_enclave.ts', ['--eif', eif]);
    const { status, stderr } = await parent.run('run_enclave.ts', ['--eif', eif]);
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /^WRONG_STATE: an enclave named sui-enclave runs already: give another --name, or run stop_enclave first/,
    );
    expect((await parent.run('run_enclave.ts', ['--eif', eif, '--name', 'other'])).status).toBe(0);
  });

  test('as a process in debug mode, warns against a registration, and ends with its console on SIGTERM', async () => {
    const parent = new Parent();
    parent.set('console stays', 'true');
    const child = parent.start('run_enclave.ts', ['--debug', '--eif', parent.makeImage()]);
    let output = '';
    child.stdout?.on('data', (chunk) => (output += chunk));
    // The output closes when the console, too, has closed its end of the pipe.
    const closed = once(child, 'close');
    await expect.poll(() => output).toMatch(/must not be registered\.\nthe console\n/);
    expect(parent.calls().find((call) => call.includes('run-enclave'))).toMatch(/--debug-mode$/);
    child.kill('SIGTERM');
    await closed;
  });

  test('looks for the image where the build writes it', async () => {
    const parent = new Parent();
    const { status, stderr } = await spawnScript('parent/run_enclave.ts', [], {
      env: parent.env,
      cwd: parent.dir,
    });
    expect(status).toBe(2);
    expect(stderr).toBe(
      "USAGE: out/nitro.eif can't be read (ENOENT): build it with sui-enclave build, or copy it here. See sui-enclave run_enclave --help\n",
    );
  });

  test("terminates an enclave whose registers are not the image's", async () => {
    const parent = new Parent();
    const { status, stderr } = await parent.run('run_enclave.ts', ['--eif', parent.makeImage()], {
      NITRO_PCR0: 'ab',
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(/^WRONG_STATE: the enclave was terminated: its PCR0 is ab/);
    expect(parent.calls()).toContain('nitro-cli terminate-enclave --enclave-id i-1-enc1');
  });

  test('refuses an image that does not match the registers beside it', async () => {
    const parent = new Parent();
    const eif = parent.makeImage();
    writeFileSync(eif.replace('.eif', '.pcrs'), formatPcrs({ pcr0: '1', pcr1: '2', pcr2: '3' }));
    for (const mode of [[], ['--foreground']]) {
      const { status, stderr } = await parent.run('run_enclave.ts', ['--eif', eif, ...mode]);
      expect(status).toBe(2);
      expect(stderr).toMatch(/x\.pcrs does not have the registers of/);
    }
    expect(parent.calls('nitro-cli').filter((call) => call.includes('run-enclave'))).toEqual([]);
  });

  test('has the relay accept reports before the enclave starts, and connect the enclave to its upstreams', async () => {
    const parent = new Parent();
    const eif = parent.makeImage();
    const { stderr } = await parent.run('run_enclave.ts', ['--eif', eif], { NITRO_RUN_FAILS: '[ E36 ] x' });
    expect(stderr).toMatch(/^NITRO_FAILED: E36/);
    // An enclave that failed to start is not served, and a relay without an enclave ends.
    expect([parent.conf(), parent.relayPid]).toEqual([undefined, undefined]);
    await parent.run('run_enclave.ts', ['--eif', eif]);
    expect(parent.conf()).toBe('cid 16\nupstream 8101 api.weatherapi.com\n');
    const report = connect({ host: `${parent.network}.3`, port: 7778, localAddress: `${parent.network}.16` });
    report.end('{"event":"boot"}\n');
    await once(report.resume(), 'close');
    expect(readFileSync(`${parent.state}/reports.jsonl`, 'utf8')).toBe('{"event":"boot"}\n');
  });

  test('gives each enclave a CID of its own', async () => {
    const parent = new Parent();
    parent.setEnclave({ EnclaveCID: 17 });
    const eif = parent.makeImage();
    const cids: number[] = [];
    for (const name of ['a', 'b', 'c']) {
      const { stdout } = await parent.run('run_enclave.ts', ['--eif', eif, '--name', name, '--json']);
      cids.push(JSON.parse(stdout).cid);
    }
    expect(cids).toEqual([16, 18, 19]);
    expect(
      JSON.parse(`[${parent.read('enclaves')}]`).map((enclave: { EnclaveCID: number }) => enclave.EnclaveCID),
    ).toEqual([17, ...cids]);
  });

  test('repeats the report of an enclave that ended during its boot, and no reports of earlier enclaves', async () => {
    const parent = new Parent();
    const run = async (reports: string) => {
      const env = { NITRO_RUN_FAILS: '[ E36 ] x', NITRO_REPORTS: reports };
      return (await parent.run('run_enclave.ts', ['--eif', parent.makeImage()], env)).stderr;
    };
    expect(
      await run('{"event":"failed","code":"CONFIG"}\n{"event":"end","reason":"the server ended"}\n'),
    ).toMatch(/^NITRO_FAILED: E36: .*\nThe enclave reported: the server ended \(CONFIG\)\n$/);
    expect(await run('')).toMatch(/^NITRO_FAILED: E36: .*\n$/);
  });

  test.each([
    [['--memory', '100'], {}, /--memory must be at least 512 MiB/],
    [['--memory', 'much'], {}, /--memory must be an integer from 1 to/],
    [['--cpus', '0'], {}, /--cpus must be an integer from 1 to/],
    [
      [],
      { NITRO_FAILS: '[ E27 ] Insufficient memory available.' },
      /NITRO_FAILED: E27: Too little memory is reserved/,
    ],
    [[], { NITRO_FAILS: '[ E39 ] x\n[ E36 ] y' }, /E39: .*\nE36: /],
    [[], { NITRO_FAILS: 'no code' }, /NITRO_FAILED: nitro-cli failed: no code/],
  ])('ends with advice (%j, %j)', async (args, env, message) => {
    const parent = new Parent();
    const eif = ['--eif', parent.makeImage()];
    const { status, stderr } = await parent.run(
      'run_enclave.ts',
      [...eif, ...args],
      env as Record<string, string>,
    );
    expect(status).toBe(stderr.startsWith('USAGE') ? 2 : 1);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test('reports that nitro-cli is missing', async () => {
    const parent = new Parent(['nitro-cli']);
    const { stderr } = await parent.run('run_enclave.ts', ['--eif', parent.makeImage()]);
    expect(stderr).toBe(
      'PROGRAM_FAILED: nitro-cli is not installed here: on the parent instance, the command doctor shows what is missing\n',
    );
  });
});

test('every code of nitro-cli 1.5 is explained, and no other', () => {
  const codes = Array.from({ length: 60 }, (_, number) => `E${String(number).padStart(2, '0')}`);
  expect(Object.keys(NITRO_CODES)).toEqual(codes);
  for (const text of Object.values(NITRO_CODES)) expect(text.length).toBeGreaterThan(30);
});
