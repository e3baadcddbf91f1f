/** `sui-enclave/sui`: read and manage registered enclaves on Sui, and submit what they sign; in Node and browsers. */
export { type Image, parsePcrs } from '../attestation/image.ts';
export * from './errors.ts';
export { failureOf, suiErrorOf } from './failures.ts';
export {
  type Contract,
  type Enclave,
  type EnclaveConfig,
  enclaveAddress,
  findRegistration,
  isKeyTooOld,
  isStale,
  listCapabilities,
  listEnclaves,
  type Registrar,
  type Registration,
  readConfig,
  readEnclave,
  readRegistrar,
} from './objects.ts';
export { type SignedTransaction, sendTransaction } from './send.ts';
export {
  beginRotation,
  createEnclaveConfig,
  destroyEnclave,
  destroyOldEnclave,
  destroyRegistrarCap,
  finishRotation,
  loadAttestation,
  newCapFromPublisher,
  newEnclave,
  newEnclaveConfig,
  newRegistrarCap,
  publishPackage,
  registerEnclave,
  registerEnclaveAsRegistrar,
  retireConfig,
  revokeRegistrarCap,
  shareConfig,
  shareEnclave,
  updateMaxKeyAge,
  updateName,
  updatePcrs,
  upgradePackage,
} from './transactions.ts';
export { applicationType } from './values.ts';
export { updateWeather, type WeatherReading } from './weather.ts';
