/** Starts an issuer on loopback, and the salt service that gets the issuer's keys from it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CLIENT_ID, GOOGLE, Issuer } from 'sui-enclave-testing/oidc_issuer';
import { startServer, type TestServer } from 'sui-enclave-testing/start_server';
import { onTestFinished } from 'vitest';

export { CLIENT_ID, GOOGLE, Issuer };

export const SEED = '000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f';
export const OTHER_SEED = 'ff'.repeat(32);

/** Writes a file with this content, which is deleted after the test, and returns its path. */
export function writeSeedFile(content: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'sui-enclave-salt-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'seed');
  writeFileSync(path, `${content}\n`, { mode: 0o600 });
  return path;
}

export interface SaltServer extends TestServer {
  ask(
    token: unknown,
    headers?: Record<string, string>,
  ): Promise<{ status: number; body: Record<string, string> }>;
}

export async function startSalt(
  issuer: Issuer | undefined,
  {
    seed = SEED,
    clients = [{ issuer: GOOGLE, client_id: CLIENT_ID, seed: 1 }],
    ...env
  }: Record<string, unknown> = {},
): Promise<SaltServer> {
  const server = await startServer({
    env: {
      APP: 'salt',
      SALT_SEED_FILE: writeSeedFile(seed as string),
      SALT_CLIENTS: JSON.stringify(clients),
      CORS_ORIGINS: 'https://wallet.example',
      ...(env as Record<string, string>),
    },
    ...(issuer && {
      origins: { 'www.googleapis.com': issuer.origin, 'login.microsoftonline.com': issuer.origin },
    }),
  });
  return {
    ...server,
    async ask(token, headers = {}) {
      const init = { headers: { 'content-type': 'application/json', ...headers } };
      const response = await server.post('/get_salt', { token }, init);
      return { status: response.status, body: (await response.json()) as Record<string, string> };
    },
  };
}
