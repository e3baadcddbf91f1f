/** Checks the verdict on a trusted document, and the contents of a refusal. */
import { describe, expect, test } from 'vitest';
import {
  AWS_NITRO_ROOT_SHA256,
  awsNitroRoot,
  decodeAttestation,
  PcrMismatchError,
  predictRegistration,
  verifyAttestation,
} from '../../../../src/library/attestation/index.ts';
import { createPolicy, fromHex, toHex } from './cases/case.ts';
import { realCases, WEATHER_AT, WEATHER_IMAGE } from './cases/real.ts';

const [weather] = realCases;
if (weather === undefined) throw new Error('no case');
const DOCUMENT = fromHex(weather.document);
const OPTIONS = { now: weather.at, policy: createPolicy(weather) };

describe('verifyAttestation', () => {
  test('returns everything that it checked', async () => {
    const verdict = await verifyAttestation(DOCUMENT, OPTIONS);
    expect(verdict).toMatchObject({
      image: WEATHER_IMAGE,
      checked: ['image', 'publicKey', 'maxAge'],
      rootSha256: AWS_NITRO_ROOT_SHA256,
      verifiedAt: new Date(WEATHER_AT),
      validUntil: new Date('2025-04-15T05:17:50Z'),
    });
    expect(verdict.document).toMatchObject({
      moduleId: 'i-06e4b98c6549ff803-enc0196373b195fb723',
      timestamp: WEATHER_AT,
      digest: 'SHA384',
      userData: null,
      nonce: null,
    });
    expect([...verdict.document.pcrs.keys()]).toEqual([...Array(16).keys()]);
    expect(verdict.chain).toHaveLength(5);
    expect(verdict.chain[0]).toEqual({
      subject: 'C=US, O=Amazon, OU=AWS, CN=aws.nitro-enclaves',
      notBefore: new Date('2019-10-28T13:28:05Z'),
      notAfter: new Date('2049-10-28T14:28:05Z'),
    });
    expect(verdict.chain[4]?.subject).toMatch(/CN=i-06e4b98c6549ff803-enc0196373b195fb723\.us-east-1\.aws$/);
  });

  test('returns no image for a debug enclave', async () => {
    const debug = realCases.find(({ name }) => name === 'a debug enclave that the policy allows');
    if (debug === undefined) throw new Error('no case');
    const verdict = await verifyAttestation(fromHex(debug.document), {
      now: debug.at,
      policy: createPolicy(debug),
    });
    expect(verdict).toMatchObject({ image: null, checked: ['debug'] });
    expect(verdict.document.userData).toHaveLength(91);
  });

  test('accepts the time as a Date', async () => {
    await expect(
      verifyAttestation(DOCUMENT, { ...OPTIONS, now: new Date(WEATHER_AT) }),
    ).resolves.toBeDefined();
  });

  test('shows which registers differ, with both values', async () => {
    const otherImage = { ...WEATHER_IMAGE, pcr1: 'ab'.repeat(48) };
    const error = await verifyAttestation(DOCUMENT, { ...OPTIONS, policy: { images: [otherImage] } }).catch(
      (e) => e,
    );
    expect(error).toBeInstanceOf(PcrMismatchError);
    expect(error.message).toBe(
      [
        'the enclave runs none of the accepted images:',
        'image 1 of 1:',
        '  PCR0 matches',
        '  PCR1 differs',
        `    expected ${'ab'.repeat(48)}`,
        `    found    ${WEATHER_IMAGE.pcr1}`,
        '  PCR2 matches',
      ].join('\n'),
    );
    expect(error.found).toEqual([WEATHER_IMAGE.pcr0, WEATHER_IMAGE.pcr1, WEATHER_IMAGE.pcr2]);
  });

  test('does not change when the caller changes the bytes of the pinned root', async () => {
    awsNitroRoot().fill(0);
    await expect(verifyAttestation(DOCUMENT, OPTIONS)).resolves.toBeDefined();
  });
});

describe('an invalid option is refused before anything is read:', () => {
  const { policy } = OPTIONS;
  const image = WEATHER_IMAGE;
  test.each<[string, unknown]>([
    ['no options', undefined],
    ['no policy', { now: 0 }],
    ['no images', { now: 0, policy: {} }],
    ['an empty set of images', { now: 0, policy: { images: [] } }],
    [
      'an all-zero image',
      {
        now: 0,
        policy: { images: [image, { pcr0: '0'.repeat(96), pcr1: '0'.repeat(96), pcr2: '0'.repeat(96) }] },
      },
    ],
    ['an image with one zero register', { now: 0, policy: { images: [{ ...image, pcr2: '0'.repeat(96) }] } }],
    ['an image without PCR2', { now: 0, policy: { images: [{ pcr0: image.pcr0, pcr1: image.pcr1 }] } }],
    ['an image that is cut short', { now: 0, policy: { images: [{ ...image, pcr0: image.pcr0.slice(2) }] } }],
    ['a list of images with a hole', { now: 0, policy: { images: new Array(2).fill(image, 1) } }],
    ['an image that is null', { now: 0, policy: { images: [null] } }],
    ['a misspelt check', { now: 0, policy: { ...policy, nonse: Uint8Array.of(1) } }],
    ['a misspelt option', { now: 0, policy, root: [] }],
    ['a nonce that is a string', { now: 0, policy: { ...policy, nonce: '01' } }],
    ['a nonce that is undefined', { now: 0, policy: { ...policy, nonce: undefined } }],
    ['a public key of no bytes', { now: 0, policy: { ...policy, publicKey: new Uint8Array() } }],
    ['an allowDebug that is a string', { now: 0, policy: { ...policy, allowDebug: 'false' } }],
    ['a maximum age of NaN', { now: 0, policy: { ...policy, maxAgeMs: Number.NaN } }],
    ['a maximum age that is negative', { now: 0, policy: { ...policy, maxAgeMs: -1 } }],
    ['an empty set of roots', { now: 0, policy, roots: [] }],
    ['a root that is a string', { now: 0, policy, roots: ['-----BEGIN CERTIFICATE-----'] }],
    ['no time at all', { policy }],
    ['an invalid time', { now: Number.NaN, policy }],
    ['a time that is a string', { now: '2025-04-15', policy }],
  ])('%s', async (name, options) => {
    const code = /zero/.test(name)
      ? 'POLICY_ZERO_IMAGE'
      : / time/.test(name)
        ? 'TIME_INVALID'
        : 'POLICY_INVALID';
    await expect(verifyAttestation(Uint8Array.of(0), options as never)).rejects.toMatchObject({ code });
  });
});

