/** nitro-cli's error codes, explained, with advice. Its own messages often give neither. */
export const NITRO_CODES: Readonly<Record<string, string>> = {
  E05: 'nitro-cli could not start its helper process: is the machine out of memory or processes?',
  E07: 'The folder of running enclaves, /run/nitro_enclaves, could not be read: is this user in the group ne?',
  E11: "The socket of an enclave's helper process failed: run stop_enclave, then try again.",
  E18: 'nitro-cli cannot write its log or its sockets: add the user to the group ne (sudo usermod -aG ne $USER) and log in again.',
  E19: 'A file could not be opened or written: check the path of the image, and the free space.',
  E20: 'A CPU id was given twice: give a number of CPUs in place of ids, or each id once.',
  E21: 'The CPUs are not in the pool: raise cpu_count in /etc/nitro_enclaves/allocator.yaml and restart nitro-enclaves-allocator.',
  E22: 'There are too few CPUs in the pool: raise cpu_count in /etc/nitro_enclaves/allocator.yaml and restart nitro-enclaves-allocator, or stop another enclave.',
  E26: 'Too little memory was requested: an enclave needs at least four times the size of its image.',
  E27: 'Too little memory is reserved: raise memory_mib in /etc/nitro_enclaves/allocator.yaml and restart nitro-enclaves-allocator, or stop another enclave.',
  E28: 'The Nitro Enclaves driver could not make the virtual machine: was the instance started with enclaves enabled, and does it allow another enclave?',
  E29: 'The Nitro Enclaves driver refused: was the instance started with enclaves enabled (EnclaveOptions Enabled=true)?',
  E30: 'The driver did not accept the image: is the file complete and in this format?',
  E31: 'The driver did not accept the memory: hugepages are fragmented. Restart nitro-enclaves-allocator, or reboot.',
  E32: 'The driver did not accept a CPU: give both hyper-threads of a core, and leave the first core to the parent.',
  E33: 'The enclave did not start: the instance may not have enclaves enabled, or its memory may be fragmented. Try again after a reboot.',
  E35: 'The image could not be read, or hugepages are missing: build it again, compare its SHA-256 with out/measurements.json, and run doctor for the memory.',
  E36: 'The enclave sent no heartbeat: it ended during its boot. Run it with --debug to read its console, and read reports.jsonl in its state folder. Too little memory has the same effect: an enclave needs four times the size of its image.',
  E37: 'Waiting for the enclave failed: it may have ended. Run it with --debug to read its console.',
  E38: "The enclave's helper process did not carry the command out: see /var/log/nitro_enclaves.",
  E39: "The enclave's helper process can't be reached: it ended with the enclave. Run it with --debug to read its console.",
  E42: 'Memory for the enclave could not be mapped: are there enough free hugepages of one size?',
  E44: "nitro-cli can't connect to the console: only an enclave in debug mode has one.",
  E45: 'The console ended because the enclave ended.',
  E51: 'NITRO_CLI_ARTIFACTS is not set: only building images by nitro-cli needs it, and this project does not.',
  E56: 'nitro-cli could not write its log: is this user in the group ne, which may write to /var/log/nitro_enclaves?',
  E57: 'nitro-cli could not measure the image: is the file complete and in this format?',
  E58: "The name of the enclave can't be used, or an enclave of this name runs already: run stop_enclave first.",
  E59: 'The signature of the image could not be checked: images of this project are not signed.',
};

/** Explains nitro-cli's output, which may hold several codes; the first is the cause. */
export function explain(output: string): string {
  const codes = [...new Set(output.match(/\bE\d\d\b/g) ?? [])];
  const known = codes.filter((code) => NITRO_CODES[code] !== undefined);
  if (known.length === 0)
    return `nitro-cli failed${codes.length > 0 ? ` (${codes.join(', ')})` : ''}: ${output.trim()}`;
  return known.map((code) => `${code}: ${NITRO_CODES[code]}`).join('\n');
}
