/** `npm run status`: a config, its enclaves, and whether a running enclave is one of them. */
import type { EnclaveConfig } from '../../src/sui/objects.ts';
import { runAsProcess } from '../command.ts';
import type { Chain } from './chain.ts';
import { ROOT_OPTION, suiCommand } from './command.ts';

/** The running enclave, and whether its key may sign for the application. */
async function live(url: string, config: EnclaveConfig, chain: Chain, roots: Uint8Array[] | undefined) {
  const { toHex } = await import('@mysten/sui/utils');
  const { AttestationError, verifyAttestation } = await import('../../src/attestation/index.ts');
  const { attestedKey, fetchAttestation } = await import('../../src/client/attestation.ts');
  const { ClientError } = await import('../../src/client/errors.ts');
  const { findRegistration } = await import('../../src/sui/objects.ts');
  const { enclaveAt } = await import('./contract.ts');
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

export const main = suiCommand({
  name: 'status',
  purpose:
    "Prints a config, its registered enclaves and which of them are stale. With a URL, it attests the enclave there and\nsays whether its key is registered; exit code 1 if it is not registered, may not speak, or can't be trusted.",
  positionals: ['enclave_config_id', 'enclave_url'],
  optional: 1,
  options: ROOT_OPTION,
  plan: ({ args: { enclave_config_id: id, enclave_url: url } }) => [
    `read the config ${id}, and every enclave registered under it`,
    ...(url === undefined
      ? []
      : [`attest the enclave at ${url} against the config's registers, and look up its key`]),
  ],
  async run({ args, options }, chain) {
    const { enclave_config_id: configId = '', enclave_url: url } = args;
    const { toHex } = await import('@mysten/sui/utils');
    const { isKeyTooOld, isStale, listEnclaves, readConfig } = await import('../../src/sui/objects.ts');
    const { readRoots } = await import('./contract.ts');
    const roots = await readRoots(chain, options);
    const config = await readConfig(chain.client, configId);
    const { enclaves, destroyed } = await listEnclaves(chain.client, config);
    const running = url === undefined ? undefined : await live(url, config, chain, roots);
    const { image, ...shown } = config;
    const now = Date.now();
    const speaks = (id: string) =>
      enclaves.some((enclave) => enclave.id === id && !isKeyTooOld(enclave, config, now));
    return {
      status: 'done',
      title: `The config ${JSON.stringify(config.name)} at version ${config.configVersion}${config.isRetired ? ', retired' : ''}`,
      fields: {
        config: { ...shown, ...image },
        enclaves: enclaves.map((enclave) => ({
          id: enclave.id,
          publicKey: toHex(enclave.publicKey),
          configVersion: enclave.configVersion,
          registeredAt: new Date(Number(enclave.registeredAtMs)),
          stale: isStale(enclave, config),
          keyTooOld: isKeyTooOld(enclave, config, now),
        })),
        destroyed,
        ...(running && { live: running }),
      },
      alarm:
        running !== undefined &&
        (config.isRetired ||
          !(running.trusted && running.registration === 'registered' && speaks(running.enclave))),
    };
  },
});

if (import.meta.main) await runAsProcess(main);
