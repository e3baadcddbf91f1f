/**
 * Chooses the ports of `make dev-wallet`. The page has the port `PORT`, and its services have the next four.
 */
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

/** Maximum value of `PORT` that leaves room for all other ports. */
export const LAST_PORT = 65_535 - (PARTS.length - 1);

/** @param first port of the page. With 0, the system chooses all ports */
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

/** A port and its owner, such as "the page's". */
export type NamedPort = readonly [port: number, owner: string];

/** Returns the ports of the wallet's parts. */
export function listPorts(ports: Ports): NamedPort[] {
  return PARTS.map((part) => [ports[part], NAMES[part]]);
}

/**
 * Checks that all ports are free, before any part starts.
 *
 * @throws ConfigError that names the first busy port
 */
export async function requireFree(ports: Ports): Promise<void> {
  const remedy = `Set PORT to the first of ${PARTS.length} free ports in a row`;
  await requireFreePorts(listPorts(ports), remedy);
}

/** @param remedy a sentence that says how to get other ports. @throws as `requireFree` does */
export async function requireFreePorts(ports: readonly NamedPort[], remedy: string): Promise<void> {
  for (const [port, owner] of ports) {
    const server = createServer().listen(port, '127.0.0.1');
    await once(server, 'listening').catch(({ code }: NodeJS.ErrnoException) => {
      throw new ConfigError(`can't listen on port ${port}, ${owner}: ${code}. ${remedy}`);
    });
    await once(server.close(), 'close');
  }
}
