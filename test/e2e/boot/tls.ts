/**
 * Creates a certificate authority for the boot test, and the certificate that the fakes of endpoints present.
 */
import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeTls, type TlsFiles } from '../../../src/testing/tls.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const FILES = ['ca.pem', 'cert.pem', 'key.pem'] as const;

/**
 * Returns the contents of the files. It keeps the files in `dir` for a day, so that the test images are not
 * rebuilt each time.
 */
export function tlsFiles(dir: string, hosts: readonly string[]): TlsFiles {
  const paths = FILES.map((name) => join(dir, name));
  const isRecent = (path: string) => existsSync(path) && Date.now() - statSync(path).mtimeMs < DAY_MS;
  if (!paths.every(isRecent) || !hasNames(hosts, readFileSync(paths[1] as string))) {
    mkdirSync(dir, { recursive: true });
    const files = makeTls(hosts);
    for (const [index, name] of (['ca', 'cert', 'key'] as const).entries()) {
      writeFileSync(paths[index] as string, files[name], { mode: 0o600 });
    }
  }
  const [ca, cert, key] = paths.map((path) => readFileSync(path, 'utf8')) as [string, string, string];
  return { ca, cert, key };
}

function hasNames(hosts: readonly string[], certificate: Buffer): boolean {
  const names = new X509Certificate(certificate).subjectAltName;
  return names === hosts.map((host) => `DNS:${host}`).join(', ');
}
