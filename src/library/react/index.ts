/** `sui-enclave/react`: the library as state of React components. */
export type { KeyChange, RegisteredEnclaveOptions, UsedEnclave } from './attested_enclave.ts';
export { useEnclave } from './use_enclave.ts';
