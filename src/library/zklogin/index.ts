/**
 * `sui-enclave/zklogin`: from a login at an OpenID provider to signatures that Sui accepts, in browsers and
 * Node.
 */
export { type Profile, SUI_V1 } from '../token/claims.ts';
export { type Network, PROVIDERS, type Provider } from '../token/providers.ts';
export { type AddressInputs, deriveAddress } from './address.ts';
export { type BeginOptions, beginLogin } from './begin.ts';
export { type CompleteOptions, completeLogin } from './complete.ts';
export { type DiscoveryOptions, discoverProvider } from './discovery.ts';
export * from './errors.ts';
export type { PrivateServiceOptions, ServiceOptions } from './http.ts';
export { decodeJwtPayload, type JwtPayload, type LoginClaims } from './jwt.ts';
export { cancelLogin, Login, type OpenOptions, resumeLogin } from './login.ts';
export type { BigNumber, NumberEncoding } from './numbers.ts';
export {
  type ProverProxy,
  type ProxyOptions,
  type ProxyRequest,
  type ProxyResponse,
  proverProxy,
} from './proxy.ts';
export type { Redirect } from './redirect.ts';
export { getProof, getSalt, type Proof, type ProofOptions, type ProofRequest } from './services.ts';
export {
  createEpochSource,
  type EpochSource,
  type ExecuteOptions,
  resumeSession,
  type SessionState,
  ZkLoginSession,
} from './session.ts';
export type { Sponsor, SponsoredTransaction, SponsorRequest } from './sponsor.ts';
export { type LoginStage, loginStage } from './stage.ts';
export { createBrowserStore, createMemoryStore, type SessionStore } from './storage.ts';
