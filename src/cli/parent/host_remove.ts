/** `sui-enclave host remove NAME`: on the parent instance, removes an enclave that was installed. */
import { command, runAsProcess } from '../command.ts';
import { enclaveName } from '../values.ts';
import { ParentError } from './errors.ts';
import { disable, type Host, isActive, removeFiles, requireInstalled, thisHost } from './host.ts';
import { enclavesNamed, type RunningEnclave, terminateEnclave } from './nitro_cli.ts';
import { find } from './programs.ts';

export const main = command({
  name: 'host_remove',
  purpose: `Removes an installed enclave, with its image, settings, secrets and reports. If no other enclave is installed, the
command also removes the relay and the users. It refuses while the enclave runs.`,
  example: 'weather --stop',
  arguments: { name: { schema: enclaveName } },
  options: {
    stop: { help: 'end the enclave, if it runs: its key is lost' },
  },
  run({ args: { name }, options: { stop } }, { env, io }) {
    remove(thisHost(env), name, stop);
    io.log(`${name} is removed`);
    return { json: { name } };
  },
});

/**
 * Removes an enclave.
 *
 * @throws ParentError: WRONG_STATE, if the enclave is not installed, or if it runs and must not be stopped
 */
export function remove(host: Host, name: string, stop: boolean): void {
  requireInstalled(host, name);
  if (!stop && (isActive(host, name) || findEnclaves(host, name).length > 0)) {
    throw new ParentError('WRONG_STATE', `${name} runs: give --stop to end it, and lose its key`);
  }
  disable(host, name);
  // An enclave that its unit no longer watches may still run.
  for (const { EnclaveID } of findEnclaves(host, name)) terminateEnclave(host.env, EnclaveID);
  removeFiles(host, name);
}

function findEnclaves({ env }: Host, name: string): RunningEnclave[] {
  return find(env, 'nitro-cli') ? enclavesNamed(env, name) : [];
}

if (import.meta.main) await runAsProcess(main);
