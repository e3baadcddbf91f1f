/** `sui-enclave/attestation`: the same in Node and in browsers. `README.md` beside this file explains it. */
export type { UserData } from '../sealing/user_data.ts';
export { type AttestationDocument, decodeAttestation } from './decode.ts';
export * from './errors.ts';
export { type AttestationExplanation, explainAttestation, type RuleResult } from './explain.ts';
export { type Image, parsePcrs } from './image.ts';
export { certificatesFromPem } from './pem.ts';
export type { AttestationPolicy, PolicyCheck } from './policy.ts';
export { predictRegistration, type RegistrationPrediction } from './predict.ts';
export { AWS_NITRO_ROOT_SHA256, awsNitroRoot } from './root.ts';
export { RULES, type Rule, type RuleId } from './rules.ts';
export { readUserData } from './user_data.ts';
export {
  type ChainEntry,
  type VerifiedAttestation,
  type VerifyOptions,
  verifyAttestation,
} from './verify.ts';
