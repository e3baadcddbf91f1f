/** Checks for everything that may keep an enclave from running on this machine, each with advice. */
import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { userInfo } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { parsePcrs } from 'sui-enclave/attestation/image';
import { quantity } from 'sui-enclave/wording';
import type { Environment } from '../command.ts';
import { measureImage } from '../image/eif/measure.ts';
import { readEif } from '../image/eif/read.ts';
import { PROGRAM } from '../places.ts';
import { readRegularFile } from '../read_file.ts';
import { readRelease } from '../release.ts';
import { ParentError } from './errors.ts';
import { listInstalled } from './host.ts';
import { KEYS_LOST } from './host_faults.ts';
import { computeMinimumMemory, type RunningEnclave, runningEnclaves } from './nitro_cli.ts';
import { findPortHolder, listVsockHolders } from './ports.ts';
import { find, run } from './programs.ts';
import { findRelay } from './relay.ts';

export interface Finding {
  readonly ok: boolean;
  readonly text: string;
  /**
   * Whether the finding is only about room for one more enclave, and not about the enclaves that run here.
   */
  readonly isAboutAnother?: true;
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
  const { enclaves, findings } = examineEnclaves(env);
  const names = listInstalled({ root });
  // If nitro-cli does not say whether enclaves run, the advice must not end them.
  const isInUse = enclaves === undefined || enclaves.length > 0 || names.length > 0;
  const room = [
    examineAllocator(
      join(root, 'etc/nitro_enclaves/allocator.yaml'),
      { memory: neededMib, cpus },
      enclaves ?? [],
      isInUse,
    ),
    examineHugepages(join(root, 'sys/kernel/mm/hugepages'), neededMib, isInUse),
    await examinePort(port, root),
  ];
  return [
    ...(isInUse ? [pointToStatus(names)] : []),
    ...image.findings,
    examineNode(eif),
    examineProgram(env, 'nitro-cli', 'install aws-nitro-enclaves-cli', '--version'),
    ...findings,
    examineDevice(join(root, 'dev/nitro_enclaves')),
    examineGroup(env),
    examineRelay(eif),
    ...(isInUse ? room.map((finding) => ({ ...finding, isAboutAnother: true as const })) : room),
    ...listVsockHolders(env).map(({ port, holder }) => ({
      ok: true,
      text: `vsock port ${port} is held by ${holder}`,
    })),
  ];
}

function pointToStatus(names: readonly string[]): Finding {
  const subject =
    names.length === 0
      ? 'enclaves may run'
      : `${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} installed`;
  return {
    ok: true,
    text: `${subject} here: ${PROGRAM} host_status reports on them, and this command checks whether there is room for another enclave`,
  };
}

/**
 * Returns the enclaves that run, and findings. The enclaves are undefined if nitro-cli does not list them,
 * and empty if nitro-cli is missing, which another check reports.
 */
function examineEnclaves(env: Environment): { enclaves: RunningEnclave[] | undefined; findings: Finding[] } {
  if (!find(env, 'nitro-cli')) return { enclaves: [], findings: [] };
  try {
    const enclaves = runningEnclaves(env);
    const findings = enclaves.map((enclave) => ({ ok: true, text: describeEnclave(enclave) }));
    return { enclaves, findings: findings.length > 0 ? findings : [{ ok: true, text: 'no enclave runs' }] };
  } catch (error) {
    if (!(error instanceof ParentError)) throw error;
    return { enclaves: undefined, findings: [{ ok: false, text: error.message }] };
  }
}

function describeEnclave(enclave: RunningEnclave): string {
  const { EnclaveName, EnclaveID, EnclaveCID, NumberOfCPUs, MemoryMiB, Flags } = enclave;
  const resources = [
    ...(NumberOfCPUs === undefined ? [] : [quantity(NumberOfCPUs, 'CPU')]),
    ...(MemoryMiB === undefined ? [] : [`${MemoryMiB} MiB`]),
  ];
  return [
    `enclave ${EnclaveName ?? 'without a name'} (${EnclaveID}) runs as CID ${EnclaveCID}`,
    ...(resources.length > 0 ? [` with ${resources.join(' and ')}`] : []),
    ...(Flags?.includes('DEBUG_MODE') ? [', in debug mode'] : []),
  ].join('');
}

