import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { formatPcrs, measureImage } from '../../../../src/commands/image/eif/measure.ts';
import { readEif } from '../../../../src/commands/image/eif/read.ts';
import { examine } from '../../../../src/commands/parent/checks.ts';
import { freePort } from '../../../enclave/init.ts';
import { spawnScript } from '../run.ts';
import { Parent } from './fakes.ts';

let parent: Parent;
let eif: string;

function put(file: string, text: string): void {
  mkdirSync(dirname(join(parent.dir, file)), { recursive: true });
  writeFileSync(join(parent.dir, file), text);
}

beforeEach(() => {
  parent = new Parent();
  eif = parent.makeImage();
  put('x.pcrs', formatPcrs(measureImage(readEif(readFileSync(eif)))));
  put('dev/nitro_enclaves', '');
  put('etc/nitro_enclaves/allocator.yaml', '---\nmemory_mib: 512\ncpu_count: 2\n');
  put('sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages', '256\n');
});
async function complaints(port?: number): Promise<string[]> {
  const { dir: root, env } = parent;
  const findings = await examine({ eif, cpus: 2, port: port ?? (await freePort()), root, env });
  return findings.filter(({ ok, text }) => !ok && !text.includes('group ne')).map(({ text }) => text);
}

describe('the doctor', () => {
  test('finds nothing wrong with a machine that is set up', async () => {
    expect(await complaints()).toEqual([]);
  });

  test.each<[string, () => void, RegExp]>([
    [
      'too little memory reserved',
      () => put('etc/nitro_enclaves/allocator.yaml', 'memory_mib: 256\ncpu_count: 2\n'),
      /reserves 256 MiB, and the image needs 512: raise memory_mib/,
    ],
    [
      'too few CPUs reserved',
      () => put('etc/nitro_enclaves/allocator.yaml', 'memory_mib: 512\ncpu_count: 1\n'),
      /reserves 1 CPUs, and 2 are needed: raise cpu_count/,
    ],
    [
      'too few hugepages',
      () => put('sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages', '100\n'),
      /200 MiB of hugepages are free, and 512 are needed/,
    ],
    [
      'another image than its registers',
      () =>
        put(
          'x.pcrs',
          'ab'.repeat(48).concat(' PCR0\n', 'ab'.repeat(48), ' PCR1\n', 'ab'.repeat(48), ' PCR2\n'),
        ),
      /not the image of its .pcrs/,
    ],
    [
      'no relay beside the image',
      () => rmSync(join(parent.dir, 'relay')),
      /\/relay is missing or can't be run: the build writes it beside the image/,
    ],
    ['a damaged image', () => put('x.eif', 'eif'), /shorter than the header/],
  ])('finds %s', async (_what, harm, message) => {
    harm();
    expect(await complaints()).toEqual([expect.stringMatching(message)]);
  });

  test('finds what is missing', async () => {
    const bare = new Parent(['nitro-cli']);
    const { dir: root, env } = bare;
    const findings = await examine({ eif: '/nowhere.eif', cpus: 2, port: await freePort(), root, env });
    const text = findings
      .filter(({ ok }) => !ok)
      .map((finding) => finding.text)
      .join('\n');
    expect(text).toMatch(/\/nowhere.eif can't be read: build it with make/);
    expect(text).toMatch(/nitro-cli is not installed/);
    expect(text).toMatch(/\/dev\/nitro_enclaves is missing/);
    expect(text).toMatch(/allocator.yaml is missing/);
    expect(text).toMatch(/the kernel has no hugepages/);
  });

  test('finds a port that is in use', async () => {
    const port = await freePort();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.close();
    });
    expect(await complaints(port)).toEqual([expect.stringMatching(`port ${port} is in use`)]);
  });

  test('explains a code of nitro-cli', async () => {
    expect(await parent.run('doctor.ts', ['e36'])).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^E36: The enclave sent no heartbeat/),
    });
    expect(await parent.run('doctor.ts', ['E99'])).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^USAGE: <code> must be a code of nitro-cli/),
    });
  });

  test('as a process ends with code 1 where something is wrong', async () => {
    const { status, stdout } = await spawnScript('parent/doctor.ts', ['--eif', '/nowhere.eif'], {
      env: parent.env,
    });
    expect(status).toBe(1);
    expect(stdout).toMatch(/^BAD \/nowhere.eif/m);
  });
});
