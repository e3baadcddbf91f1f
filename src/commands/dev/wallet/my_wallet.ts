/** The part that the README's page leaves to the wallet: the addresses of its services, and its user interface. */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { discoverProvider, type ZkLoginSession } from 'sui-enclave/zklogin';
import type { Settings } from './servers.ts';

export const settings: Settings = JSON.parse(document.querySelector('#settings')?.textContent ?? '');
const { issuer, login } = settings;

export const client = new SuiGrpcClient({ network: 'localnet', baseUrl: settings.nodeUrl });
export const app = {
  provider: await discoverProvider(issuer, { name: 'oidc-provider', ...login.options }),
  clientId: login.clientId,
  redirectUri: `${location.origin}/back`,
};
export const services = { salt: settings.saltUrl, prover: settings.proverUrl };

/** The open session. */
export let session: ZkLoginSession | undefined;

export const show = {
  login(reason: string): void {
    session = undefined;
    write('status', reason);
    write('address', '');
  },
  address(address: string): void {
    write('status', 'You are logged in; the proof is being made.');
    write('address', address);
  },
  wallet(open: ZkLoginSession): void {
    session = open;
    write('status', `You can sign until epoch ${open.maxEpoch} ends.`);
    write('address', open.address);
  },
};

export function write(name: string, value: string): void {
  const output = document.querySelector(`#${name}`);
  if (output) output.textContent = value;
}