function examineImage(eif: string): { findings: Finding[]; memoryMib?: number } {
  let bytes: Buffer;
  try {
    bytes = readRegularFile(eif);
  } catch {
    return { findings: [{ ok: false, text: `${eif} can't be read: build it with sui-enclave build` }] };
  }
  const memoryMib = computeMinimumMemory(bytes.length);
  try {
    const { pcr0 } = measureImage(readEif(bytes));
    const expected = parsePcrs(readRegularFile(eif.replace(/\.eif$/, '.pcrs')).toString()).pcr0;
    const ok = pcr0 === expected;
    const text = ok
      ? `${eif} is intact, and its registers are those of its build`
      : `${eif} does not have the registers in its .pcrs file: build both again`;
    return { findings: [{ ok, text }], memoryMib };
  } catch (error) {
    return { findings: [{ ok: false, text: `${eif}: ${(error as Error).message}` }], memoryMib };
  }
}

/**
 * Describes the Node of an image. The finding is never a fault, since only the Node project knows the faults
 * of a release.
 */
function examineNode(eif: string): Finding {
  const { imageNode: pinned } = readRelease();
  const built = readRecordedNode(eif) ?? pinned;
  const difference = built === pinned ? '' : `, although this version pins ${pinned}`;
  return {
    ok: true,
    text: `Node ${process.versions.node} runs this program; the image has Node ${built}${difference}`,
  };
}

/**
 * Reads the file that the build writes beside an image if its Node is not the pinned one. The file is not
 * measured.
 */
function readRecordedNode(eif: string): string | undefined {
  const name = basename(eif, '.eif');
  const file = join(dirname(eif), name === 'nitro' ? 'measurements.json' : `${name}.measurements.json`);
  try {
    const version: unknown = JSON.parse(readFileSync(file, 'utf8')).node_version;
    return typeof version === 'string' && /^\d{1,4}\.\d{1,4}\.\d{1,4}$/.test(version) ? version : undefined;
  } catch {
    return undefined;
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
    return { ok: true, text: `the relay is ${findRelay(eif)}` };
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
      text: 'the user has no permission to open /dev/nitro_enclaves: add the user to the group ne and log in again',
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

/** Compares the memory that the allocator reserves with the memory that the running enclaves use. */
function examineAllocator(
  path: string,
  needed: { readonly memory: number; readonly cpus: number },
  enclaves: readonly RunningEnclave[],
  isInUse: boolean,
): Finding {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return { ok: false, text: `${path} is missing: install aws-nitro-enclaves-cli` };
  }
  const value = (key: string) => Number(new RegExp(`^${key}:\\s*(\\d+)\\s*$`, 'm').exec(text)?.[1] ?? 0);
  const [memory, cpus] = [value('memory_mib'), value('cpu_count')];
  const usedMemory = sum(enclaves.map(({ MemoryMiB = 0 }) => MemoryMiB));
  const usedCpus = sum(enclaves.map(({ NumberOfCPUs = 0 }) => NumberOfCPUs));
  const advice = (key: string) =>
    `raise ${key} in ${path} and run sudo systemctl restart nitro-enclaves-allocator${isInUse ? `, ${KEYS_LOST}` : ''}`;
  const uses = (used: string) => (usedMemory + usedCpus > 0 ? ` of which running enclaves use ${used},` : '');
  if (memory - usedMemory < needed.memory) {
    return {
      ok: false,
      text: `the allocator reserves ${memory} MiB,${uses(`${usedMemory}`)} and the image needs ${needed.memory}: ${advice('memory_mib')}`,
    };
  }
  if (cpus - usedCpus < needed.cpus) {
    return {
      ok: false,
      text: `the allocator reserves ${quantity(cpus, 'CPU')},${uses(`${usedCpus}`)} and ${needed.cpus} are needed: ${advice('cpu_count')}`,
    };
  }
  return {
    ok: true,
    text: `the allocator reserves ${memory} MiB and ${quantity(cpus, 'CPU')}: enough for the image, which needs ${needed.memory} MiB and ${quantity(needed.cpus, 'CPU')}`,
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Counts the kernel's free pages of every size. The allocator's file contains only what was requested. */
function examineHugepages(folder: string, neededMib: number, isInUse: boolean): Finding {
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
        text: `${free} MiB of hugepages are free, and ${neededMib} are needed: run sudo systemctl restart nitro-enclaves-allocator${isInUse ? `, ${KEYS_LOST}` : ''}`,
      };
}

/** Tries to listen on the port. The kernel's list serves only to name the program that has the port. */
function examinePort(port: number, root: string): Promise<Finding> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () =>
      resolve({
        ok: false,
        text: `port ${port} is in use, by ${findPortHolder(root, port) ?? 'an unknown program'}`,
      }),
    );
    server.listen(port, '127.0.0.1', () =>
      server.close(() => resolve({ ok: true, text: `port ${port} is free` })),
    );
  });
}
