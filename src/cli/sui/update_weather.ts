/**
 * `sui-enclave update_weather`: mints a reading that an enclave signed. The command line has the reading, or
 * the command requests it from the enclave.
 */

import { Transaction } from '@mysten/sui/transactions';
import { fromHex } from '@mysten/sui/utils';
import { EnclaveClient } from 'sui-enclave/client';
import {
  acceptedImages,
  type Enclave,
  type EnclaveConfig,
  findRegistration,
  readConfig,
  readEnclave,
} from 'sui-enclave/sui/objects';
import { type SubmittedAnswer, signedArguments } from 'sui-enclave/sui/signed';
import { text as signedText, type U64Input, u64 } from 'sui-enclave/wire/bcs';
import { signedType } from 'sui-enclave/wire/intent';
import { struct } from 'sui-enclave/wire/struct';
import * as v from 'valibot';
import { runAsProcess, UsageError } from '../command.ts';
import { enclaveUrl, objectId, text } from '../values.ts';
import type { Chain } from './chain.ts';
import { type Input, suiCommand } from './command.ts';
import { checkContract, checkRegistered, readRoots } from './contract.ts';
import { SuiCommandError } from './errors.ts';
import { formatApplicationType, formerIds } from './ids.ts';
import { ROOT_OPTION } from './options.ts';

/** The reading, as the enclave signs it and `move/weather` reads it. */
const WeatherResponse = signedType(0, struct('WeatherResponse', { location: signedText, temperature: u64 }));
type WeatherReading = SubmittedAnswer<{ readonly location: string; readonly temperature: U64Input }>;

/** A signature of 64 bytes. */
const signature = v.pipe(
  v.string(),
  v.regex(/^[0-9a-f]{128}$/i, 'must be 128 hexadecimal digits'),
  v.transform(fromHex),
);
const isU64 = (value: string) => /^(0|[1-9][0-9]{0,19})$/.test(value) && BigInt(value) < 2n ** 64n;

const IDS = ['appPackage', 'module', 'witness'] as const;
const ARGUMENTS = {
  signature_hex: { schema: signature, optional: true },
  timestamp_ms: {
    schema: v.pipe(v.string(), v.check(isU64, 'must be an integer number of milliseconds, below 2^64')),
    optional: true,
  },
  location: {
    schema: v.pipe(v.string(), v.nonEmpty('must be the place that the enclave was asked for')),
    optional: true,
  },
  temperature: {
    schema: v.pipe(
      v.string(),
      v.check(
        (value) => !/^-[\d.]+$/.test(value),
        ({ input }) =>
          `is ${input}: no enclave signs a reading below 0 °C, since the contract's temperature is a u64`,
      ),
      v.check(isU64, 'must be an integer from 0, below 2^64'),
    ),
    optional: true,
  },
} as const;

const OPTIONS = {
  enclave: {
    value: '<id>',
    help: 'the registered enclave that signed (default with --from-url: the one whose key signed the reading)',
    schema: objectId,
  },
  'from-url': { value: '<enclave url>', help: 'request the reading from this enclave', schema: enclaveUrl },
  location: { value: '<place>', help: 'with --from-url: the place', schema: text },
  ...ROOT_OPTION,
} as const;

type WeatherInvocation = Pick<
  Input<typeof ARGUMENTS, typeof OPTIONS, (typeof IDS)[number]>,
  'ids' | 'args' | 'options' | 'deployments'
>;

/** Returns the source of the reading: the command line, or an enclave. @throws UsageError */
function chooseSource({ args, options }: Pick<WeatherInvocation, 'args' | 'options'>) {
  const { signature_hex: signatureBytes, timestamp_ms: timestampMs, location, temperature } = args;
  const { 'from-url': url, location: optionLocation } = options;
  if (url !== undefined) {
    if (signatureBytes !== undefined || optionLocation === undefined) {
      throw new UsageError('with --from-url, give --location and no reading');
    }
    return { request: { url, location: optionLocation }, reading: null };
  }
  if (temperature === undefined || optionLocation !== undefined) {
    throw new UsageError(
      'give <signature_hex> <timestamp_ms> <location> <temperature>, or --from-url and --location',
    );
  }
  if (options.enclave === undefined) throw new UsageError('with a reading, give --enclave');
  const reading = { signature: signatureBytes, timestampMs, data: { location, temperature } };
  return { request: null, reading: reading as WeatherReading };
}

