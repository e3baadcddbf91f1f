/** `node test/boot/probe.ts`: the application of out/test.eif with its own authority, in build/boot/probe. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { tlsFiles } from './tls.ts';

const SOURCE = fileURLToPath(new URL('probe', import.meta.url));
const TARGET = fileURLToPath(new URL('../../build/boot/probe', import.meta.url));
const TLS = fileURLToPath(new URL('../../build/boot/tls', import.meta.url));
const HOSTS = ['api.weatherapi.com', 'bulk.example.com'];

export function probeTls() {
  return tlsFiles(TLS, HOSTS);
}

if (import.meta.main) {
  rmSync(TARGET, { recursive: true, force: true });
  mkdirSync(TARGET, { recursive: true });
  cpSync(SOURCE, TARGET, { recursive: true });
  writeFileSync(`${TARGET}/ca.pem`, probeTls().ca);
}
