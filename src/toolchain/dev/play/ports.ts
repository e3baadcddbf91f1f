/** Chooses the ports of `play`, all on 127.0.0.1. */
import { integer } from 'sui-enclave-service/env';
import { listPorts, type NamedPort, type Ports, portsFrom } from '../wallet/ports.ts';

/** Number of consecutive ports, beginning with `PORT`. */
const COUNT = 14;
const FIRST = 4170;
/** Ports of `sui start --with-faucet`, at which `--network localnet` of the commands finds the node. */
const LOCALNET = { node: 9000, faucet: 9123 };

/** Servers of `play` that are broken on purpose. */
export const COUNTERPARTS = ['changed', 'replayed', 'other_image', 'unregistered'] as const;
export type Counterpart = (typeof COUNTERPARTS)[number];

export interface PlayPorts {
  /** Ports of the wallet's parts, including the node's. */
  readonly wallet: Ports;
  readonly faucet: number;
  readonly dapp: number;
  readonly console: number;
  readonly enclaves: readonly [number, number];
  readonly counterparts: Readonly<Record<Counterpart, number>>;
}

/** @throws ConfigError if `PORT` is invalid */
export function playPorts(env: Readonly<Record<string, string | undefined>>): PlayPorts {
  const first = integer(env, 'PORT', { from: 1024, to: 65_536 - COUNT, default: FIRST });
  const { node, faucet } = env['PORT'] ? { node: first + 4, faucet: first + 5 } : LOCALNET;
  const [changed, replayed, other_image, unregistered] = [first + 10, first + 11, first + 12, first + 13];
  return {
    wallet: { ...portsFrom(first), node },
    faucet,
    dapp: first + 6,
    console: first + 7,
    enclaves: [first + 8, first + 9],
    counterparts: { changed, replayed, other_image, unregistered },
  };
}

/** Lists all used ports, for `requireFreePorts`. @param hasWallet whether the wallet's services start */
export function namePorts(ports: PlayPorts, hasWallet: boolean): NamedPort[] {
  return [
    ...(hasWallet ? listPorts(ports.wallet) : [[ports.wallet.node, "the Sui node's"] as const]),
    [ports.faucet, "the faucet's"],
    [ports.dapp, "the dapp's"],
    [ports.console, "the console's"],
    ...ports.enclaves.map((port) => [port, "an enclave's"] as const),
    ...Object.values(ports.counterparts).map((port) => [port, "a broken server's"] as const),
  ];
}

export const PORTS_REMEDY = `End the program that uses it, or set PORT to the first of ${COUNT} free ports in a row, which moves all ports`;
