/** Starts an enclave on loopback for the pages of a browser run, and hands them what they must know of it. */
import type { TestProject } from 'vitest/node';
import type { Image } from '../../../src/attestation/index.ts';
import { FakeEnclave } from '../../src/client/fake_enclave.ts';

declare module 'vitest' {
  interface ProvidedContext {
    enclave: { url: string; image: Image; rootPem: string };
  }
}

export default async function setup(project: TestProject): Promise<() => void> {
  const enclave = await FakeEnclave.start();
  project.provide('enclave', { url: enclave.url, image: enclave.image, rootPem: enclave.nsm.rootPem() });
  return () => enclave.close();
}
