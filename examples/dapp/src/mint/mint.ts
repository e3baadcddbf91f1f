/** Mints a reading with the connected wallet, and reads the object as the chain has it. */
import { bcs } from '@mysten/sui/bcs';
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { Transaction } from '@mysten/sui/transactions';
import { toExecutionError } from 'sui-enclave/sui';
import { degreesText, mintCall, type Reading, tenthsText } from '../enclave/weather.ts';
import type { Settings } from '../settings.ts';
import type { Kit } from '../wallet/kit.ts';

/** An object of the contract, by its fields on chain. */
export interface Minted {
  readonly id: string;
  /** The name of its struct. */
  readonly name: 'WeatherNFT' | 'TemperatureNFT';
  readonly owner: string;
  readonly location: string;
  readonly celsius: string;
  readonly timestampMs: number;
  /** Digest of the transaction that made it. */
  readonly digest: string;
}

// As `move/weather` declares them.
const WeatherNft = bcs.struct('WeatherNFT', {
  id: bcs.Address,
  location: bcs.string(),
  temperature: bcs.u64(),
  timestamp_ms: bcs.u64(),
});
const TemperatureNft = bcs.struct('TemperatureNFT', {
  id: bcs.Address,
  location: bcs.string(),
  tenths_plus_100000: bcs.u64(),
  timestamp_ms: bcs.u64(),
});

interface Order {
  readonly kit: Kit;
  readonly sui: Settings['sui'];
  readonly reading: Reading;
  readonly enclaveId: string;
  /** Address of the connected account. */
  readonly owner: string;
}

/** @throws what the wallet throws; SuiError */
export async function mint({ kit, sui, reading, enclaveId, owner }: Order): Promise<Minted> {
  const transaction = new Transaction();
  transaction.setSender(owner);
  transaction.transferObjects([mintCall(transaction, reading, sui, enclaveId)], owner);
  const result = await kit.signAndExecuteTransaction({ transaction });
  const { digest, effects, status } = result.Transaction ?? result.FailedTransaction;
  if (status.error !== null) throw toExecutionError(status.error);
  const client = kit.getClient();
  // Reads show a transaction later than the node executes it.
  await client.core.waitForTransaction({ digest });
  for (const { objectId, idOperation } of effects.changedObjects) {
    const minted = idOperation === 'Created' ? await readMinted(client, objectId) : undefined;
    if (minted !== undefined) return { ...minted, digest };
  }
  throw new Error(`the transaction ${digest} was executed, but no object of it was found`);
}

/** Reads a minted object; undefined for an object that is not of the contract. */
async function readMinted(
  client: ClientWithCoreApi,
  objectId: string,
): Promise<Omit<Minted, 'digest'> | undefined> {
  const { object } = await client.core.getObject({ objectId, include: { content: true } });
  const { content, type, owner } = object;
  const holder = owner.$kind === 'AddressOwner' ? owner.AddressOwner : owner.$kind;
  const common = { id: objectId, owner: holder };
  // An upgraded package has another id than its types.
  if (type.endsWith('::weather::WeatherNFT')) {
    const { location, temperature, timestamp_ms } = WeatherNft.parse(content);
    const values = { location, celsius: degreesText(BigInt(temperature)), timestampMs: Number(timestamp_ms) };
    return { ...common, name: 'WeatherNFT', ...values };
  }
  if (type.endsWith('::weather::TemperatureNFT')) {
    const { location, tenths_plus_100000, timestamp_ms } = TemperatureNft.parse(content);
    const celsius = tenthsText(BigInt(tenths_plus_100000));
    return { ...common, name: 'TemperatureNFT', location, celsius, timestampMs: Number(timestamp_ms) };
  }
  return undefined;
}
