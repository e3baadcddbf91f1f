/**
 * The page's settings, which its server writes into the page, and a client of the Sui node that they name.
 */
import { SuiGrpcClient } from '@mysten/sui/grpc';
import type { Settings } from '../../src/toolchain/dev/wallet/page_server.ts';

export const settings: Settings = JSON.parse(document.querySelector('#settings')?.textContent ?? '');

export const client = new SuiGrpcClient({ network: 'localnet', baseUrl: settings.nodeUrl });
