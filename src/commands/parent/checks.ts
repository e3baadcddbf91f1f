/** Checks for everything that may keep an enclave from running on this machine, each with advice. */
import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { parsePcrs } from 'sui-enclave/attestation/image';
import type { Environment } from '../command.ts';
import { measureImage } from '../image/eif/measure.ts';
import { readEif } from '../image/eif/read.ts';
import { memoryFor } from './nitro_cli.ts';
import { find, run } from './programs.ts';
import { relayOf } from './relay.ts';

export interface Finding {
  readonly ok: boolean;
  readonly text: string;
}

export interface DoctorOptions {
  readonly eif: string;
  readonly cpus: number;
  readonly port: number;
  /** The folder that holds the machine's files: `/`. */
  readonly root: string;
  readonly env: Environment;
}

export async function examine({ eif, cpus, port, root, env }: DoctorOptions): Promise<Finding[]> {
  const image = examineImage(eif);
  const neededMib = image.memoryMib ?? 512;
  return [
    ...image.findings,
    examineProgram(env, 'nitro-cli', 'install aws-nitro-enclaves-cli', '--version'),
    examineDevice(join(root, 'dev/nitro_enclaves')),
    examineGroup(env),
    examineAllocator(join(root, 'etc/nitro_enclaves/allocator.yaml'), neededMib, cpus),
    examineHugepages(join(root, 'sys/kernel/mm/hugepages'), neededMib),
    examineRelay(eif),
    await examinePort(port),
  ];
}

function examineImage(eif: string): { findings: Finding[]; memoryMib?: number } {
  let bytes: Buffer;
  try {
    bytes = readFileSync(eif);
  } catch {
    return { findings: [{ ok: false, text: `${eif} can't be read: build it with make` }] };
  }
  const memoryMib = memoryFor(bytes.length);
  try {
    const { pcr0 } = measureImage(readEif(bytes));
    const expected = parsePcrs(readFileSync(eif.replace(/\.eif$/, '.pcrs'), 'utf8')).pcr0;
    const ok = pcr0 === expected;
    const text = ok
      ? `${eif} is intact, and its registers are those of its build`
      : `${eif} is not the image of its .pcrs: build both again`;
    return { findings: [{ ok, text }], memoryMib };
  } catch (error) {
    return { findings: [{ ok: false, text: `${eif}: ${(error as Error).message}` }], memoryMib };
  }
}

function examineProgram(env: Environment, name: string, advice: string, versionOption?: string): Finding {
  if (!find(env, name)) return { ok: false, text: `${name} is not installed: ${advice}` };
  const version =
    versionOption === undefined ? '' : run(env, name, [versionOption]).stdout.trim().split('\n')[0];
  return { ok: true, text: version || `${name} is installed` };
}

function examineRelay(eif: string): Finding {
  try {
    return { ok: true, text: `the relay is ${relayOf(eif)}` };
  } catch (error) {
    return { ok: false, text: (error as Error).message };
  }
}

function examineDevice(path: string): Finding {
  if (!existsSync(path)) {
    return {
      ok: false,
      text: '/dev/nitro_enclaves is missing: the instance was not started with enclaves enabled',
    };
  }
  try {
    accessSync(path, constants.R_OK | constants.W_OK);
    return { ok: true, text: '/dev/nitro_enclaves exists' };
  } catch {
    return {
      ok: false,
      text: 'the user may not open /dev/nitro_enclaves: add the user to the group ne and log in again',
    };
  }
}

function examineGroup(env: Environment): Finding {
  const groups = run(env, 'id', ['-nG']).stdout.trim().split(/\s+/);
  const ok = userInfo().uid === 0 || groups.includes('ne');
  return ok
    ? { ok, text: 'the user may run enclaves' }
    : { ok, text: 'the user is not in the group ne: sudo usermod -aG ne $USER, and log in again' };
}

function examineAllocator(path: string, neededMib: number, cpus: number): Finding {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return { ok: false, text: `${path} is missing: install aws-nitro-enclaves-cli` };
  }
  const value = (key: string) => Number(new RegExp(`^${key}:\\s*(\\d+)\\s*$`, 'm').exec(text)?.[1] ?? 0);
  const [memory, count] = [value('memory_mib'), value('cpu_count')];
  const restart = 'and run sudo systemctl restart nitro-enclaves-allocator';
  if (memory < neededMib) {
    return {
      ok: false,
      text: `the allocator reserves ${memory} MiB, and the image needs ${neededMib}: raise memory_mib in ${path}, ${restart}`,
    };
  }
  if (count < cpus) {
    return {
      ok: false,
      text: `the allocator reserves ${count} CPUs, and ${cpus} are needed: raise cpu_count in ${path}, ${restart}`,
    };
  }
  return { ok: true, text: `the allocator reserves ${memory} MiB and ${count} CPUs` };
}

/** Free pages of every size, as the kernel counts them: the allocator's file says only what was requested. */
function examineHugepages(folder: string, neededMib: number): Finding {
  let freeKib = 0;
  try {
    for (const size of readdirSync(folder)) {
      const kib = Number(/^hugepages-(\d+)kB$/.exec(size)?.[1] ?? 0);
      freeKib += kib * Number(readFileSync(join(folder, size, 'free_hugepages'), 'utf8'));
    }
  } catch {
    return { ok: false, text: 'the kernel has no hugepages' };
  }
  const free = Math.floor(freeKib / 1024);
  return free >= neededMib
    ? { ok: true, text: `${free} MiB of hugepages are free` }
    : {
        ok: false,
        text: `${free} MiB of hugepages are free, and ${neededMib} are needed: stop another enclave, or restart nitro-enclaves-allocator`,
      };
}

function examinePort(port: number): Promise<Finding> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () =>
      resolve({ ok: false, text: `port ${port} is in use, by expose_enclave or by another program` }),
    );
    server.listen(port, '127.0.0.1', () =>
      server.close(() => resolve({ ok: true, text: `port ${port} is free` })),
    );
  });
}
