/** `npm run update_weather`: mints a reading that an enclave signed, given by hand or asked for. */
import { Transaction } from '@mysten/sui/transactions';
import { fromHex } from '@mysten/sui/utils';
import { WeatherResponse } from '../../src/apps/weather/types.ts';
import { EnclaveClient } from '../../src/client/index.ts';
import { EnclaveError } from '../../src/errors.ts';
import { type Enclave, type EnclaveConfig, readConfig, readEnclave } from '../../src/sui/objects.ts';
import { applicationType } from '../../src/sui/values.ts';
import { updateWeather, type WeatherReading } from '../../src/sui/weather.ts';
import { type Command, type Input, runCommand, usage } from './command.ts';
import { checkContract, ROOT_OPTION, readRoots } from './contract.ts';

const READING = ['signature_hex', 'timestamp_ms', 'location', 'temperature'];

function read({ args, options }: Input) {
  const {
    app_package_id: appPackage = '',
    module_name: moduleName = '',
    otw_name: witness = '',
    enclave_object_id: enclaveId = '',
  } = args;
  const { 'from-url': url, location } = options;
  const given = READING.filter((name) => args[name] !== undefined).length;
  if (url === undefined && (given < READING.length || location !== undefined)) {
    throw usage(
      command,
      `give ${READING.map((name) => `<${name}>`).join(' ')}, or --from-url and --location`,
    );
  }
  if (url !== undefined && (given > 0 || location === undefined)) {
    throw usage(command, 'with --from-url, give --location and no reading');
  }
  return {
    appPackage,
    moduleName,
    application: applicationType(appPackage, moduleName, witness),
    enclaveId,
    ask: url === undefined || location === undefined ? null : { url, location },
  };
}

/** A reading from the command line, as the enclave answered it. */
function givenReading({
  signature_hex: hex = '',
  timestamp_ms = '',
  location = '',
  temperature = '',
}: Input['args']): WeatherReading {
  const isU64 = (value: string) => /^(0|[1-9][0-9]{0,19})$/.test(value) && BigInt(value) < 2n ** 64n;
  if (!/^[0-9a-f]{128}$/i.test(hex)) throw usage(command, '<signature_hex> must be 128 hexadecimal digits');
  if (!isU64(timestamp_ms)) {
    throw usage(command, '<timestamp_ms> must be a whole number of milliseconds, below 2^64');
  }
  if (/^-[\d.]+$/.test(temperature)) {
    throw usage(
      command,
      `<temperature> is ${temperature}: no enclave signs a reading below 0 °C, since the contract's temperature is a u64`,
    );
  }
  if (!isU64(temperature)) throw usage(command, '<temperature> must be a whole number from 0, below 2^64');
  if (location === '') throw usage(command, '<location> must be the text that the enclave was asked for');
  return { signature: fromHex(hex), timestampMs: timestamp_ms, data: { location, temperature } };
}

/** The enclave signed a reading of another place than the one asked for. */
class OtherPlaceError extends EnclaveError {
  readonly code = 'OTHER_PLACE';
}

/** A reading from the enclave itself, believed only under the key that is registered. */
async function askForReading(
  { url, location }: { url: string; location: string },
  { image }: EnclaveConfig,
  { publicKey }: Enclave,
  roots: Uint8Array[] | undefined,
): Promise<WeatherReading> {
  const client = new EnclaveClient(url, { policy: { images: [image], publicKey }, ...(roots && { roots }) });
  const reading = await client.processData({ location }, WeatherResponse);
  // The signature is genuine, but whoever stands between may have asked for another place.
  if (reading.data.location !== location) {
    throw new OtherPlaceError(
      `asked for ${JSON.stringify(location)}, got a signed reading of ${JSON.stringify(reading.data.location)}: something on the way to ${url} exchanges answers. Nothing was sent`,
    );
  }
  return reading;
}

const command: Command = {
  name: 'update_weather',
  purpose:
    'Mints a reading that a registered enclave signed at most 90 minutes ago, and gives the WeatherNFT to the sender. The\nconfig of the enclave is looked up. With --from-url, the reading is asked for and verified first.',
  positionals: ['app_package_id', 'module_name', 'otw_name', 'enclave_object_id', ...READING],
  optional: READING.length,
  options: {
    'from-url': ['<enclave url>', 'ask this enclave for a reading'],
    location: ['<place>', 'the place to ask for'],
    ...ROOT_OPTION,
  },
  plan(input) {
    const { appPackage, moduleName, application, enclaveId, ask } = read(input);
    if (!ask) givenReading(input.args);
    return [
      `read the enclave ${enclaveId}, which must be one for ${application}, and its config`,
      ...(ask
        ? [
            `ask ${ask.url} for the weather in ${JSON.stringify(ask.location)}, and verify it by the registered key`,
          ]
        : []),
      `call ${appPackage}::${moduleName}::update_weather, and transfer the WeatherNFT to the sender`,
    ];
  },
  async run(input, chain) {
    const { appPackage, moduleName, application, enclaveId, ask } = read(input);
    const given = ask ? null : givenReading(input.args);
    const roots = await readRoots(input.options);
    const enclave = await readEnclave(chain.client, enclaveId);
    await checkContract(chain, enclave, { application });
    const config = await readConfig(chain.client, enclave.configId);
    const reading = ask ? await askForReading(ask, config, enclave, roots) : given;
    if (!reading) throw usage(command, 'there is no reading');
    const tx = new Transaction();
    const nft = updateWeather(tx, { appPackage, moduleName, enclaveId, configId: config.id, reading });
    tx.transferObjects([nft], chain.sender);
    return await chain.submit(tx, {
      title: `mint the weather in ${JSON.stringify(reading.data.location)}`,
      fields: {
        enclave: enclave.id,
        config: config.id,
        location: reading.data.location,
        temperature: reading.data.temperature,
        timestampMs: reading.timestampMs,
      },
      report: ({ created }) => ({ nft: created.find(({ type }) => type.endsWith('::WeatherNFT'))?.id }),
    });
  },
};

await runCommand(command);
