/** `sui-enclave/react`: hooks for pages. React is a peer dependency of this entry alone. */
export { type UsedZkLogin, useZkLogin, type ZkLoginOptions } from './use_zk_login.ts';
export type { LogInOptions, ZkLoginProgress, ZkLoginStep } from './zk_login_flow.ts';
