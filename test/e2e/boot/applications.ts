/** `node test/e2e/boot/applications.ts`: the applications of the test images with an authority of their own, in build/e2e/boot, as deep as their sources. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type TlsFiles, tlsFiles } from './tls.ts';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const TLS = path('../../../build/e2e/boot/tls');
const HOSTS = ['api.weatherapi.com', 'bulk.example.com', 'www.googleapis.com'];

/** The certificate that the stand-ins of endpoints present to the test images. */
export function endpointTls(): TlsFiles {
  return tlsFiles(TLS, HOSTS);
}

function prepare(name: string, ...sources: string[]): void {
  const target = path(`../../../build/e2e/boot/${name}`);
  rmSync(target, { recursive: true, force: true });
  mkdirSync(target, { recursive: true });
  for (const source of sources) cpSync(path(source), target, { recursive: true });
  writeFileSync(`${target}/ca.pem`, endpointTls().ca);
}

if (import.meta.main) {
  prepare('probe', 'probe');
  prepare('salt', 'salt');
  cpSync(path('../../../src/apps/salt/app.yaml'), path('../../../build/e2e/boot/salt/app.yaml'));
}
