/**
 * Verifies an enclave, calls it, and submits its signed answer to a contract on Sui: `node main.ts
 * [location]`.
 */
import { bcs } from '@mysten/bcs';
import { Transaction } from '@mysten/sui/transactions';
import { EnclaveClient, NotRegisteredError, signedType, text, u64 } from 'sui-enclave/client';
import {
  buildTransaction,
  findRegistration,
  readConfig,
  sendTransaction,
  signedArguments,
} from 'sui-enclave/sui';
import { readContract, readEnclave, readNode, readSigner } from './settings.ts';

// The application signs the intent 0 and then the fields, in the order in which the Move module reads them.
const WeatherResponse = signedType(0, bcs.struct('WeatherResponse', { location: text, temperature: u64 }));
const [enclave, sui, signer] = [readEnclave(), readNode(), readSigner()];
const { appPackage, configId } = readContract();
const [location = 'San Francisco'] = process.argv.slice(2);

// 1. Verify that an enclave of this image answers, and get its key.
const client = new EnclaveClient(enclave.url, enclave.options);
const { document, rootSha256 } = await client.attest();
console.log(`Attested: ${document.moduleId}, under the root ${rootSha256}`);

// 2. Call the enclave, and check that the attested key signed the answer recently, and for this place.
const question = { location };
const reading = await client.processData(question, WeatherResponse, { expect: question });
console.log(`Signed:   ${reading.data.temperature} °C in ${reading.data.location}`);

// 3. Submit the answer to the contract, which accepts a key that is registered under its config, and verifies
// the signature again.
const config = await readConfig(sui, configId);
const { enclaveId, state } = await findRegistration(sui, config, reading.publicKey);
if (state !== 'registered') throw new NotRegisteredError('unregistered', reading.publicKey, configId);
const sender = signer.toSuiAddress();
const tx = new Transaction();
tx.setSender(sender);
const { data, timestampMs, signature: signedByEnclave } = signedArguments(tx, reading, WeatherResponse);
const nft = tx.moveCall({
  target: `${appPackage}::weather::update_weather`,
  arguments: [
    data.location,
    data.temperature,
    timestampMs,
    signedByEnclave,
    tx.object(enclaveId),
    tx.object(configId),
    tx.object.clock(),
  ],
});
tx.transferObjects([nft], sender);
const transaction = await buildTransaction(sui, tx);
const { signature } = await signer.signTransaction(transaction);
const { digest, effects, objectTypes } = await sendTransaction(sui, {
  transaction,
  signatures: [signature],
  include: { effects: true, objectTypes: true },
});
const created = effects.changedObjects.find(({ idOperation }) => idOperation === 'Created');
console.log(`Minted:   ${created?.objectId}, a ${objectTypes[created?.objectId ?? '']}, in ${digest}`);
