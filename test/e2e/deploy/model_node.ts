/**
 * The node of `make dev-sui` without its Move VM, which takes half a second for each reading: its model alone
 * executes the calls. `localnet.test.ts` runs them in both. It prints where it is.
 *
 * Argument: a folder (a URL that ends in a slash) with the development root.
 */
import { startDevSui } from '../../../src/commands/dev/sui/service.ts';
import { model } from '../../../src/testing/sui/model.ts';

const folder = new URL(process.argv[2] ?? '');
const { node, faucetUrl } = await startDevSui({ port: 0, faucetPort: 0, folder, env: {} });
node.executor.engine = model;
process.stdout.write(JSON.stringify({ url: node.url, faucetUrl }));
