/** Explains nitro-cli's error codes (version 1.5), with advice. Its own messages often have neither. */
import { KEY_LOST, KEYS_LOST } from './host_faults.ts';

const RESTART_ALLOCATOR = `restart nitro-enclaves-allocator, ${KEYS_LOST}`;
const TRY_AGAIN = `try again, and reboot the instance if that fails, ${KEYS_LOST}`;
const START_AGAIN = `Stop the enclave, and start it again: ${KEY_LOST}.`;
const BUILDS =
  'Only nitro-cli build-enclave reports it, and this project builds images without nitro-cli: run sui-enclave build.';

export const NITRO_CODES: Readonly<Record<string, string>> = {
  E00: 'nitro-cli failed without a code of its own: see /var/log/nitro_enclaves/nitro_enclaves.log.',
  E01: 'An argument is missing: nitro-cli is called with arguments that this version does not know. Update aws-nitro-enclaves-cli.',
  E02: 'Two arguments exclude each other, such as --cpu-count and --cpu-ids: give one of them.',
  E03: 'An argument is not a number, or is out of range: check --cpus and --memory.',
  E04: `nitro-cli could not make a pair of sockets: is the machine out of memory or open files? Then ${TRY_AGAIN}.`,
  E05: 'nitro-cli could not start its helper process: is the machine out of memory or processes?',
  E06: `The enclave's helper process could not become a daemon: ${TRY_AGAIN}.`,
  E07: 'The folder of running enclaves, /run/nitro_enclaves, could not be read: is this user in the group ne?',
  E08: 'nitro-cli used a connection to an enclave that has ended: run doctor, which lists the enclaves that run.',
  E09: `A connection to an enclave's helper process could not be closed: ${TRY_AGAIN}.`,
  E10: 'The time limit of a connection could not be set, for example of the console: has the enclave ended? Run doctor, which lists the enclaves that run.',
  E11: `The socket of an enclave's helper process failed: run stop_enclave (${KEY_LOST}), then try again.`,
  E12: `nitro-cli could not wait for its connections (epoll): is the machine out of open files? Then ${TRY_AGAIN}.`,
  E13: `nitro-cli could not watch a file (inotify): raise fs.inotify.max_user_instances, or ${TRY_AGAIN}.`,
  E14: `The helper process does not know a command: nitro-cli was updated while the enclave ran. ${START_AGAIN}`,
  E15: `The helper process could not lock the enclave's state, after a fault of its own. ${START_AGAIN}`,
  E16: 'A thread of nitro-cli ended by a fault of its own: try again, and see /var/log/nitro_enclaves/nitro_enclaves.log.',
  E17: `nitro-cli and the helper process of an enclave do not understand each other: nitro-cli was updated while the enclave ran. ${START_AGAIN}`,
  E18: 'nitro-cli cannot write its log or its sockets: add the user to the group ne (sudo usermod -aG ne $USER) and log in again.',
  E19: 'A file could not be opened or written. With /dev/nitro_enclaves: was the instance started with enclaves enabled, and is this user in the group ne? Otherwise check the path of the image, and the free space.',
  E20: 'A CPU id was given twice: give a number of CPUs in place of ids, or each id once.',
  E21: `The CPUs are not in the pool: raise cpu_count in /etc/nitro_enclaves/allocator.yaml and ${RESTART_ALLOCATOR}.`,
  E22: `There are too few CPUs in the pool: raise cpu_count in /etc/nitro_enclaves/allocator.yaml and ${RESTART_ALLOCATOR}. Or stop another enclave: ${KEY_LOST}.`,
  E23: "The list of the machine's CPUs could not be read: does lscpu work, and print its output in English (LC_ALL=C)?",
  E24: `A range of CPUs in the pool is invalid: correct cpu_pool in /etc/nitro_enclaves/allocator.yaml, or use cpu_count, and ${RESTART_ALLOCATOR}.`,
  E25: `The kernel has hugepages of a size that nitro-cli does not know: use hugepages of 2 MiB or 1 GiB, and ${RESTART_ALLOCATOR}.`,
  E26: 'Too little memory was requested: an enclave needs at least four times the size of its image.',
  E27: `Too little memory is reserved: raise memory_mib in /etc/nitro_enclaves/allocator.yaml and ${RESTART_ALLOCATOR}. Or stop another enclave: ${KEY_LOST}.`,
  E28: 'The Nitro Enclaves driver could not make the virtual machine: was the instance started with enclaves enabled, and does it allow another enclave? An instance can run four.',
  E29: 'The Nitro Enclaves driver refused: was the instance started with enclaves enabled (EnclaveOptions Enabled=true)?',
  E30: 'The driver did not accept the image: is the file complete and in this format?',
  E31: `The driver did not accept the memory: hugepages are fragmented. Reboot, or ${RESTART_ALLOCATOR}.`,
  E32: 'The driver did not accept a CPU: give both hyper-threads of a core, and leave the first core to the parent.',
  E33: `The enclave did not start: the instance may not have enclaves enabled, or its memory may be fragmented. Then reboot, ${KEYS_LOST}.`,
  E34: 'The image does not fit into the address space: is the file complete and in this format?',
  E35: 'The image could not be read, or hugepages are missing: build it again, compare its SHA-256 with out/measurements.json, and run doctor for the memory.',
  E36: 'The enclave sent no heartbeat: it ended during its boot. Run it with --debug to read its console, and read its reports.jsonl, in the state folder or, with systemd, in /var/lib/sui-enclave-relay. Too little memory has the same effect: an enclave needs four times the size of its image.',
  E37: 'Waiting for the enclave failed: it may have ended. Run it with --debug to read its console.',
  E38: "The enclave's helper process did not execute the command: see /var/log/nitro_enclaves.",
  E39: "The enclave's helper process can't be reached: it ended with the enclave. Run it with --debug to read its console.",
  E40: 'The id of an enclave has no socket: does this enclave run? Run doctor, which lists the enclaves that run.',
  E41: "The enclave's helper process could not answer nitro-cli, which may have been interrupted: run doctor, which says whether the enclave runs.",
  E42: 'Memory for the enclave could not be mapped: are there enough free hugepages of one size?',
  E43: `Memory of an enclave could not be unmapped. To get it back, reboot the instance or ${RESTART_ALLOCATOR}.`,
  E44: "nitro-cli can't connect to the console: only an enclave in debug mode has one.",
  E45: 'The console ended because the enclave ended.',
  E46: 'The output of the console could not be written: the terminal, pipe or disk for it is closed or full.',
  E47: 'The CID of an enclave is not a number, or no enclave of this name runs: run doctor, which lists the enclaves that run.',
  E48: `The image could not be written. ${BUILDS}`,
  E49: `The container image could not be built. ${BUILDS}`,
  E50: `The container image could not be fetched. ${BUILDS}`,
  E51: 'NITRO_CLI_ARTIFACTS is not set: only nitro-cli build-enclave needs it, and this project builds images without nitro-cli.',
  E52: `NITRO_CLI_BLOBS is not set. ${BUILDS}`,
  E53: "The machine's clock went back while the console was read: run the console again.",
  E54: `nitro-cli could not block signals while it started the enclave: ${TRY_AGAIN}.`,
  E55: `nitro-cli could not unblock signals after it started the enclave: run doctor, which says whether the enclave runs; ${TRY_AGAIN}.`,
  E56: 'nitro-cli could not write its log: is this user in the group ne, which may write to /var/log/nitro_enclaves?',
  E57: 'nitro-cli could not measure the image: is the file complete and in this format?',
  E58: `The name of the enclave can't be used, or an enclave of this name runs already: give another name, or run stop_enclave first (${KEY_LOST}).`,
  E59: 'The signature of the image could not be checked: images of this project are not signed.',
};

/** Explains nitro-cli's output. If it contains several codes, the first is the cause. */
export function explainOutput(output: string): string {
  const codes = [...new Set(output.match(/\bE\d\d\b/g) ?? [])];
  const knownCodes = codes.filter((code) => NITRO_CODES[code] !== undefined);
  if (knownCodes.length === 0)
    return `nitro-cli failed${codes.length > 0 ? ` (${codes.join(', ')})` : ''}: ${output.trim()}`;
  return knownCodes.map((code) => `${code}: ${NITRO_CODES[code]}`).join('\n');
}
