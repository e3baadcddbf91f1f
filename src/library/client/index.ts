/** `sui-enclave/client`: calls an enclave and accepts only verified answers, in Node and browsers. */
export { AttestationError, certificatesFromPem, type Image, parsePcrs } from '../attestation/index.ts';
export { text, u8, u64 } from '../wire/bcs.ts';
export { type SignedType, signedType } from '../wire/intent.ts';
export { address, bool, bytes, option, u16, u32, u128, u256, vector } from '../wire/move.ts';
export type { SchemaField, SchemaStruct, SchemaType } from '../wire/schema_type.ts';
export { type Struct, struct } from '../wire/struct.ts';
export {
  EnclaveClient,
  type RegisteredAnswer,
  type RegisteredEnclaveClient,
  type VerifiedAnswer,
} from './client.ts';
export { describeSigned, type SignedField } from './describe_signed.ts';
export * from './errors.ts';
export type {
  AttestOptions,
  CallOptions,
  ClientPolicy,
  ConfigClientOptions,
  EnclaveClientOptions,
  RequestOptions,
} from './options.ts';
export { mayHaveExecuted } from './outcome.ts';
export {
  type AppSchema,
  fetchSchema,
  type JsonSchema,
  readSchema,
  type SchemaEndpoint,
  type SchemaOptions,
} from './schema.ts';
