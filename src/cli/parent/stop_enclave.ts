/** `sui-enclave stop_enclave`: on the parent instance, stops what run_enclave and expose_enclave started. */
import { command, type Environment, runAsProcess } from '../command.ts';
import { enclaveName } from '../values.ts';
import { waitForStarts } from './foreground.ts';
import { nameUnits } from './host.ts';
import { enclavesNamed, terminateEnclave } from './nitro_cli.ts';
import { removeConf } from './relay.ts';
import { readUnits } from './unit_states.ts';

export const main = command({
  name: 'stop_enclave',
  purpose:
    "Stops the enclaves of this name, and closes their ports and connections, but no others. With the last enclave, the\ncommand also stops this instance's relay. The keys of the enclaves are lost.",
  example: '--name sui-enclave',
  arguments: {},
  options: {
    name: { value: '<name>', help: 'the name of the enclaves', schema: enclaveName, default: 'sui-enclave' },
    'if-unit-dead': {
      help: 'do nothing unless the unit of this name is stopped or has failed; for systemd, as root',
    },
  },
  async run({ options: { name, 'if-unit-dead': isForUnit } }, { env, io }) {
    if (isForUnit) {
      if (!isUnitDead(env, name)) {
        io.log(`the unit of ${name} is not stopped: its enclave continues`);
        return { json: { stopped: [], terminated: [] } };
      }
      becomeEnclaveUser();
      // A start may still be under way, whose enclave nitro-cli does not list yet.
      await waitForStarts(env, name);
    }
    const enclaves = enclavesNamed(env, name);
    for (const { EnclaveID } of enclaves) {
      terminateEnclave(env, EnclaveID);
      io.log(`${EnclaveID}: terminated`);
    }
    if (enclaves.length === 0) io.log(`no enclave named ${name} runs`);
    const stopped = (await removeConf(env, name)) ? ['relay'] : [];
    for (const service of stopped) io.log(`${service}: stopped`);
    return { json: { stopped, terminated: enclaves.map(({ EnclaveID }) => EnclaveID) } };
  },
});

/**
 * Returns whether systemd has stopped the unit or given up on it. While it restarts the unit, a start is
 * pending.
 */
function isUnitDead(env: Environment, name: string): boolean {
  const [{ active, hasJob }] = readUnits(env, [nameUnits(name)[0]]);
  return (active === 'inactive' || active === 'failed') && !hasJob;
}

/** Becomes the user whose units run enclaves, and so gives up root's rights. */
function becomeEnclaveUser(): void {
  process.setgroups?.(['ne']);
  process.setgid?.('sui-enclave');
  process.setuid?.('sui-enclave');
}

if (import.meta.main) await runAsProcess(main);
