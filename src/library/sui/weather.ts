/** The call of `move/weather`: the pattern for the calls of your own contract. Browser-safe. */
import { bcs } from '@mysten/bcs';
import type { Transaction, TransactionResult } from '@mysten/sui/transactions';
import { text, type U64Input, u64 } from '../wire/bcs.ts';
import { signedType } from '../wire/intent.ts';
import { type ObjectInput, objectArgument } from './arguments.ts';
import { type SubmittedAnswer, signedArguments } from './signed.ts';
import { addressOf, identifierOf } from './values.ts';

const WeatherResponse = signedType(0, bcs.struct('WeatherResponse', { location: text, temperature: u64 }));

/** A signed answer of the weather application, as `EnclaveClient.processData` returns it. */
export type WeatherReading = SubmittedAnswer<{ readonly location: string; readonly temperature: U64Input }>;

/**
 * Mints a signed reading. Returns the WeatherNFT: transfer it, or use it in the same transaction.
 *
 * @example
 * const enclaveClient = await EnclaveClient.forConfig(suiClient, configId, enclaveUrl);
 * const reading = await enclaveClient.processData({ location: 'San Francisco' }, WeatherResponse);
 * const nft = updateWeather(tx, { appPackage, enclaveId: reading.enclaveId, configId, reading });
 * tx.transferObjects([nft], sender);
 */
export function updateWeather(
  tx: Transaction,
  call: {
    readonly appPackage: string;
    /** Default: `weather`. */
    readonly moduleName?: string;
    readonly enclaveId: ObjectInput;
    /** The config of that enclave. */
    readonly configId: ObjectInput;
    readonly reading: WeatherReading;
  },
): TransactionResult {
  const { data, timestampMs, signature } = signedArguments(tx, call.reading, WeatherResponse);
  const module = identifierOf('the module', call.moduleName ?? 'weather');
  return tx.moveCall({
    target: `${addressOf('the package of the application', call.appPackage)}::${module}::update_weather`,
    arguments: [
      ...[data.location, data.temperature, timestampMs, signature],
      objectArgument(tx, 'enclave', call.enclaveId),
      objectArgument(tx, 'config', call.configId),
      tx.object.clock(),
    ],
  });
}
