/**
 * Runs the node of `make dev-sui` in a process of its own, and prints its addresses.
 *
 * Argument: a folder (a URL that ends in a slash) with the development root.
 */
import { startDevSui } from '../../../src/toolchain/dev/sui/service.ts';

const folder = new URL(process.argv[2] ?? '');
const { node, faucetUrl } = await startDevSui({ port: 0, faucetPort: 0, folder, env: {} });
process.stdout.write(JSON.stringify({ url: node.url, faucetUrl }));
