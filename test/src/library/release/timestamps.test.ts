/** Timestamps (RFC 3161) in bundles of Sigstore, by the timestamp authority of `@sigstore/mock`. */
import { createHash, generateKeyPairSync } from 'node:crypto';
import { initializeTSA } from '@sigstore/mock';
import { beforeAll, describe, expect, test } from 'vitest';
import { RELEASE_EVENTS } from '../../../../src/library/release/identity.ts';
import { openBundle } from '../../../../src/library/release/keyless_node.ts';
import { LATER_MS, RUN, Sigstore } from './sigstore.ts';

const HOUR_MS = 3_600_000;
/**
 * Time of the signatures, in whole seconds: the mock writes some fractions in a form that RFC 3161 does not
 * allow.
 */
const clock = new Date(1000 * Math.floor((Date.now() + LATER_MS) / 1000));
const startAuthority = async (time = clock) =>
  await initializeTSA(generateKeyPairSync('ec', { namedCurve: 'P-256' }), time);
type Authority = Awaited<ReturnType<typeof startAuthority>>;
type Bundle = Awaited<ReturnType<Sigstore['sign']>>;

let sigstore: Sigstore;
let authority: Authority;
beforeAll(async () => {
  sigstore = await Sigstore.start(clock);
  authority = await startAuthority();
});

const base64 = ({ buffer, byteOffset, byteLength }: ArrayBufferView) =>
  Buffer.from(buffer, byteOffset, byteLength).toString('base64');

/** Returns a timestamp of the signature of a bundle. */
async function createTimestamp(tsa: Authority, { dsseEnvelope: { signatures } }: Bundle) {
  const [signature] = signatures;
  const response = await tsa.timestamp({
    artifactHash: createHash('sha256')
      .update(Buffer.from(signature?.sig ?? '', 'base64'))
      .digest(),
    hashAlgorithmOID: '2.16.840.1.101.3.4.2.1',
    nonce: 1,
    policyOID: '1.3.6.1.4.1.57264.2',
  });
  return { signedTimestamp: base64(response) };
}

const withTimestamps = (bundle: Bundle, ...rfc3161Timestamps: object[]) => ({
  ...bundle,
  verificationMaterial: { ...bundle.verificationMaterial, timestampVerificationData: { rfc3161Timestamps } },
});

/** Opens a bundle under a root that has this authority. */
async function open(bundle: object, tsa: Authority = authority) {
  const { issuer, repositoryId, ownerId, workflow } = RUN;
  const certificates = [tsa.intCertificate, tsa.rootCertificate].map((der) => ({ rawBytes: base64(der) }));
  const timestampAuthority = {
    subject: { organization: 'sigstore.mock', commonName: 'tsa' },
    uri: 'https://tsa.mock',
    certChain: { certificates },
    validFor: { start: new Date(clock.getTime() - 2 * LATER_MS).toISOString() },
  };
  return await openBundle(bundle, {
    identity: { issuer, repositoryId, ownerId, workflow },
    trustedRoot: { ...sigstore.root(), timestampAuthorities: [timestampAuthority] },
    events: RELEASE_EVENTS,
  });
}

test('a timestamp of an authority in the root is accepted', async () => {
  const bundle = await sigstore.sign('{}');
  const { payload } = await open(withTimestamps(bundle, await createTimestamp(authority, bundle)));
  expect(Buffer.from(payload).toString()).toBe('{}');
});

describe('a timestamp is refused', () => {
  const expectRefusal = async (bundle: object, code: string) =>
    await expect(open(bundle)).rejects.toMatchObject({ code });

  test('if its authority is not in the root', async () => {
    const bundle = await sigstore.sign('{}');
    const foreignTimestamp = await createTimestamp(await startAuthority(), bundle);
    await expectRefusal(withTimestamps(bundle, foreignTimestamp), 'RELEASE_INCLUSION');
  });

  test('if it is for another signature', async () => {
    const bundle = await sigstore.sign('{}');
    const replayedTimestamp = await createTimestamp(authority, await sigstore.sign('{}'));
    await expectRefusal(withTimestamps(bundle, replayedTimestamp), 'RELEASE_INCLUSION');
  });

  test('if the bundle contains it twice', async () => {
    const bundle = await sigstore.sign('{}');
    const validTimestamp = await createTimestamp(authority, bundle);
    await expectRefusal(withTimestamps(bundle, validTimestamp, validTimestamp), 'RELEASE_INCLUSION');
  });

  test('if its certificate was not valid yet, or had expired, at its time', async () => {
    const bundle = await sigstore.sign('{}');
    for (const time of [clock.getTime() + HOUR_MS, clock.getTime() - HOUR_MS / 2]) {
      const tsa = await startAuthority(new Date(time));
      const stampedBundle = withTimestamps(bundle, await createTimestamp(tsa, bundle));
      await expect(open(stampedBundle, tsa)).rejects.toMatchObject({ code: 'RELEASE_CERTIFICATE' });
    }
  });

  test('if it is cut, or is not a timestamp', async () => {
    const bundle = await sigstore.sign('{}');
    const { signedTimestamp } = await createTimestamp(authority, bundle);
    for (const text of [signedTimestamp.slice(0, 400), 'AAAA', '']) {
      await expect(open(withTimestamps(bundle, { signedTimestamp: text }))).rejects.toMatchObject({
        name: 'ReleaseError',
      });
    }
  });
});

test('a timestamp does not replace an entry in the log', async () => {
  const bundle = await sigstore.sign('{}');
  const stampedBundle = withTimestamps(bundle, await createTimestamp(authority, bundle));
  const verificationMaterial = { ...stampedBundle.verificationMaterial, tlogEntries: [] };
  await expect(open({ ...stampedBundle, verificationMaterial })).rejects.toMatchObject({
    name: 'ReleaseError',
    code: 'RELEASE_INCLUSION',
  });
});
