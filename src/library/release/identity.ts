/** Identifies the workflow that signs a keyless release, by its claims in Fulcio's certificate. */
import { invalidReleaseOption } from './errors.ts';

/**
 * The workflow that releases. It is identified by numeric ids, not by names, since a repository that is
 * deleted and created again by somebody else has another id.
 */
export interface ReleaseIdentity {
  /** Issuer of the workflow's token, such as `https://token.actions.githubusercontent.com`. */
  readonly issuer: string;
  /** Numeric id of the repository. */
  readonly repositoryId: string;
  /** Numeric id of the repository's owner. */
  readonly ownerId: string;
  /** Path of the workflow in the repository, such as `.github/workflows/release.yml`. */
  readonly workflow: string;
}

/** Permitted signer: the author's Ed25519 key, or a workflow under a root of Sigstore. */
export type ReleaseSigner =
  | {
      /** The author's Ed25519 key, 32 bytes. */
      readonly publicKey: Uint8Array;
    }
  | {
      readonly identity: ReleaseIdentity;
      /** The JSON of Sigstore's TrustedRoot: certificate authorities, logs and timestamp authorities. */
      readonly trustedRoot: unknown;
    };

/** Claims of the certificate about the workflow run that signed. */
export interface SignerClaims {
  /** The commit that the workflow ran on; undefined for a signature by key. */
  readonly commit: string | undefined;
  /** The tag that the workflow ran on; undefined for a signature by key. */
  readonly tag: string | undefined;
}

/**
 * Events that may begin a run that signs: a release needs a pushed tag, whereas a head may also be renewed by
 * hand.
 */
export const RELEASE_EVENTS = ['push'] as const;
export const HEAD_EVENTS = ['push', 'workflow_dispatch'] as const;
export type ReleaseEvent = (typeof HEAD_EVENTS)[number];

/** The workflow that may sign a bundle, and the time of the check. */
export interface BundleTrust {
  readonly identity: ReleaseIdentity;
  readonly trustedRoot: unknown;
  readonly events: readonly ReleaseEvent[];
}

/** A verified payload, and the claims of its signer. */
export interface OpenedBundle {
  readonly payload: Uint8Array;
  readonly claims: SignerClaims;
}

/**
 * Verifies a bundle of Sigstore, in Node only. Elsewhere, `#keyless` under `imports` of package.json resolves
 * to a module that refuses every bundle.
 */
export type OpenBundle = (value: unknown, trust: BundleTrust) => Promise<OpenedBundle>;

const FORMS: Readonly<Record<keyof ReleaseIdentity, RegExp>> = {
  issuer: /^https:\/\/[!-~]{1,200}$/,
  repositoryId: /^[1-9][0-9]{0,18}$/,
  ownerId: /^[1-9][0-9]{0,18}$/,
  workflow: /^\.github\/workflows\/[\w.-]{1,100}\.ya?ml$/,
};

/**
 * Checks and copies the permitted signer. Refuses unknown properties.
 *
 * @throws ReleaseError: RELEASE_OPTION
 */
export function checkSigner(signer: ReleaseSigner): ReleaseSigner {
  if (typeof signer !== 'object' || signer === null)
    throw invalidReleaseOption('signer must be a key or an identity');
  const names = Object.keys(signer).sort().join();
  if ('publicKey' in signer && names === 'publicKey') {
    const { publicKey } = signer;
    if (publicKey instanceof Uint8Array && publicKey.length === 32) return { publicKey: publicKey.slice() };
    throw invalidReleaseOption('publicKey must be an Ed25519 key of 32 bytes');
  }
  if (!('identity' in signer) || names !== 'identity,trustedRoot') {
    throw invalidReleaseOption('signer must have "publicKey", or "identity" and "trustedRoot"');
  }
  const { identity, trustedRoot } = signer;
  return { identity: checkIdentity(identity), trustedRoot };
}

/** Checks and copies an identity. @throws ReleaseError: RELEASE_OPTION */
export function checkIdentity(identity: ReleaseIdentity): ReleaseIdentity {
  if (typeof identity !== 'object' || identity === null)
    throw invalidReleaseOption('identity must be an object');
  const unknown = Object.keys(identity).find((name) => !Object.hasOwn(FORMS, name));
  if (unknown !== undefined) throw invalidReleaseOption(`unknown property "${unknown}" of the identity`);
  const read = (name: keyof ReleaseIdentity) => {
    const value: unknown = identity[name];
    if (typeof value === 'string' && FORMS[name].test(value)) return value;
    throw invalidReleaseOption(`"${name}" of the identity must match ${FORMS[name].source}`);
  };
  return {
    issuer: read('issuer'),
    repositoryId: read('repositoryId'),
    ownerId: read('ownerId'),
    workflow: read('workflow'),
  };
}
