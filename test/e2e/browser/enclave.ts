/**
 * Starts enclaves on loopback for the pages of a browser run, and gives the pages what they need to call
 * them.
 */
import type { TestProject } from 'vitest/node';
import type { Image } from '../../../src/library/attestation/index.ts';
import { loadApplication } from '../../../src/server/application/load_application.ts';
import { boot } from '../../../src/server/boot.ts';
import { readServerConfig } from '../../../src/server/config.ts';
import { createLog } from '../../../src/service/log.ts';
import { FakeEnclave } from '../../src/library/client/fake_enclave.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /**
     * Addresses and trust for the pages. `sealedUrl` is the server itself, which takes sealed requests and is
     * attested by the same NSM.
     */
    enclave: { url: string; sealedUrl: string; image: Image; rootPem: string };
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const enclave = await FakeEnclave.start();
  const env = { APP: 'dice', PORT: '0', REQUEST_TIMEOUT_MS: '60000' };
  const config = readServerConfig(env);
  const application = await loadApplication(new URL('../../fixtures/apps/', import.meta.url), config.app);
  const log = createLog('silent');
  const server = await boot({ config, env, log, ...application, nsm: enclave.nsm });
  const { url, image, nsm } = enclave;
  project.provide('enclave', { url, sealedUrl: server.url, image, rootPem: nsm.rootPem() });
  return async () => {
    enclave.close();
    await server.close();
  };
}
