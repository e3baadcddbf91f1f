/** `sui-enclave/release`: verifies who released an image. `README.md` beside this file explains it. */
export { RELEASE_CODES, type ReleaseCode, ReleaseError, ReleaseIdentityError } from './errors.ts';
export type { ReleaseIdentity, ReleaseSigner } from './identity.ts';
export type { LogHead, SeenHead } from './log.ts';
export type { ReleaseContent } from './statement.ts';
export { type VerifiedRelease, type VerifyReleaseOptions, verifyRelease } from './verify.ts';