/**
 * Requests a reading from the enclave, and verifies its signature.
 *
 * @param enclave registered enclave whose key must have signed. If it is undefined, any enclave may have
 *   signed that runs an image that the config allows; the caller checks that its key is registered
 */
async function requestReading(
  { url, location }: { url: string; location: string },
  config: EnclaveConfig,
  enclave: Enclave | undefined,
  roots: Uint8Array[] | undefined,
): Promise<WeatherReading & { readonly publicKey: Uint8Array }> {
  const policy = {
    images: acceptedImages(config, Date.now()),
    ...(enclave && { publicKey: enclave.publicKey }),
  };
  const client = new EnclaveClient(url, { policy, ...(roots && { roots }) });
  const reading = await client.processData({ location }, WeatherResponse);
  // The signature is genuine, but a man in the middle may have sent a request for another place.
  if (reading.data.location !== location) {
    throw new SuiCommandError(
      'OTHER_PLACE',
      `asked for ${JSON.stringify(location)}, got a signed reading of ${JSON.stringify(reading.data.location)}: something between here and ${url} replaces requests or answers. Nothing was sent`,
    );
  }
  return reading;
}

/** Returns the reading, and the objects that the call takes. */
async function readSubmission(invocation: WeatherInvocation, chain: Chain) {
  const { enclave: enclaveId } = invocation.options;
  const application = formatApplicationType(invocation.ids);
  const { request, reading: argumentReading } = chooseSource(invocation);
  const roots = await readRoots(chain, invocation.options.root);
  if (enclaveId !== undefined) {
    const enclave = await readEnclave(chain.client, enclaveId);
    await checkContract(chain, enclave, { application });
    const config = await readConfig(chain.client, enclave.configId);
    const reading = argumentReading ?? (await requestReading(request, config, enclave, roots));
    return { reading, enclaveId: enclave.id, configId: config.id };
  }
  const [, entry] = invocation.deployments?.application() ?? [];
  if (request === null || entry?.config === undefined) {
    throw new UsageError(
      'give --enclave, or --network with a deployment file in which create_config has recorded the config',
    );
  }
  const config = await readConfig(chain.client, entry.config.id);
  await checkContract(chain, config, { application });
  const reading = await requestReading(request, config, undefined, roots);
  const registration = await findRegistration(chain.client, config, reading.publicKey);
  checkRegistered(registration, config, request.url);
  return { reading, enclaveId: registration.enclaveId, configId: config.id };
}

export const main = suiCommand({
  name: 'update_weather',
  purpose:
    'Mints a reading that a registered enclave signed at most 90 minutes ago, and transfers the WeatherNFT to the sender.\nIt reads the config from the enclave object, or without --enclave from the deployment file. With --from-url, it first\nrequests the reading from that URL and verifies it.',
  example: '--from-url https://weather.example --location Oslo --network testnet',
  ids: IDS,
  arguments: ARGUMENTS,
  formerly: {
    ...formerIds('appPackage', 'module', 'witness'),
    '--enclave': { label: 'enclave_object_id', schema: objectId },
    ...ARGUMENTS,
  },
  options: OPTIONS,
  check: chooseSource,
  async run(invocation, chain) {
    const { appPackage, module } = invocation.ids;
    const { reading, enclaveId, configId } = await readSubmission(invocation, chain);
    const tx = new Transaction();
    const { data, timestampMs, signature } = signedArguments(tx, reading, WeatherResponse);
    const signed = [data.location, data.temperature, timestampMs, signature];
    const nft = tx.moveCall({
      target: `${appPackage}::${module}::update_weather`,
      arguments: [...signed, tx.object(enclaveId), tx.object(configId), tx.object.clock()],
    });
    tx.transferObjects([nft], chain.sender());
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
});

if (import.meta.main) await runAsProcess(main);
