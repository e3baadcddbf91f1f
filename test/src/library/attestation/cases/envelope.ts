/** Cases of the COSE_Sign1 around the payload: rules 1 to 10, 34 and 35. */
import { encode } from 'cborg';
import {
  encodeCose,
  encodePayload,
  head,
  signDocument,
  signPayload,
} from '../../../../../src/testing/attestation_ca.ts';
import type { Case } from './case.ts';
import { CHAIN, defineCase, defineRefusal, documentWith, fields } from './made.ts';

const PAYLOAD = encodePayload(fields());
const SIGNATURE = signPayload(PAYLOAD, CHAIN.leaf);
const DOCUMENT = encodeCose({ payload: PAYLOAD, signature: SIGNATURE });
/** Offset of the payload's head, after the array's head and the two headers: 1 + 5 + 1 bytes. */
const PAYLOAD_HEAD = 7;

/** The order of P-384 (FIPS 186-5, SP 800-186 section 3.2.1.4). */
const ORDER = Buffer.from(
  'ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973',
  'hex',
);

function bytes(...parts: (Uint8Array | number[])[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts.map((part) => Uint8Array.from(part))));
}

/** Returns the document with one half of its signature replaced. */
function replaceHalf(part: 'r' | 's', value: Uint8Array): Uint8Array {
  const signature = SIGNATURE.slice();
  signature.set(value, part === 'r' ? 0 : 48);
  return encodeCose({ payload: PAYLOAD, signature });
}

function signWithHeader(protectedHeader: Uint8Array): Uint8Array {
  const signature = signPayload(PAYLOAD, CHAIN.leaf, protectedHeader);
  return encodeCose({ protectedHeader, payload: PAYLOAD, signature });
}

/** Makes a payload of exactly `size` bytes, which an unknown field fills. */
function createPayload(size: number): Uint8Array {
  const empty = encodePayload({ ...fields(), filler: new Uint8Array(256) } as never);
  return encodePayload({ ...fields(), filler: new Uint8Array(256 + size - empty.length) } as never);
}

