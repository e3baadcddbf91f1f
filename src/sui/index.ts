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
  isStale,
  listCapabilities,
  listEnclaves,
  type Registration,
  readConfig,
  readEnclave,
} from './objects.ts';
export {
  createEnclaveConfig,
  destroyEnclave,
  destroyOldEnclave,
  publishPackage,
  registerEnclave,
  updateName,
  updatePcrs,
} from './transactions.ts';
export { applicationType } from './values.ts';
export { updateWeather, type WeatherReading } from './weather.ts';
