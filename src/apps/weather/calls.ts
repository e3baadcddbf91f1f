/**
 * The calls of `move/weather`, for dapps and tests. This module runs in browsers, and no image contains it.
 */
import type { Transaction, TransactionArgument, TransactionResult } from '@mysten/sui/transactions';
import { type ObjectInput, objectArgument } from 'sui-enclave/sui/arguments';
import { type SubmittedAnswer, signedArguments } from 'sui-enclave/sui/signed';
import { checkAddress, checkIdentifier } from 'sui-enclave/sui/values';
import { text, type U64Input, u64 } from 'sui-enclave/wire/bcs';
import { signedType } from 'sui-enclave/wire/intent';
import { struct } from 'sui-enclave/wire/struct';

// `types.ts` defines the same types, but imports the server, which does not run in a browser.
const WeatherResponse = signedType(0, struct('WeatherResponse', { location: text, temperature: u64 }));

const Temperature = signedType(1, struct('Temperature', { location: text, tenths_plus_100000: u64 }));

/** A signed answer of the weather application, as `EnclaveClient.processData` returns it. */
export type WeatherReading = SubmittedAnswer<{ readonly location: string; readonly temperature: U64Input }>;

/** A signed answer of the weather application's `POST /temperature`. */
export type TemperatureReading = SubmittedAnswer<{
  readonly location: string;
  /** Tenths of a degree Celsius, plus 100000: see `toCelsius`. */
  readonly tenths_plus_100000: U64Input;
}>;

interface WeatherCall<Reading> {
  readonly appPackage: string;
  /** Name of the Move module. Default: `weather`. */
  readonly moduleName?: string;
  readonly enclaveId: ObjectInput;
  /** The config under which the enclave is registered. */
  readonly configId: ObjectInput;
  readonly reading: Reading;
}

/**
 * Mints a signed reading. Returns the WeatherNFT: transfer it, or use it in the same transaction.
 *
 * @example
 * const enclaveClient = await EnclaveClient.forConfig(suiClient, configId, enclaveUrl);
 * const reading = await enclaveClient.processData({ location: 'San Francisco' }, WeatherResponse);
 * const nft = updateWeather(tx, { appPackage, enclaveId: reading.enclaveId, configId, reading });
 * tx.transferObjects([nft], sender);
 */
export function updateWeather(tx: Transaction, call: WeatherCall<WeatherReading>): TransactionResult {
  const { data, timestampMs, signature } = signedArguments(tx, call.reading, WeatherResponse);
  const answerArguments = [data.location, data.temperature, timestampMs, signature];
  return moveCall(tx, 'update_weather', { call, answerArguments });
}

/**
 * Mints a signed reading in tenths of a degree, which may be below 0 °C. Returns the TemperatureNFT.
 *
 * @example
 * const body = { payload: { location: 'Oslo' } };
 * const reading = await enclaveClient.call('/temperature', body, Temperature);
 * const nft = updateTemperature(tx, { appPackage, enclaveId: reading.enclaveId, configId, reading });
 */
export function updateTemperature(tx: Transaction, call: WeatherCall<TemperatureReading>): TransactionResult {
  const { data, timestampMs, signature } = signedArguments(tx, call.reading, Temperature);
  const answerArguments = [data.location, data.tenths_plus_100000, timestampMs, signature];
  return moveCall(tx, 'update_temperature', { call, answerArguments });
}

/** Returns the degrees Celsius of a reading, exact to a tenth: -0.4 for 99996. */
export function toCelsius(tenths_plus_100000: U64Input): number {
  return (Number(tenths_plus_100000) - 100_000) / 10;
}

function moveCall(
  tx: Transaction,
  name: string,
  { call, answerArguments }: { call: WeatherCall<unknown>; answerArguments: TransactionArgument[] },
): TransactionResult {
  const module = checkIdentifier('the module', call.moduleName ?? 'weather');
  return tx.moveCall({
    target: `${checkAddress('the package of the application', call.appPackage)}::${module}::${name}`,
    arguments: [
      ...answerArguments,
      objectArgument(tx, 'enclave', call.enclaveId),
      objectArgument(tx, 'config', call.configId),
      tx.object.clock(),
    ],
  });
}