export const envelopeCases: Case[] = [
  defineCase('an untagged document', DOCUMENT),
  defineCase('a document under tag 18', bytes([0xd2], DOCUMENT)),
  defineRefusal('a document under tag 17', bytes([0xd1], DOCUMENT), 'COSE_TAG', 1),
  defineRefusal('a document under tag 18 twice', bytes([0xd2, 0xd2], DOCUMENT), 'COSE_TAG', 1),
  defineRefusal('tag 18 in two bytes', bytes([0xd8, 18], DOCUMENT), 'CBOR_MALFORMED', null),
  defineRefusal('no bytes', bytes(), 'DOCUMENT_SIZE', 1),
  defineRefusal('a document of over 32 KiB', bytes(DOCUMENT, new Uint8Array(32_768)), 'DOCUMENT_SIZE', null),
  defineRefusal(
    'a document in hexadecimal',
    Buffer.from(Buffer.from(DOCUMENT).toString('hex')),
    'COSE_SHAPE',
    1,
  ),
  defineRefusal('a document cut short by a byte', DOCUMENT.slice(0, -1), 'CBOR_MALFORMED', 1),
  defineRefusal('a map', encode({ a: 1 }), 'COSE_SHAPE', 1),
  defineRefusal(
    'an array of three items',
    bytes(head(4, 3), DOCUMENT.slice(1, PAYLOAD_HEAD), encode(PAYLOAD)),
    'COSE_SHAPE',
    1,
  ),
  defineRefusal(
    'an array of five items',
    bytes(head(4, 5), DOCUMENT.slice(1), encode(0)),
    'COSE_SHAPE',
    null,
  ),
  defineRefusal(
    'a protected header that is a string',
    encode(['a', {}, PAYLOAD, SIGNATURE]),
    'COSE_SHAPE',
    1,
  ),
  defineRefusal(
    'an unprotected header that is bytes',
    encode([Uint8Array.of(0xa1, 1, 0x38, 0x22), new Uint8Array(), PAYLOAD, SIGNATURE]),
    'COSE_SHAPE',
    1,
  ),
  defineRefusal(
    'a payload that is null',
    encode([Uint8Array.of(0xa1, 1, 0x38, 0x22), {}, null, SIGNATURE]),
    'COSE_SHAPE',
    1,
  ),
  defineRefusal(
    'a signature that is a string',
    encode([Uint8Array.of(0xa1, 1, 0x38, 0x22), {}, PAYLOAD, 'a'.repeat(96)]),
    'COSE_SHAPE',
    1,
  ),
  defineRefusal(
    'an outer array of indefinite length',
    bytes([0x9f], DOCUMENT.slice(1), [0xff]),
    'CBOR_INDEFINITE_LENGTH',
    null,
  ),
  defineRefusal(
    'a payload of indefinite length',
    bytes(DOCUMENT.slice(0, PAYLOAD_HEAD), [0x5f], encode(PAYLOAD), [0xff], encode(SIGNATURE)),
    'CBOR_INDEFINITE_LENGTH',
    null,
  ),
  defineRefusal(
    'an outer length in more bytes than needed',
    bytes([0x98, 4], DOCUMENT.slice(1)),
    'CBOR_MALFORMED',
    null,
  ),
  defineRefusal('a byte after the document', bytes(DOCUMENT, [0]), 'CBOR_TRAILING_BYTES', null),
  defineRefusal('a document after the document', bytes(DOCUMENT, DOCUMENT), 'CBOR_TRAILING_BYTES', null),
  defineRefusal(
    'a protected header of ES256',
    signWithHeader(Uint8Array.of(0xa1, 0x01, 0x26)),
    'COSE_PROTECTED_HEADER',
    1,
  ),
  defineRefusal('an empty protected header', signWithHeader(new Uint8Array()), 'COSE_PROTECTED_HEADER', 1),
  defineRefusal(
    'a protected header with a second entry',
    signWithHeader(
      encode(
        new Map([
          [1, -35],
          [4, 0],
        ]),
      ),
    ),
    'COSE_PROTECTED_HEADER',
    1,
  ),
  defineRefusal(
    'the right protected header in another encoding',
    signWithHeader(Uint8Array.of(0xbf, 0x01, 0x38, 0x22, 0xff)),
    'COSE_PROTECTED_HEADER',
    null,
  ),
  defineRefusal(
    'an entry in the unprotected header',
    encodeCose({ unprotectedHeader: encode(new Map([[4, 'kid']])), payload: PAYLOAD, signature: SIGNATURE }),
    'COSE_UNPROTECTED_HEADER',
    null,
  ),
  defineRefusal(
    'an unprotected header with a key twice',
    encodeCose({
      unprotectedHeader: Uint8Array.of(0xa2, 0x04, 0x00, 0x18, 0x04, 0x00),
      payload: PAYLOAD,
      signature: SIGNATURE,
    }),
    // The second key is also encoded in more bytes than necessary.
    'CBOR_MALFORMED',
    1,
  ),
  defineRefusal('an empty payload', signDocument(new Uint8Array(), CHAIN.leaf), 'COSE_PAYLOAD_SIZE', 1),
  defineCase('a payload of 16383 bytes', signDocument(createPayload(16_383), CHAIN.leaf)),
  defineRefusal(
    'a payload of 16384 bytes',
    signDocument(createPayload(16_384), CHAIN.leaf),
    'COSE_PAYLOAD_SIZE',
    1,
  ),
  defineRefusal(
    'a signature of 95 bytes',
    encodeCose({ payload: PAYLOAD, signature: SIGNATURE.slice(1) }),
    'COSE_SIGNATURE_SIZE',
    1,
  ),
  defineRefusal(
    'a signature of 97 bytes',
    encodeCose({ payload: PAYLOAD, signature: bytes([0], SIGNATURE) }),
    'COSE_SIGNATURE_SIZE',
    1,
  ),
  defineRefusal('an r of zero', replaceHalf('r', new Uint8Array(48)), 'COSE_SIGNATURE_RANGE', 2),
  defineRefusal('an s of zero', replaceHalf('s', new Uint8Array(48)), 'COSE_SIGNATURE_RANGE', 2),
  defineRefusal('an r that equals the order', replaceHalf('r', ORDER), 'COSE_SIGNATURE_RANGE', 2),
  defineRefusal('an s that equals the order', replaceHalf('s', ORDER), 'COSE_SIGNATURE_RANGE', 2),
  defineRefusal(
    'an r of all ones',
    replaceHalf('r', new Uint8Array(48).fill(0xff)),
    'COSE_SIGNATURE_RANGE',
    2,
  ),
  defineRefusal(
    'an s of all ones',
    replaceHalf('s', new Uint8Array(48).fill(0xff)),
    'COSE_SIGNATURE_RANGE',
    2,
  ),
  defineRefusal(
    'r and s of another document',
    replaceHalf('r', signPayload(PAYLOAD, CHAIN.leaf).slice(0, 48)),
    'COSE_SIGNATURE_MISMATCH',
    2,
  ),
  defineRefusal(
    'the signature of another document',
    encodeCose({
      payload: PAYLOAD,
      signature: signPayload(encodePayload({ ...fields(), timestamp: 1 }), CHAIN.leaf),
    }),
    'COSE_SIGNATURE_MISMATCH',
    2,
  ),
  defineRefusal(
    'a public key replaced after signing',
    encodeCose({
      payload: encodePayload({ ...fields(), public_key: new Uint8Array(32) }),
      signature: SIGNATURE,
    }),
    'COSE_SIGNATURE_MISMATCH',
    2,
  ),
  defineRefusal(
    'a signature by an authority in place of the leaf',
    signDocument(PAYLOAD, CHAIN.instance),
    'COSE_SIGNATURE_MISMATCH',
    2,
  ),
  defineCase('the mirrored signature: s and n - s are both valid', mirrorSignature()),
  defineCase('a document with another timestamp', documentWith({ timestamp: 0 })),
];

/** Replaces s by n - s, which ECDSA accepts too. Only the payload's hash therefore identifies a document. */
function mirrorSignature(): Uint8Array {
  const order = BigInt(`0x${ORDER.toString('hex')}`);
  const s = order - BigInt(`0x${Buffer.from(SIGNATURE.slice(48)).toString('hex')}`);
  return replaceHalf('s', Buffer.from(s.toString(16).padStart(96, '0'), 'hex'));
}
