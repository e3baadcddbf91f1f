/** The ports of `make dev-wallet`: `PORT` is the page's, and the next four are those of its services. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { ConfigError } from 'sui-enclave/errors';

const PARTS = ['page', 'salt', 'prover', 'issuer', 'node'] as const;
type Part = (typeof PARTS)[number];
export type Ports = Readonly<Record<Part, number>>;

const NAMES: Readonly<Record<Part, string>> = {
  page: "the page's",
  salt: "the salt service's",
  prover: "the prover's",
  issuer: "the issuer's",
  node: "the Sui node's",
};

/** Highest value of `PORT`. */
export const LAST_PORT = 65_535 - (PARTS.length - 1);

/** @param first 0 lets the system choose all of them */
export function portsFrom(first: number): Ports {
  const port = (part: Part) => (first === 0 ? 0 : first + PARTS.indexOf(part));
  return {
    page: port('page'),
    salt: port('salt'),
    prover: port('prover'),
    issuer: port('issuer'),
    node: port('node'),
  };
}

/**
 * Requires, before any part starts, that all ports are free.
 *
 * @throws ConfigError that names the first busy one
 */
export async function requireFree(ports: Ports): Promise<void> {
  for (const part of PARTS) {
    const server = createServer().listen(ports[part], '127.0.0.1');
    await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
      throw busy(ports, part, error);
    });
    await once(server.close(), 'close');
  }
}

function busy(ports: Ports, part: Part, { code }: NodeJS.ErrnoException): ConfigError {
  return new ConfigError(
    `can't listen on port ${ports[part]}, ${NAMES[part]}: ${code}. Set PORT to another, of which the next ${PARTS.length - 1} are free too`,
  );
}
