/** `npm run update_weather`: mints a reading that an enclave signed, from the command line or from the enclave. */
import type { Enclave, EnclaveConfig } from 'sui-enclave/sui/objects';
import type { WeatherReading } from 'sui-enclave/sui/weather';
import { runAsProcess } from '../command.ts';
import type { Chain } from './chain.ts';
import { type Input, ROOT_OPTION, type SuiCommand, suiCommand, usageError } from './command.ts';
import { SuiCommandError } from './errors.ts';

const READING = ['signature_hex', 'timestamp_ms', 'location', 'temperature'];

async function read({ args, options }: Input) {
  const {
    app_package_id: appPackage = '',
    module_name: moduleName = '',
    otw_name: witness = '',
    enclave_object_id: enclaveId,
  } = args;
  const { 'from-url': url, location } = options;
  const given = READING.filter((name) => args[name] !== undefined).length;
  if (url === undefined && (given < READING.length || location !== undefined)) {
    throw usageError(
      spec,
      `give ${READING.map((name) => `<${name}>`).join(' ')}, or --from-url and --location`,
    );
  }
  if (url !== undefined && (given > 0 || location === undefined)) {
    throw usageError(spec, 'with --from-url, give --location and no reading');
  }
  const { applicationType } = await import('sui-enclave/sui/values');
  return {
    appPackage,
    moduleName,
    application: applicationType(appPackage, moduleName, witness),
    enclaveId,
    ask: url === undefined || location === undefined ? null : { url, location },
  };
}

/** A reading from the command line, as the enclave answered it. */
async function givenReading({
  signature_hex: hex = '',
  timestamp_ms = '',
  location = '',
  temperature = '',
}: Input['args']): Promise<WeatherReading> {
  const isU64 = (value: string) => /^(0|[1-9][0-9]{0,19})$/.test(value) && BigInt(value) < 2n ** 64n;
  if (!/^[0-9a-f]{128}$/i.test(hex)) throw usageError(spec, '<signature_hex> must be 128 hexadecimal digits');
  if (!isU64(timestamp_ms)) {
    throw usageError(spec, '<timestamp_ms> must be an integer number of milliseconds, below 2^64');
  }
  if (/^-[\d.]+$/.test(temperature)) {
    throw usageError(
      spec,
      `<temperature> is ${temperature}: no enclave signs a reading below 0 °C, since the contract's temperature is a u64`,
    );
  }
  if (!isU64(temperature)) throw usageError(spec, '<temperature> must be an integer from 0, below 2^64');
  if (location === '') throw usageError(spec, '<location> must be the place that the enclave was asked for');
  const { fromHex } = await import('@mysten/sui/utils');
  return { signature: fromHex(hex), timestampMs: timestamp_ms, data: { location, temperature } };
}

/**
 * A reading from the enclave itself, trusted only if the registered key signed it.
 *
 * @param enclave undefined: any that runs the image of the config
 */
async function askForReading(
  { url, location }: { url: string; location: string },
  { image }: EnclaveConfig,
  enclave: Enclave | undefined,
  roots: Uint8Array[] | undefined,
): Promise<WeatherReading & { readonly publicKey: Uint8Array }> {
  const { WeatherResponse } = await import('sui-enclave-weather/types');
  const { EnclaveClient } = await import('sui-enclave/client');
  const policy = { images: [image], ...(enclave && { publicKey: enclave.publicKey }) };
  const client = new EnclaveClient(url, { policy, ...(roots && { roots }) });
  const reading = await client.processData({ location }, WeatherResponse);
  // The signature is genuine, but a man in the middle may have asked for another place.
  if (reading.data.location !== location) {
    throw new SuiCommandError(
      'OTHER_PLACE',
      `asked for ${JSON.stringify(location)}, got a signed reading of ${JSON.stringify(reading.data.location)}: something between here and ${url} replaces requests or answers. Nothing was sent`,
    );
  }
  return reading;
}

/** The reading, and the objects that the call takes. */
async function submission(input: Input, chain: Chain) {
  const { application, enclaveId, ask } = await read(input);
  const given = ask ? null : await givenReading(input.args);
  const { findRegistration, readConfig, readEnclave } = await import('sui-enclave/sui/objects');
  const { checkContract, checkRegistered, readRoots } = await import('./contract.ts');
  const roots = await readRoots(chain, input.options);
  if (enclaveId !== undefined) {
    const enclave = await readEnclave(chain.client, enclaveId);
    await checkContract(chain, enclave, { application });
    const config = await readConfig(chain.client, enclave.configId);
    const reading = given ?? (ask && (await askForReading(ask, config, enclave, roots)));
    if (reading) return { reading, enclaveId: enclave.id, configId: config.id };
  }
  const [, noted] = input.deployments?.application() ?? [];
  if (ask === null || noted?.config === undefined) throw usageError(spec, 'run create_config first');
  const config = await readConfig(chain.client, noted.config.id);
  await checkContract(chain, config, { application });
  const reading = await askForReading(ask, config, undefined, roots);
  const registration = await findRegistration(chain.client, config, reading.publicKey);
  checkRegistered(registration, config, ask.url);
  return { reading, enclaveId: registration.enclaveId, configId: config.id };
}

const spec: SuiCommand = {
  name: 'update_weather',
  purpose:
    'Mints a reading that a registered enclave signed at most 90 minutes ago, and gives the WeatherNFT to the sender. It\nlooks up the config of the enclave. With --from-url, it asks the enclave for the reading and verifies it first.',
  positionals: ['app_package_id', 'module_name', 'otw_name', 'enclave_object_id', ...READING],
  optional: READING.length,
  fromFile: ['app_package_id', 'module_name', 'otw_name', 'enclave_object_id'],
  options: {
    'from-url': ['<enclave url>', 'ask this enclave for a reading'],
    location: ['<place>', 'the place to ask for'],
    ...ROOT_OPTION,
  },
  async plan(input) {
    const { appPackage, moduleName, application, enclaveId, ask } = await read(input);
    if (!ask) await givenReading(input.args);
    return [
      enclaveId === undefined
        ? `read the config of ${application}`
        : `read the enclave ${enclaveId}, which must be for ${application}, and its config`,
      ...(ask
        ? [
            `ask ${ask.url} for the weather in ${JSON.stringify(ask.location)}, and verify it by ${enclaveId === undefined ? 'a' : 'the'} registered key`,
          ]
        : []),
      `call ${appPackage}::${moduleName}::update_weather, and transfer the WeatherNFT to the sender`,
    ];
  },
  async run(input, chain) {
    const { appPackage, moduleName } = await read(input);
    const { reading, enclaveId, configId } = await submission(input, chain);
    const { Transaction } = await import('@mysten/sui/transactions');
    const { updateWeather } = await import('sui-enclave/sui/weather');
    const tx = new Transaction();
    const nft = updateWeather(tx, { appPackage, moduleName, enclaveId, configId, reading });
    tx.transferObjects([nft], await chain.sender());
    return await chain.submit(tx, {
      title: `mint the weather in ${JSON.stringify(reading.data.location)}`,
      fields: {
        enclave: enclaveId,
        config: configId,
        location: reading.data.location,
        temperature: reading.data.temperature,
        timestampMs: reading.timestampMs,
      },
      report: ({ created }) => ({ nft: created.find(({ type }) => type.endsWith('::WeatherNFT'))?.id }),
    });
  },
};

export const main = suiCommand(spec);

if (import.meta.main) await runAsProcess(main);
