/** The two kinds of signed readings of the application, and the contract's functions that accept them. */
import { bcs } from '@mysten/bcs';
import type { Transaction, TransactionResult } from '@mysten/sui/transactions';
import { type EnclaveClient, signedType, text, u64, type VerifiedAnswer } from 'sui-enclave/client';
import { signedArguments } from 'sui-enclave/sui';
import type { Settings } from '../settings.ts';

// The application signs the intent and then the fields, in the order in which the Move module reads them.
const WeatherResponse = signedType(0, bcs.struct('WeatherResponse', { location: text, temperature: u64 }));
const Temperature = signedType(1, bcs.struct('Temperature', { location: text, tenths_plus_100000: u64 }));

/**
 * Unit of a reading. The first version of the contract has whole degrees; tenths, which may be negative, came
 * later.
 */
export type Precision = 'degrees' | 'tenths';

export type Reading =
  | {
      readonly precision: 'degrees';
      readonly answer: VerifiedAnswer<{ readonly location: string; readonly temperature: bigint }>;
    }
  | {
      readonly precision: 'tenths';
      readonly answer: VerifiedAnswer<{ readonly location: string; readonly tenths_plus_100000: bigint }>;
    };

/** @throws ClientError, AttestationError; the signal's reason */
export async function askWeather(
  client: EnclaveClient,
  precision: Precision,
  location: string,
  signal: AbortSignal,
): Promise<Reading> {
  const question = { location };
  // The answer must repeat the place: a host could send the answer to another question.
  const options = { expect: question, idempotent: true, signal };
  const body = { payload: question };
  return precision === 'degrees'
    ? { precision, answer: await client.call('/process_data', body, WeatherResponse, options) }
    : { precision, answer: await client.call('/temperature', body, Temperature, options) };
}

/** Formats a reading in degrees Celsius, with the digits that were signed. */
export function celsius(reading: Reading): string {
  return reading.precision === 'degrees'
    ? degreesText(reading.answer.data.temperature)
    : tenthsText(reading.answer.data.tenths_plus_100000);
}

export const degreesText = (temperature: bigint): string => `${temperature} °C`;
export const tenthsText = (tenths_plus_100000: bigint): string => {
  const celsius = (Number(tenths_plus_100000) - 100_000) / 10;
  return `${celsius.toFixed(1).replace('-', '−')} °C`;
};

/** Adds the call that mints the reading. The caller must still give the object an owner. */
export function mintCall(
  tx: Transaction,
  reading: Reading,
  { packageId, configId }: Settings['sui'],
  enclaveId: string,
): TransactionResult {
  const objects = [tx.object(enclaveId), tx.object(configId), tx.object.clock()];
  if (reading.precision === 'degrees') {
    const { data, timestampMs, signature } = signedArguments(tx, reading.answer, WeatherResponse);
    return tx.moveCall({
      target: `${packageId}::weather::update_weather`,
      arguments: [data.location, data.temperature, timestampMs, signature, ...objects],
    });
  }
  const { data, timestampMs, signature } = signedArguments(tx, reading.answer, Temperature);
  return tx.moveCall({
    target: `${packageId}::weather::update_temperature`,
    arguments: [data.location, data.tenths_plus_100000, timestampMs, signature, ...objects],
  });
}
