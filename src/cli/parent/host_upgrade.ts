/**
 * `sui-enclave host upgrade NAME`: on the parent instance, places another image for the next start of an
 * enclave.
 */
import { command, runAsProcess } from '../command.ts';
import { enclaveName, path } from '../values.ts';
import {
  type Host,
  isActive,
  nameUnits,
  placeImage,
  readFiles,
  readMemory,
  requireInstalled,
  thisHost,
} from './host.ts';
import { setUp } from './host_folders.ts';
import { chooseMemory } from './nitro_cli.ts';

export const main = command({
  name: 'host_upgrade',
  purpose: `Places another image for the next start of an installed enclave, with the relay and the units of this version. The
running enclave continues, and so does a relay of this version. If an older version installed the relay, the command
moves the relay's files to a separate folder and restarts the relay, which ends connections but no enclave.`,
  example: 'weather --eif out/nitro.eif',
  arguments: { name: { schema: enclaveName } },
  options: {
    eif: {
      value: '<file>',
      help: 'the image; the relay is beside it',
      schema: path,
      default: 'out/nitro.eif',
    },
  },
  run({ args: { name }, options: { eif } }, { env, io }) {
    const host = thisHost(env);
    const { pcr0, isNewRelay, isRelayRestarted, isRunning } = upgrade(host, name, eif);
    io.log(`The next start of ${name} runs PCR0 ${pcr0}.`);
    if (isRunning) {
      io.log(
        `The enclave that runs keeps its image and its key. Its next start uses the new image, and makes a new key, which must be registered: systemctl restart ${nameUnits(name)[0]}`,
      );
    }
    if (isRelayRestarted) {
      io.log(
        'The relay was restarted, since it now has its own folders. This ended connections, but no enclave.',
      );
    } else if (isNewRelay) {
      io.log(
        'The next start of the relay runs the new relay. This ends connections, but no enclave: systemctl restart sui-enclave-relay',
      );
    }
    return { json: { name, pcr0, isNewRelay, isRelayRestarted, isRunning } };
  },
});

interface Upgrade {
  readonly pcr0: string;
  readonly isNewRelay: boolean;
  readonly isRelayRestarted: boolean;
  readonly isRunning: boolean;
}

/**
 * Places another image.
 *
 * @throws UsageError, also if the image needs more memory than the enclave's settings give; ParentError:
 *   WRONG_STATE
 */
export function upgrade(host: Host, name: string, eif: string): Upgrade {
  requireInstalled(host, name);
  const files = readFiles(eif);
  chooseMemory(readMemory(host, name), files.image.bytes);
  const { isNewRelay } = placeImage(host, name, files);
  const isRelayRestarted = setUp(host, name);
  return {
    pcr0: files.image.registers.pcr0,
    isNewRelay,
    isRelayRestarted,
    isRunning: isActive(host, name),
  };
}

if (import.meta.main) await runAsProcess(main);
