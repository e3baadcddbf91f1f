/**
 * `sui-enclave/sui`: read and manage registered enclaves on Sui, and submit what they sign; in Node and
 * browsers.
 */
export { type Image, parsePcrs } from '../attestation/image.ts';
export type { ObjectInput } from './arguments.ts';
export type { AskOptions } from './ask.ts';
export { type BuildOptions, buildTransaction } from './build.ts';
export * from './errors.ts';
export {
  ENCLAVE_EVENTS,
  type EnclaveEvent,
  type EnclaveEventName,
  type EventPage,
  type EventQuery,
  iterateEvents,
  readEvents,
} from './events.ts';
export { type EnclaveCalls, type SuiEnclaveExtension, suiEnclave } from './extension.ts';
export { toExecutionError, toSuiError } from './failures.ts';
export {
  type Feed,
  type FeedRules,
  type FeedUpdate,
  quoteType,
  readFeed,
  type SignedValue,
} from './feed.ts';
export { createFeed, type FeedQuote, type NewFeedRules, updateFeed } from './feed_calls.ts';
export {
  acceptedImages,
  type Contract,
  type Enclave,
  type EnclaveConfig,
  type EnclaveList,
  enclaveAddress,
  findRegistration,
  isKeyTooOld,
  isOverlapping,
  isStale,
  type ListedEnclave,
  type ListOptions,
  listCapabilities,
  listEnclaves,
  type Registrar,
  type Registration,
  type RegistrationOptions,
  readConfig,
  readEnclave,
  readRegistrar,
} from './objects.ts';
export { type PackageVersion, readApplicationType, readPackage } from './packages.ts';
export { type SignedTransaction, sendTransaction } from './send.ts';
export {
  type FieldArguments,
  type SignedArguments,
  type SubmittedAnswer,
  signedArguments,
} from './signed.ts';
export { type OnChainStruct, type OnChainType, structDifference } from './struct_difference.ts';
export type { Source } from './structs.ts';
export {
  beginOverlap,
  beginRotation,
  createEnclaveConfig,
  destroyEnclave,
  destroyOldEnclave,
  destroyRegistrarCap,
  endOverlap,
  finishRotation,
  loadAttestation,
  migrateConfig,
  newCapFromPublisher,
  newEnclave,
  newEnclaveConfig,
  newRegistrarCap,
  publishPackage,
  registerEnclave,
  registerEnclaveAsAnyone,
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
