/** `npm run status`: a config, its enclaves, and whether a running enclave is one of them. */

import { toHex } from '@mysten/sui/utils';
import { AttestationError, verifyAttestation } from '../../src/attestation/index.ts';
import { attestedKey, fetchAttestation } from '../../src/client/attestation.ts';
import { ClientError } from '../../src/client/errors.ts';
import {
  type EnclaveConfig,
  findRegistration,
  isStale,
  listEnclaves,
  readConfig,
} from '../../src/sui/objects.ts';
import type { Chain } from './chain.ts';
import { runCommand } from './command.ts';
import { enclaveAt, ROOT_OPTION, readRoots } from './contract.ts';

/** The running enclave, and whether its key may speak for the application. */
async function live(url: string, config: EnclaveConfig, chain: Chain, roots: Uint8Array[] | undefined) {
  const { document: attestation, nonce } = await fetchAttestation(enclaveAt(url));
  const policy = { images: [config.image], nonce };
  try {
    const verified = await verifyAttestation(attestation, {
      now: Date.now(),
      policy,
      ...(roots && { roots }),
    });
    const publicKey = attestedKey(verified);
    const { enclaveId, state } = await findRegistration(chain.client, config, publicKey);
    const registration = state === 'free' ? 'not registered' : state;
    return { url, trusted: true, publicKey: toHex(publicKey), registration, enclave: enclaveId };
  } catch (error) {
    const isVerdict =
      error instanceof AttestationError ||
      (error instanceof ClientError && error.code === 'CLIENT_ATTESTED_KEY');
    if (!isVerdict) throw error;
    return { url, trusted: false, code: error.code, reason: error.message };
  }
}

await runCommand({
  name: 'status',
  purpose:
    'Prints a config, its registered enclaves and which of them are stale. With a URL, it attests the enclave there and\nsays whether its key is registered; exit code 1 if it is not, or is not to be trusted.',
  positionals: ['enclave_config_id', 'enclave_url'],
  optional: 1,
  options: ROOT_OPTION,
  plan: ({ args: { enclave_config_id: id, enclave_url: url } }) => [
    `read the config ${id}, and every enclave registered under it`,
    ...(url === undefined
      ? []
      : [`attest the enclave at ${url} against the config's registers, and look its key up`]),
  ],
  async run({ args, options }, chain) {
    const { enclave_config_id: configId = '', enclave_url: url } = args;
    const roots = await readRoots(options);
    const config = await readConfig(chain.client, configId);
    const { enclaves, destroyed } = await listEnclaves(chain.client, config);
    const running = url === undefined ? undefined : await live(url, config, chain, roots);
    const { image, ...shown } = config;
    return {
      status: 'done',
      title: `The config ${JSON.stringify(config.name)} at version ${config.version}`,
      fields: {
        config: { ...shown, ...image },
        enclaves: enclaves.map((enclave) => ({
          id: enclave.id,
          publicKey: toHex(enclave.publicKey),
          version: enclave.configVersion,
          stale: isStale(enclave, config),
        })),
        destroyed,
        ...(running && { live: running }),
      },
      alarm: running !== undefined && !(running.trusted && running.registration === 'registered'),
    };
  },
});
