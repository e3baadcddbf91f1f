/** `sui-enclave/client`: call an enclave and trust only what it proves, in Node and browsers. */
export { AttestationError, certificatesFromPem, type Image, parsePcrs } from '../attestation/index.ts';
export { text, u8, u64 } from '../wire/bcs.ts';
export { type SignedType, signedType } from '../wire/intent.ts';
export { type CallOptions, EnclaveClient, type EnclaveClientOptions, type VerifiedAnswer } from './client.ts';
export * from './errors.ts';
