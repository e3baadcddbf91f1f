/**
 * Defines what the README's page imports from the wallet: addresses of its services, and its user interface.
 */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { discoverProvider, type ZkLoginSession } from 'sui-enclave/zklogin';

export interface Addresses {
  readonly issuer: string;
  readonly salt: string;
  readonly prover: string;
  readonly node: string;
}

const addresses: Addresses = JSON.parse(document.querySelector('#addresses')?.textContent ?? '');

export const client = new SuiGrpcClient({ network: 'localnet', baseUrl: addresses.node });
export const app = {
  provider: await discoverProvider(addresses.issuer, { name: 'oidc-provider' }),
  clientId: 'wallet-implicit',
  redirectUri: `${location.origin}/any/path`,
};
export const services = { salt: addresses.salt, prover: addresses.prover };

/** The session of the user who is logged in. */
export let session: ZkLoginSession | undefined;

export const show = {
  login: (reason: string) => write(reason),
  address: (address: string) => write(address),
  wallet(open: ZkLoginSession): void {
    session = open;
    write(`${open.address} until ${open.maxEpoch}`);
  },
};

function write(text: string): void {
  const output = document.querySelector('output');
  if (output) output.textContent = text;
}
