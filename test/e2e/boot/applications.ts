/**
 * `node test/e2e/boot/applications.ts` writes the applications of the test images, each with the test's own
 * certificate authority, to build/e2e/boot. Their folders there have the same depth as their sources,
 * so that relative imports work.
 */
import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { TlsFiles } from '../../../src/testing/tls.ts';
import { tlsFiles } from './tls.ts';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const TLS = path('../../../build/e2e/boot/tls');
const HOSTS = ['api.weatherapi.com', 'bulk.example.com', 'www.googleapis.com'];
/**
 * Private key of the provisioner, who may send the salt image its seed. PKCS #8 in PEM, created with the
 * image.
 */
export const PROVISIONER_KEY = `${TLS}/provisioner.pem`;

/** Returns the certificate that the fakes of endpoints present to the test images. */
export function endpointTls(): TlsFiles {
  return tlsFiles(TLS, HOSTS);
}

/** Returns the provisioner's Ed25519 public key in hexadecimal. */
function readProvisionerKey(): string {
  if (!existsSync(PROVISIONER_KEY)) {
    const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });
    writeFileSync(PROVISIONER_KEY, pem, { mode: 0o600 });
  }
  const { x } = createPublicKey(readFileSync(PROVISIONER_KEY)).export({ format: 'jwk' });
  return Buffer.from(x as string, 'base64url').toString('hex');
}

function prepareApplication(name: string, ...sources: string[]): void {
  const target = path(`../../../build/e2e/boot/${name}`);
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const source of sources) cpSync(path(source), target, { recursive: true });
  writeFileSync(`${target}/ca.pem`, endpointTls().ca);
}

if (import.meta.main) {
  prepareApplication('probe', 'probe');
  prepareApplication('salt', 'salt');
  const manifest = path('../../../build/e2e/boot/salt/app.yaml');
  cpSync(path('../../../src/apps/salt/app.yaml'), manifest);
  appendFileSync(manifest, `provisioners:\n  - '${readProvisionerKey()}'\n`);
}
