/** `sui-enclave/client`: calls an enclave and accepts only verified answers, in Node and browsers. */
export { AttestationError, certificatesFromPem, type Image, parsePcrs } from '../attestation/index.ts';
export { text, u8, u64 } from '../wire/bcs.ts';
export { type SignedType, signedType } from '../wire/intent.ts';
export {
  EnclaveClient,
  type RegisteredAnswer,
  type RegisteredEnclaveClient,
  type VerifiedAnswer,
} from './client.ts';
export * from './errors.ts';
export type {
  AttestOptions,
  CallOptions,
  ConfigClientOptions,
  EnclaveClientOptions,
  RequestOptions,
} from './options.ts';
export { mayHaveExecuted } from './outcome.ts';
