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
import { CHAIN, documentWith, fields, made, refused } from './made.ts';

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

/** Returns the valid signature with one half replaced. */
function signatureWith(part: 'r' | 's', value: Uint8Array): Uint8Array {
  const signature = SIGNATURE.slice();
  signature.set(value, part === 'r' ? 0 : 48);
  return encodeCose({ payload: PAYLOAD, signature });
}

function signedUnder(protectedHeader: Uint8Array): Uint8Array {
  const signature = signPayload(PAYLOAD, CHAIN.leaf, protectedHeader);
  return encodeCose({ protectedHeader, payload: PAYLOAD, signature });
}

/** Makes a payload of exactly `size` bytes, which an unknown field fills. */
function createPayload(size: number): Uint8Array {
  const empty = encodePayload({ ...fields(), filler: new Uint8Array(256) } as never);
  return encodePayload({ ...fields(), filler: new Uint8Array(256 + size - empty.length) } as never);
}

export const envelopeCases: Case[] = [
  made('an untagged document', DOCUMENT),
  made('a document under tag 18', bytes([0xd2], DOCUMENT)),
  refused('a document under tag 17', bytes([0xd1], DOCUMENT), 'COSE_TAG', 1),
  refused('a document under tag 18 twice', bytes([0xd2, 0xd2], DOCUMENT), 'COSE_TAG', 1),
  refused('tag 18 in two bytes', bytes([0xd8, 18], DOCUMENT), 'CBOR_MALFORMED', null),
  refused('no bytes', bytes(), 'DOCUMENT_SIZE', 1),
  refused('a document of over 32 KiB', bytes(DOCUMENT, new Uint8Array(32_768)), 'DOCUMENT_SIZE', null),
  refused('a document in hexadecimal', Buffer.from(Buffer.from(DOCUMENT).toString('hex')), 'COSE_SHAPE', 1),
  refused('a document cut short by a byte', DOCUMENT.slice(0, -1), 'CBOR_MALFORMED', 1),
  refused('a map', encode({ a: 1 }), 'COSE_SHAPE', 1),
  refused(
    'an array of three',
    bytes(head(4, 3), DOCUMENT.slice(1, PAYLOAD_HEAD), encode(PAYLOAD)),
    'COSE_SHAPE',
    1,
  ),
  refused('an array of five', bytes(head(4, 5), DOCUMENT.slice(1), encode(0)), 'COSE_SHAPE', null),
  refused('a protected header that is a string', encode(['a', {}, PAYLOAD, SIGNATURE]), 'COSE_SHAPE', 1),
  refused(
    'an unprotected header that is bytes',
    encode([Uint8Array.of(0xa1, 1, 0x38, 0x22), new Uint8Array(), PAYLOAD, SIGNATURE]),
    'COSE_SHAPE',
    1,
  ),
  refused(
    'a payload that is null',
    encode([Uint8Array.of(0xa1, 1, 0x38, 0x22), {}, null, SIGNATURE]),
    'COSE_SHAPE',
    1,
  ),
  refused(
    'a signature that is a string',
    encode([Uint8Array.of(0xa1, 1, 0x38, 0x22), {}, PAYLOAD, 'a'.repeat(96)]),
    'COSE_SHAPE',
    1,
  ),
  refused(
    'an outer array of indefinite length',
    bytes([0x9f], DOCUMENT.slice(1), [0xff]),
    'CBOR_INDEFINITE_LENGTH',
    null,
  ),
  refused(
    'a payload of indefinite length',
    bytes(DOCUMENT.slice(0, PAYLOAD_HEAD), [0x5f], encode(PAYLOAD), [0xff], encode(SIGNATURE)),
    'CBOR_INDEFINITE_LENGTH',
    null,
  ),
  refused(
    'an outer length in more bytes than needed',
    bytes([0x98, 4], DOCUMENT.slice(1)),
    'CBOR_MALFORMED',
    null,
  ),
  refused('a byte after the document', bytes(DOCUMENT, [0]), 'CBOR_TRAILING_BYTES', null),
  refused('a document after the document', bytes(DOCUMENT, DOCUMENT), 'CBOR_TRAILING_BYTES', null),
  refused(
    'a protected header of ES256',
    signedUnder(Uint8Array.of(0xa1, 0x01, 0x26)),
    'COSE_PROTECTED_HEADER',
    1,
  ),
  refused('an empty protected header', signedUnder(new Uint8Array()), 'COSE_PROTECTED_HEADER', 1),
  refused(
    'a protected header with a second entry',
    signedUnder(
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
  refused(
    'the right protected header in another encoding',
    signedUnder(Uint8Array.of(0xbf, 0x01, 0x38, 0x22, 0xff)),
    'COSE_PROTECTED_HEADER',
    null,
  ),
  refused(
    'an entry in the unprotected header',
    encodeCose({ unprotectedHeader: encode(new Map([[4, 'kid']])), payload: PAYLOAD, signature: SIGNATURE }),
    'COSE_UNPROTECTED_HEADER',
    null,
  ),
  refused(
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
  refused('an empty payload', signDocument(new Uint8Array(), CHAIN.leaf), 'COSE_PAYLOAD_SIZE', 1),
  made('a payload of 16383 bytes', signDocument(createPayload(16_383), CHAIN.leaf)),
  refused(
    'a payload of 16384 bytes',
    signDocument(createPayload(16_384), CHAIN.leaf),
    'COSE_PAYLOAD_SIZE',
    1,
  ),
  refused(
    'a signature of 95 bytes',
    encodeCose({ payload: PAYLOAD, signature: SIGNATURE.slice(1) }),
    'COSE_SIGNATURE_SIZE',
    1,
  ),
  refused(
    'a signature of 97 bytes',
    encodeCose({ payload: PAYLOAD, signature: bytes([0], SIGNATURE) }),
    'COSE_SIGNATURE_SIZE',
    1,
  ),
  refused('an r of zero', signatureWith('r', new Uint8Array(48)), 'COSE_SIGNATURE_RANGE', 2),
  refused('an s of zero', signatureWith('s', new Uint8Array(48)), 'COSE_SIGNATURE_RANGE', 2),
  refused('an r of the order', signatureWith('r', ORDER), 'COSE_SIGNATURE_RANGE', 2),
  refused('an s of the order', signatureWith('s', ORDER), 'COSE_SIGNATURE_RANGE', 2),
  refused('an r of all ones', signatureWith('r', new Uint8Array(48).fill(0xff)), 'COSE_SIGNATURE_RANGE', 2),
  refused('an s of all ones', signatureWith('s', new Uint8Array(48).fill(0xff)), 'COSE_SIGNATURE_RANGE', 2),
  refused(
    'r and s of another document',
    signatureWith('r', signPayload(PAYLOAD, CHAIN.leaf).slice(0, 48)),
    'COSE_SIGNATURE_MISMATCH',
    2,
  ),
  refused(
    'the signature of another document',
    encodeCose({
      payload: PAYLOAD,
      signature: signPayload(encodePayload({ ...fields(), timestamp: 1 }), CHAIN.leaf),
    }),
    'COSE_SIGNATURE_MISMATCH',
    2,
  ),
  refused(
    'a public key replaced after signing',
    encodeCose({
      payload: encodePayload({ ...fields(), public_key: new Uint8Array(32) }),
      signature: SIGNATURE,
    }),
    'COSE_SIGNATURE_MISMATCH',
    2,
  ),
  refused(
    'a signature by an authority in place of the leaf',
    signDocument(PAYLOAD, CHAIN.instance),
    'COSE_SIGNATURE_MISMATCH',
    2,
  ),
  made('the mirrored signature: s and n - s are both valid', mirrored()),
  made('a document with another timestamp', documentWith({ timestamp: 0 })),
];

/** ECDSA accepts both s and n - s. To identify a document, hash its payload. */
function mirrored(): Uint8Array {
  const order = BigInt(`0x${ORDER.toString('hex')}`);
  const s = order - BigInt(`0x${Buffer.from(SIGNATURE.slice(48)).toString('hex')}`);
  return signatureWith('s', Buffer.from(s.toString(16).padStart(96, '0'), 'hex'));
}
