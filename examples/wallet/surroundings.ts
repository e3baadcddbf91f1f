/** Addresses of the services that the page calls. The server writes the addresses into the page. */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import type { Settings } from '../../src/toolchain/dev/wallet/page_server.ts';

export const settings: Settings = JSON.parse(document.querySelector('#settings')?.textContent ?? '');

export const client = new SuiGrpcClient({ network: 'localnet', baseUrl: settings.nodeUrl });
