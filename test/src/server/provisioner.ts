/** A provisioner, and an enclave that waits for its secrets, for the tests of sealed secrets. */
import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { decodeAttestation } from '../../../src/library/attestation/index.ts';
import { ConfigError } from '../../../src/library/errors.ts';
import type { EnclaveState, ProvisionerKey } from '../../../src/library/sealing/secrets.ts';
import { decodeUserData } from '../../../src/library/sealing/user_data.ts';
import { type ApplicationModule, endpoint } from '../../../src/server/application/app.ts';
import { EmulatedNsm } from '../../../src/testing/emulated_nsm.ts';
import { FIXTURE_APPS, startServer, type TestServer } from './support.ts';

export interface TestProvisioner extends ProvisionerKey {
  readonly privateKey: KeyObject;
  /** The provisioner's public key, as in app.yaml. */
  readonly hex: string;
}

export function newProvisioner(): TestProvisioner {
  const { publicKey: key, privateKey } = generateKeyPairSync('ed25519');
  const publicKey = Uint8Array.from(Buffer.from(key.export({ format: 'jwk' }).x as string, 'base64url'));
  return {
    publicKey,
    privateKey,
    hex: Buffer.from(publicKey).toString('hex'),
    sign: (message) => sign(null, message, privateKey),
  };
}

/** The secrets of the vault. The second set is refused by the vault's own check. */
export const VALUES = { VAULT_KEY: 'hunter2-hunter2-hunter2', OTHER: 'ü' };
export const REFUSED = { VAULT_KEY: 'wrong-wrong-wrong', OTHER: 'ü' };

/** An application with two secrets, which it checks. */
const module: ApplicationModule = {
  signs: [],
  create: ({ secret }) => ({
    checkSecrets({ VAULT_KEY }) {
      if (VAULT_KEY === REFUSED.VAULT_KEY) throw new ConfigError('VAULT_KEY has another fingerprint');
    },
    endpoints: [
      endpoint({
        method: 'GET',
        path: '/length',
        handle: async () => ({ length: secret('VAULT_KEY').length }),
      }),
    ],
  }),
};

export const nsm = new EmulatedNsm();

/** Starts the vault, which waits for its secrets and accepts only sealed ones. */
export async function startVault(
  options: Partial<Parameters<typeof startServer>[0]> & { provisioners?: readonly string[] } = {},
): Promise<TestServer> {
  const { provisioners, env, ...serverOptions } = options;
  const manifest = { endpoints: [], secrets: Object.keys(VALUES), ...(provisioners && { provisioners }) };
  return await startServer({
    apps: FIXTURE_APPS,
    manifest,
    module,
    nsm,
    version: '1.0.0',
    ...serverOptions,
    env: { APP: 'dice', SECRETS: 'sealed', ...env },
  });
}

/** Reads the attested state of a server, without verification. */
export async function readState(
  server: Pick<TestServer, 'get'>,
): Promise<{ sealingKey: Uint8Array; state: EnclaveState }> {
  const { attestation } = (await (await server.get('/get_attestation')).json()) as { attestation: string };
  const { userData, publicKey, pcrs } = decodeAttestation(Uint8Array.from(Buffer.from(attestation, 'hex')));
  const { sealingKey, application, version } = decodeUserData(userData as Uint8Array);
  const [pcr0, pcr1, pcr2] = [0, 1, 2].map((index) => pcrs.get(index) as Uint8Array) as [
    Uint8Array,
    Uint8Array,
    Uint8Array,
  ];
  return {
    sealingKey,
    state: { application, version, registers: [pcr0, pcr1, pcr2], signingKey: publicKey as Uint8Array },
  };
}

/** Makes a pipe for SECRETS_FD, as init gives it to the server. */
export function makePipe(): { fd: number; write(line: string): void; isOpen(): boolean } {
  const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-pipe-'));
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  const fd = openSync(path, 'r+');
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return {
    fd,
    write: (line) => writeSync(fd, `${line}\n`),
    isOpen: () => {
      try {
        // Without a reader, this throws ENXIO (fifo(7)).
        closeSync(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK));
        return true;
      } catch {
        return false;
      }
    },
  };
}
