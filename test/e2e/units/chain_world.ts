/**
 * The machine beside the keeper: a model of a Sui node with a config, and enclaves of weather. A process that
 * obeys `GET /COMMAND?PARAMETERS` on port 4000.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { loadApplication } from '../../../src/server/application/load_application.ts';
import { boot, type RunningServer } from '../../../src/server/boot.ts';
import { readServerConfig } from '../../../src/server/config.ts';
import { createLog } from '../../../src/service/log.ts';
import { KeeperFixture } from '../../src/cli/keeper/keeper_fixture.ts';
import { ofConfig } from '../../src/cli/sui/chain_fixture.ts';

/** What the keeper and the admin need, as JSON. */
export interface Facts {
  /** Content of `keeper.yaml`, without URLs. */
  readonly keeper: Record<string, unknown>;
  readonly rootPem: string;
  readonly pcrs: string;
  /** Private keys of the keeper and of the admin, as `suiprivkey…`. */
  readonly operatorKey: string;
  readonly adminKey: string;
}

const APPS = new URL('../../../src/apps/', import.meta.url);
const MINUTE_MS = 60_000;

/** Documents of an NSM whose clock is hours behind have a root of that time. */
const fixture = await KeeperFixture.start(new Date(Date.now() - 12 * 60 * MINUTE_MS));
const { chain, operator } = fixture;
const enclaves = new Map<string, RunningServer>();

/** Starts an enclave with a new key, in place of that at the port. */
async function start({ port = '', age_minutes = '0', provisioner }: Record<string, string>): Promise<string> {
  await enclaves.get(port)?.close();
  const secrets = provisioner === undefined ? { API_KEY: 'none' } : { SECRETS: 'sealed' };
  const env = { APP: 'weather', PORT: port, SHUTDOWN_GRACE_MS: '0', ...secrets };
  const config = readServerConfig(env);
  const { manifest, ...application } = await loadApplication(APPS, config.app);
  const nsm = chain.createNsm('weather', 1, () => Date.now() - Number(age_minutes) * MINUTE_MS);
  const provisioners = provisioner === undefined ? [] : [provisioner];
  const options = { config, env, log: createLog('silent'), nsm, ...application };
  const server = await boot({ ...options, manifest: { ...manifest, provisioners } });
  enclaves.set(port, server);
  return Buffer.from(server.publicKey).toString('hex');
}

async function destroyAll(): Promise<string> {
  const ids = await fixture.ids();
  for (const id of ids) await chain.destroy(id, fixture.configId, fixture.capId);
  return `${ids.length} destroyed`;
}

function describeFacts(): string {
  const { root: _, ...keeper } = fixture.content([]);
  const facts: Facts = {
    keeper,
    rootPem: readFileSync(chain.file('root.pem'), 'utf8'),
    pcrs: readFileSync(chain.file('dev.pcrs'), 'utf8'),
    operatorKey: operator.key.getSecretKey(),
    adminKey: chain.admin.getSecretKey(),
  };
  return JSON.stringify(facts);
}

async function obey(command: string, parameters: Record<string, string>): Promise<string> {
  if (command === '/facts') return describeFacts();
  if (command === '/start') return await start(parameters);
  if (command === '/destroy') return await destroyAll();
  if (command === '/max_key_age') {
    const options = [...ofConfig(fixture.configId), '--max-key-age', String(parameters['hours'])];
    return JSON.stringify(await chain.done('update_config', ...options));
  }
  return 'unknown command';
}

createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '', 'http://world');
  obey(pathname, Object.fromEntries(searchParams)).then(
    (text) => response.end(text),
    (error) => response.writeHead(500).end(String(error)),
  );
}).listen(4000, '127.0.0.1');
