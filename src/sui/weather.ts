/** The call of `move/weather`: the pattern for the calls of your own contract. Browser-safe. */
import type { Transaction, TransactionResult } from '@mysten/sui/transactions';
import type { U64Input } from '../wire/bcs.ts';
import { addressOf, bytesOf, identifierOf, textOf, u64Of } from './values.ts';

/** A signed answer of the weather application, as `EnclaveClient.processData` returns it. */
export interface WeatherReading {
  readonly data: { readonly location: string; readonly temperature: U64Input };
  readonly timestampMs: U64Input;
  /** 64 bytes. */
  readonly signature: Uint8Array;
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
export function updateWeather(
  tx: Transaction,
  call: {
    readonly appPackage: string;
    /** Default: `weather`. */
    readonly moduleName?: string;
    readonly enclaveId: string;
    /** The config of that enclave. */
    readonly configId: string;
    readonly reading: WeatherReading;
  },
): TransactionResult {
  const { data, timestampMs, signature } = call.reading;
  const module = identifierOf('the module', call.moduleName ?? 'weather');
  return tx.moveCall({
    target: `${addressOf('the package of the application', call.appPackage)}::${module}::update_weather`,
    arguments: [
      tx.pure(textOf('the location', data.location)),
      tx.pure(u64Of('the temperature', data.temperature)),
      tx.pure(u64Of('the timestamp', timestampMs)),
      tx.pure.vector('u8', bytesOf('the signature', signature, { min: 64, max: 64 })),
      tx.object(addressOf('the id of the enclave', call.enclaveId)),
      tx.object(addressOf('the id of the config', call.configId)),
      tx.object.clock(),
    ],
  });
}
