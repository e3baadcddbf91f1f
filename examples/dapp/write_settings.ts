/**
 * `npm run settings`: writes `public/settings.json` for the servers of `make dev ATTEST=emulated`, `make
 * dev-sui` and `make dev-wallet`. Reads what these servers and the admin's commands have written in this
 * clone.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parsePcrs } from 'sui-enclave/client';
import { readSettings } from './src/settings.ts';

const CLONE = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, CLONE), 'utf8');

const { weather } = JSON.parse(read('deployments/localnet.json')).applications;
const settings = readSettings({
  enclave: {
    url: 'http://127.0.0.1:3000',
    image: parsePcrs(read('out/dev.pcrs')),
    developmentRoots: read('out/dev-root.pem'),
  },
  sui: {
    network: 'localnet',
    nodeUrl: 'http://127.0.0.1:9000',
    packageId: weather.package,
    configId: weather.config.id,
    faucetUrl: 'http://127.0.0.1:9123',
  },
  login: {
    issuer: 'http://127.0.0.1:4173',
    name: 'Local login',
    clientId: 'wallet-implicit',
    saltUrl: 'http://127.0.0.1:4171',
    proverUrl: 'http://127.0.0.1:4172',
  },
});
const file = new URL('public/settings.json', import.meta.url);
writeFileSync(file, `${JSON.stringify(settings, null, 2)}\n`);
process.stdout.write(`Wrote ${fileURLToPath(file)}\n`);
