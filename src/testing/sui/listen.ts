/** Ports of the development services for Sui. */
import type { Server } from 'node:http';
import { ConfigError } from 'sui-enclave/errors';

/**
 * Listens on loopback only.
 *
 * @param setting the environment variable that sets the port
 * @param port 0 lets the system choose
 * @throws ConfigError
 */
export async function listen(server: Server, setting: string, port: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', ({ code }: NodeJS.ErrnoException) => {
      reject(new ConfigError(`can't listen on port ${port}: ${code}. Set ${setting} to another`));
    });
    server.listen(port, '127.0.0.1', resolve);
  });
}