describe('a policy', () => {
  const nonce = Uint8Array.of(9);
  class Policy {
    readonly images = OPTIONS.policy.images;
    get nonce() {
      return nonce;
    }
  }
  test.each([
    ['its own', { ...OPTIONS.policy, nonce }],
    ['inherited', Object.create({ ...OPTIONS.policy, nonce })],
    ['computed by a class', new Policy()],
    ['not enumerable', Object.defineProperty({ ...OPTIONS.policy }, 'nonce', { value: nonce })],
  ])('applies, no matter where its properties are defined: %s', async (_where, policy) => {
    await expect(verifyAttestation(DOCUMENT, { ...OPTIONS, policy })).rejects.toMatchObject({
      code: 'POLICY_NONCE',
    });
  });

  test('is read once: later changes have no effect', async () => {
    let reads = 0;
    const policy = Object.defineProperty({ ...OPTIONS.policy }, 'nonce', {
      get: () => (reads++ === 0 ? nonce : undefined),
    });
    await expect(verifyAttestation(DOCUMENT, { ...OPTIONS, policy })).rejects.toMatchObject({
      code: 'POLICY_NONCE',
    });
    expect(reads).toBe(1);
  });
});

describe('decodeAttestation', () => {
  test('keeps the payload and the signature unchanged', () => {
    const { payload, signature } = decodeAttestation(DOCUMENT);
    expect(toHex(DOCUMENT)).toContain(toHex(payload));
    expect(toHex(DOCUMENT).endsWith(toHex(signature))).toBe(true);
    expect([payload.length, signature.length]).toEqual([4384, 96]);
  });
});

describe('the bytes of a document', () => {
  test('may change during and after the verification without effect', async () => {
    const bytes = DOCUMENT.slice();
    const verdict = verifyAttestation(bytes, OPTIONS);
    bytes.fill(0);
    const { document } = await verdict;
    expect(toHex(document.publicKey ?? bytes)).toBe(weather.policy.publicKey);
    expect(document.pcrs.get(0)?.some((byte) => byte !== 0)).toBe(true);
  });

  test('may be a view of a larger buffer', async () => {
    const larger = new Uint8Array(DOCUMENT.length + 20).fill(0xff);
    larger.set(DOCUMENT, 10);
    const { document } = await verifyAttestation(larger.subarray(10, -10), OPTIONS);
    expect(Object.getPrototypeOf(document.payload)).toBe(Uint8Array.prototype);
  });
});

describe('predictRegistration', () => {
  test('returns until when a document can be registered, even after that time', async () => {
    const until = new Date('2025-04-15T05:17:50Z');
    expect(await predictRegistration(DOCUMENT, WEATHER_AT)).toEqual({
      accepted: true,
      abort: null,
      reason: null,
      until,
    });
    expect(await predictRegistration(DOCUMENT, until.getTime() + 1000)).toMatchObject({
      accepted: false,
      abort: 2,
      reason: 'certificate 0 from the leaf is not valid at this time',
      until,
    });
  });

  test('returns no end of validity for a document that it cannot parse', async () => {
    expect(await predictRegistration(Uint8Array.of(0), 0)).toEqual({
      accepted: false,
      abort: 1,
      reason: 'the document is not an array of four items',
      until: null,
    });
  });

  test('returns the reason of an abort', async () => {
    expect(await predictRegistration(Uint8Array.of(0xff), 0)).toMatchObject({
      reason: 'the document is not CBOR',
    });
  });

  test.each([
    ['an integer in two encodings', '04', '1804', true],
    ['an integer and the float of its value', '04', 'f94400', false],
    ['an integer and the text of its digits', '04', '6134', false],
    ['the floats 0 and -0', 'f90000', 'f98000', true],
    ['NaN, which equals nothing', 'f97e00', 'f97e00', false],
    ['a string in two encodings', '6161', '7f6161ff', true],
    ['bytes and a string', '4161', '6161', false],
    ['arrays of the same items', '82014102', '9f18014102ff', true],
    ['an array, and the text that it is written as', '820102', '655b312c325d', false],
    ['maps in another order', 'a201020304', 'a203040102', false],
    ['an item and the same item with a tag', 'd82a01', '01', false],
  ])('compares keys of the unprotected header: %s', async (_, key, otherKey, areEqual) => {
    const bytes = fromHex(`8440a2${key}00${otherKey}00f6f6`);
    expect((await predictRegistration(bytes, 0)).reason).toBe(
      areEqual ? 'the unprotected header has a duplicate key' : 'the payload is not bytes',
    );
  });

  test('refuses an invalid time', async () => {
    await expect(predictRegistration(DOCUMENT, Number.NaN)).rejects.toMatchObject({ code: 'TIME_INVALID' });
  });
});
