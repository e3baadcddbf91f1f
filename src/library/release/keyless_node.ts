/**
 * Verifies Sigstore bundles (v0.3) with Sigstore's own packages, which a program installs beside this
 * library. The caller passes the trusted root, and nothing is fetched.
 */
import { PAYLOAD_TYPE } from './envelope.ts';
import { type ReleaseCode, ReleaseError, ReleaseIdentityError } from './errors.ts';
import type { OpenBundle, ReleaseEvent, ReleaseIdentity, SignerClaims } from './identity.ts';
import { badForm, requireObject } from './json.ts';

const MEDIA_TYPE = 'application/vnd.dev.sigstore.bundle.v0.3+json';

/** Extensions of Fulcio's certificates, below 1.3.6.1.4.1.57264.1 (its "Sigstore OID information"). */
const EXTENSIONS = {
  issuer: 8,
  'runner environment': 11,
  'source repository': 12,
  'source commit': 13,
  'source ref': 14,
  'repository id': 15,
  'owner id': 17,
  workflow: 18,
  event: 20,
} as const;
type ExtensionName = keyof typeof EXTENSIONS;
const ARC = '1.3.6.1.4.1.57264.1.';
/** The only accepted kind of runner: self-hosted runners could sign anything in the name of the workflow. */
const RUNNER = 'github-hosted';
const TAG = /^refs\/tags\/([!-~]{1,200})$/;

/**
 * Verifies a bundle with a DSSE envelope: its certificate's chain, its entry in the transparency log, the
 * certificate's entry in Certificate Transparency, its time, its signature, and its signer.
 *
 * @throws ReleaseError: RELEASE_FORM, RELEASE_SIGNATURE, RELEASE_CERTIFICATE, RELEASE_INCLUSION,
 *   RELEASE_IDENTITY, RELEASE_UNSUPPORTED, RELEASE_OPTION
 */
export const openBundle: OpenBundle = async (value, { identity, trustedRoot, events }) => {
  const { bundleFromJSON, toSignedEntity, toTrustMaterial, TrustedRoot, Verifier } = await loadSigstore();
  const { mediaType, dsseEnvelope } = requireObject(value, 'the bundle');
  if (mediaType !== MEDIA_TYPE) throw badForm('the bundle', `of the media type ${MEDIA_TYPE}`);
  if (requireObject(dsseEnvelope, 'the envelope of the bundle')['payloadType'] !== PAYLOAD_TYPE) {
    throw badForm('the envelope', `of the payload type ${PAYLOAD_TYPE}`);
  }
  const material = attempt('RELEASE_OPTION', 'trustedRoot is not a TrustedRoot of Sigstore', () =>
    toTrustMaterial(TrustedRoot.fromJSON(trustedRoot)),
  );
  const { certificateAuthorities, tlogs, ctlogs } = material;
  if ([certificateAuthorities, tlogs, ctlogs].some((list) => list.length === 0)) {
    throw new ReleaseError('RELEASE_OPTION', 'trustedRoot lacks certificate authorities or logs');
  }
  const bundle = attempt('RELEASE_FORM', 'the bundle is not a Sigstore bundle', () => bundleFromJSON(value));
  const signer = attempt('RELEASE_SIGNATURE', 'the bundle is not signed as Sigstore requires', () =>
    new Verifier(material).verify(toSignedEntity(bundle)),
  );
  const claims = checkIdentity(signer.identity, identity, events);
  const { content } = bundle;
  if (content.$case !== 'dsseEnvelope') throw badForm('the content of the bundle', 'a DSSE envelope');
  return { payload: new Uint8Array(content.dsseEnvelope.payload), claims };
};

/**
 * Codes of this library, by the codes of Sigstore's `VerificationError`. For any other code, `attempt` uses
 * its fallback.
 */
