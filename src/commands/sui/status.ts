/** `npm run status`: a config, its enclaves, and whether a running enclave is one of them. */
import { runAsProcess } from '../command.ts';
import { type Input, ROOT_OPTION, suiCommand } from './command.ts';

const MINUTE = 60_000;

/** Such as "2 d 3 h", "5 h 20 min" or "7 min". */
function ageOf(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / MINUTE));
  const [days, hours] = [Math.floor(minutes / 1440), Math.floor(minutes / 60)];
  if (days > 0) return `${days} d ${hours % 24} h`;
  return hours > 0 ? `${hours} h ${minutes % 60} min` : `${minutes} min`;
}

/** The URLs to call: the arguments, or those that the deployment file has for the config. */
function urlsOf({ args, lists, isFilled, deployments }: Input): string[] {
  const given = [args['enclave_url'] ?? [], lists['url'] ?? []].flat();
  if (given.length > 0 || !isFilled) return [...new Set(given)];
  const [, application] = deployments?.application() ?? [];
  return [...new Set(application?.enclaves.map(({ url }) => url))];
}

export const main = suiCommand({
  name: 'status',
  purpose:
    "Prints a config, its registered enclaves, their ages and which of them are stale. With URLs, it attests what answers\nthere, several times each, and says which keys are registered, and which enclaves do not answer; exit code 1 if a key\nis not registered, may not speak, or can't be trusted. Without arguments, it asks the URLs of the deployment file.",
  positionals: ['enclave_config_id', 'enclave_url'],
  optional: 1,
  fromFile: ['enclave_config_id', 'enclave_url'],
  isReader: true,
  options: ROOT_OPTION,
  lists: { url: ['<url>', 'another enclave, or several behind one URL; may be repeated'] },
  plan: (input) => [
    `read the config ${input.args['enclave_config_id']}, and every enclave registered under it`,
    ...urlsOf(input).map(
      (url) => `attest what answers at ${url} against the config's registers, and look up its keys`,
    ),
  ],
  async run(input, chain) {
    const { enclave_config_id: configId = '' } = input.args;
    const urls = urlsOf(input);
    const { toHex } = await import('@mysten/sui/utils');
    const { isKeyTooOld, isStale, listEnclaves, readConfig } = await import('sui-enclave/sui/objects');
    const { readRoots } = await import('./contract.ts');
    const roots = await readRoots(chain, input.options);
    const config = await readConfig(chain.client, configId);
    const { enclaves, destroyed } = await listEnclaves(chain.client, config);
    const now = Date.now();
    const maySpeak = enclaves.filter(
      (enclave) => !config.isRetired && !isStale(enclave, config) && !isKeyTooOld(enclave, config, now),
    );
    const { answering } = await import('./fleet.ts');
    const expected = { image: config.image, roots, configId: config.id, deployments: input.deployments };
    const found = await answering(urls, config, maySpeak, chain, expected);
    const heard = new Set(found.map((each) => (each.trusted ? each.enclave : each.url)));
    const { image, ...shown } = config;
    const mayNot = found.some((each) => !each.trusted || !maySpeak.some(({ id }) => id === each.enclave));
    return {
      status: 'done',
      title: `The config ${JSON.stringify(config.name)} at version ${config.configVersion}${config.isRetired ? ', retired' : ''}`,
      fields: {
        config: { ...shown, ...image },
        enclaves: enclaves.map((enclave) => ({
          id: enclave.id,
          publicKey: toHex(enclave.publicKey),
          configVersion: enclave.configVersion,
          registeredAt: new Date(Number(enclave.registeredAtMs)),
          age: ageOf(now - Number(enclave.registeredAtMs)),
          stale: isStale(enclave, config),
          keyTooOld: isKeyTooOld(enclave, config, now),
        })),
        destroyed,
        ...(urls.length > 0 && {
          answering: found,
          silent: maySpeak.filter(({ id }) => !heard.has(id)).map(({ id }) => id),
        }),
      },
      alarm: mayNot,
    };
  },
});

if (import.meta.main) await runAsProcess(main);
