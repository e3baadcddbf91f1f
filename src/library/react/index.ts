/**
 * `sui-enclave/react`: the library as state of React components. Only this entry has React as a peer
 * dependency.
 */
export type {
  EnclaveStateError,
  KeyChange,
  RegisteredEnclaveOptions,
  UsedEnclave,
} from './attested_enclave.ts';
export { useEnclave } from './use_enclave.ts';
export { type UsedZkLogin, useZkLogin, type ZkLoginOptions } from './use_zk_login.ts';
export type { LogInOptions, ZkLoginProgress, ZkLoginStep } from './zk_login_flow.ts';