const CAUSES: Readonly<Record<string, ReleaseCode>> = {
  CERTIFICATE_ERROR: 'RELEASE_CERTIFICATE',
  TIMESTAMP_ERROR: 'RELEASE_INCLUSION',
  TLOG_BODY_ERROR: 'RELEASE_INCLUSION',
  TLOG_ERROR: 'RELEASE_INCLUSION',
  TLOG_INCLUSION_PROOF_ERROR: 'RELEASE_INCLUSION',
  TLOG_INCLUSION_PROMISE_ERROR: 'RELEASE_INCLUSION',
  TLOG_MISSING_INCLUSION_ERROR: 'RELEASE_INCLUSION',
};

function attempt<Result>(fallback: ReleaseCode, message: string, run: () => Result): Result {
  try {
    return run();
  } catch (cause) {
    const code = CAUSES[String(Object(cause).code)] ?? fallback;
    const reason = cause instanceof Error ? `: ${cause.message.slice(0, 300)}` : '';
    throw new ReleaseError(code, `${message}${reason}`, { cause });
  }
}

interface CertificateIdentity {
  readonly subjectAlternativeName?: string;
  readonly oids?: readonly {
    readonly oid?: { readonly id: readonly number[] } | undefined;
    readonly value: Uint8Array;
  }[];
}

function checkIdentity(
  { subjectAlternativeName, oids = [] }: CertificateIdentity = {},
  identity: ReleaseIdentity,
  events: readonly ReleaseEvent[],
): SignerClaims {
  const readExtension = (name: ExtensionName): string | undefined => {
    const values = oids.filter(({ oid }) => oid?.id.join('.') === `${ARC}${EXTENSIONS[name]}`);
    return values.length === 1 && values[0] ? decodeUtf8String(values[0].value) : undefined;
  };
  const requireExtension = (name: ExtensionName, ...expected: readonly string[]): string => {
    const value = readExtension(name);
    if (value === undefined || !expected.includes(value)) {
      throw new ReleaseIdentityError(name, expected.join(' or '), value);
    }
    return value;
  };
  requireExtension('issuer', identity.issuer);
  requireExtension('repository id', identity.repositoryId);
  requireExtension('owner id', identity.ownerId);
  requireExtension('runner environment', RUNNER);
  requireExtension('event', ...events);
  const ref = readExtension('source ref');
  const [, tag] = TAG.exec(ref ?? '') ?? [];
  if (ref === undefined || tag === undefined)
    throw new ReleaseIdentityError('source ref', 'refs/tags/*', ref);
  const workflow = `${readExtension('source repository')}/${identity.workflow}@${ref}`;
  requireExtension('workflow', workflow);
  // If the workflow calls a reusable workflow, the subject is the called workflow, which must not sign.
  if (subjectAlternativeName !== workflow) {
    throw new ReleaseIdentityError('subject', workflow, subjectAlternativeName);
  }
  return { commit: readExtension('source commit'), tag };
}

/**
 * Decodes a UTF8String in DER of at most 65,535 bytes (X.690 section 8.1). Returns undefined for anything
 * else.
 */
function decodeUtf8String(der: Uint8Array): string | undefined {
  const [tag, first = 0, second = 0, third = 0] = der;
  const [length, start] =
    first < 0x80
      ? [first, 2]
      : first === 0x81
        ? [second, 3]
        : first === 0x82
          ? [256 * second + third, 4]
          : [-1, 0];
  if (tag !== 0x0c || der.length !== start + length) return undefined;
  return new TextDecoder().decode(der.subarray(start));
}

async function loadSigstore() {
  try {
    const [{ bundleFromJSON }, { toSignedEntity, toTrustMaterial, Verifier }, { TrustedRoot }] =
      await Promise.all([
        import('@sigstore/bundle'),
        import('@sigstore/verify'),
        import('@sigstore/protobuf-specs'),
      ]);
    return { bundleFromJSON, toSignedEntity, toTrustMaterial, TrustedRoot, Verifier };
  } catch (cause) {
    throw new ReleaseError(
      'RELEASE_UNSUPPORTED',
      'a keyless release needs the packages @sigstore/bundle, @sigstore/protobuf-specs and @sigstore/verify: install them',
      { cause },
    );
  }
}
