/** Opens the ports of the development services for Sui. */
import type { Server } from 'node:http';
import { ConfigError } from 'sui-enclave/errors';
import { serveLoopback } from 'sui-enclave-testing/loopback';

/**
 * Listens on loopback only, for programs and pages of this machine.
 *
 * @param setting environment variable that sets the port
 * @param port to listen on; with 0, the system chooses
 * @returns the origin
 * @throws ConfigError
 */
export async function listen(server: Server, setting: string, port: number): Promise<string> {
  return await serveLoopback(server, port).catch(({ code }: NodeJS.ErrnoException) => {
    throw new ConfigError(`can't listen on port ${port}: ${code}. Set ${setting} to another port`);
  });
}
