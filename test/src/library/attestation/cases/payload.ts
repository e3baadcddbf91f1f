/** Cases of the payload: rules 11 to 20, and variations in real firmware. */
import { encode } from 'cborg';
import {
  encodeMap,
  type MapEntry,
  measure,
  signDocument,
} from '../../../../../src/testing/attestation_ca.ts';
import type { Case } from './case.ts';
import { CHAIN, defineCase, defineRefusal, documentWith, entries, PUBLIC_KEY, registers } from './made.ts';

function sign(payload: Uint8Array): Uint8Array {
  return signDocument(payload, CHAIN.leaf);
}

/** Makes a document whose payload is valid, except that one field has this encoded value. */
function replaceField(field: string, value: Uint8Array): Uint8Array {
  return sign(encodeMap(entries().map(([key, old]): MapEntry => [key, key === field ? value : old])));
}

function omitField(field: string): Uint8Array {
  return sign(encodeMap(entries().filter(([key]) => key !== field)));
}

function replaceRegisters(change: readonly (readonly [number, Uint8Array])[]): Uint8Array {
  return documentWith({ pcrs: new Map([...registers(), ...change]) });
}

/** Returns the registers as encoded map entries. */
function registerEntries(): MapEntry[] {
  return [...registers()].map(([index, value]) => [index, encode(value)]);
}

const ALL_REGISTERS = Array.from(
  { length: 32 },
  (_, index) => [index, index < 3 ? measure(`pcr${index}`) : measure('x')] as const,
);
const PADDED = new Uint8Array(Buffer.concat([encodeMap(entries()), Buffer.of(0)]));

export const payloadCases: Case[] = [
  defineCase('a payload of definite length, as older firmware writes it', documentWith({})),
  defineCase(
    'a payload of indefinite length, as newer firmware writes it',
    documentWith({}, CHAIN, 'indefinite'),
  ),
  defineCase(
    'registers in a map of indefinite length',
    replaceField('pcrs', encodeMap(registerEntries(), 'indefinite')),
  ),
  defineCase(
    'a bundle of indefinite length',
    replaceField(
      'cabundle',
      Buffer.concat([Buffer.of(0x9f), ...bundle().map((der) => encode(der)), Buffer.of(0xff)]),
    ),
  ),
  defineCase(
    'a public key in two chunks',
    replaceField(
      'public_key',
      Buffer.concat([
        Buffer.of(0x5f),
        encode(PUBLIC_KEY.slice(0, 9)),
        encode(PUBLIC_KEY.slice(9)),
        Buffer.of(0xff),
      ]),
    ),
  ),
  defineCase(
    'a length in more bytes than needed',
    replaceField('public_key', Buffer.concat([Buffer.of(0x59, 0, 32), PUBLIC_KEY])),
  ),
  defineCase('32 registers, as newer firmware lists them', replaceRegisters(ALL_REGISTERS)),
  defineCase(
    'registers of 32 and 64 bytes',
    replaceRegisters([
      [20, new Uint8Array(32).fill(1)],
      [21, new Uint8Array(64).fill(1)],
    ]),
  ),
  defineCase(
    'optional fields that are null',
    documentWith({ public_key: null, user_data: null, nonce: null }),
  ),
  defineCase(
    'optional fields that are empty',
    documentWith({ public_key: new Uint8Array(), user_data: new Uint8Array(), nonce: new Uint8Array() }),
  ),
  defineCase(
    'optional fields that are left out',
    documentWith({ public_key: undefined, user_data: undefined, nonce: undefined }),
  ),
  defineCase(
    'optional fields of full size',
    documentWith({
      public_key: new Uint8Array(1024),
      user_data: new Uint8Array(512),
      nonce: new Uint8Array(512),
    }),
  ),
  defineCase('an RSA public key', documentWith({ public_key: new Uint8Array(294) })),
  defineCase('an unknown field', documentWith({ firmware: [1, { version: 2.5 }, null, true] })),

  defineRefusal('a payload that is not CBOR', sign(Uint8Array.of(0xff, 0xff)), 'CBOR_MALFORMED', 1),
  defineRefusal('a payload cut short', sign(encodeMap(entries()).slice(0, -1)), 'CBOR_MALFORMED', 1),
  defineRefusal(
    'a map that ends after a key',
    sign(Uint8Array.of(0xbf, 0x61, 0x61, 0xff)),
    'CBOR_MALFORMED',
    1,
  ),
  defineRefusal('257 nested arrays', documentWith({ deep: nestArrays(257) }), 'CBOR_MALFORMED', 1),
  defineCase('254 nested arrays in an unknown field', documentWith({ deep: nestArrays(254) })),
  defineRefusal(
    'a string that is not UTF-8',
    replaceField('module_id', Uint8Array.of(0x61, 0xff)),
    'CBOR_MALFORMED',
    1,
  ),
  defineRefusal('a byte after the payload', sign(PADDED), 'CBOR_TRAILING_BYTES', null),
  defineRefusal('a payload that is a list', sign(encode([])), 'DOCUMENT_FIELD', 1),
  defineRefusal(
    'a key that is a number',
    sign(encodeMap([...entries(), [1, encode(1)]])),
    'DOCUMENT_FIELD',
    1,
  ),
  defineRefusal(
    'a key twice',
    sign(encodeMap([...entries(), ['nonce', encode(null)]])),
    'CBOR_DUPLICATE_KEY',
    1,
  ),
  defineRefusal(
    'an unknown key twice',
    sign(encodeMap([...entries(), ['x', encode(1)], ['x', encode(1)]], 'indefinite')),
    'CBOR_DUPLICATE_KEY',
    1,
  ),
  ...['module_id', 'timestamp', 'pcrs', 'certificate', 'cabundle'].map((field) =>
    defineRefusal(`no ${field}`, omitField(field), 'DOCUMENT_FIELD', 1),
  ),
  defineRefusal('no digest', omitField('digest'), 'DOCUMENT_DIGEST', 1),
  defineRefusal('a digest of SHA256', documentWith({ digest: 'SHA256' }), 'DOCUMENT_DIGEST', 1),
  defineRefusal('an empty module_id', documentWith({ module_id: '' }), 'DOCUMENT_FIELD', 1),
  defineRefusal('a module_id that is bytes', documentWith({ module_id: PUBLIC_KEY }), 'DOCUMENT_FIELD', 1),
  defineRefusal('a timestamp that is a string', documentWith({ timestamp: '1' }), 'DOCUMENT_FIELD', 1),
  defineRefusal('a timestamp that is negative', documentWith({ timestamp: -1 }), 'DOCUMENT_FIELD', 1),
  defineRefusal(
    'a timestamp that is a float',
    replaceField('timestamp', Uint8Array.of(0xfa, 0x3f, 0x80, 0, 0)),
    'DOCUMENT_FIELD',
    1,
  ),
  defineCase('a timestamp that is a bignum', replaceField('timestamp', Uint8Array.of(0xc2, 0x42, 1, 0))),
  defineRefusal(
    'a timestamp beyond the latest date of JavaScript',
    documentWith({ timestamp: 8_640_000_000_000_001 }),
    'DOCUMENT_FIELD',
    null,
  ),
  defineRefusal(
    'a timestamp of 2^64 - 1',
    documentWith({ timestamp: 2n ** 64n - 1n }),
    'DOCUMENT_FIELD',
    null,
  ),
  defineRefusal('registers that are a list', documentWith({ pcrs: [] }), 'DOCUMENT_FIELD', 1),
  defineRefusal('no register at all', documentWith({ pcrs: new Map() }), 'DOCUMENT_FIELD_SIZE', null),
  defineRefusal(
    '33 registers',
    replaceRegisters([...ALL_REGISTERS, [32, measure('x')]]),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  defineRefusal('a register of index 32', replaceRegisters([[32, measure('x')]]), 'REGISTER_INDEX', null),
  defineRefusal('a register of index 256', replaceRegisters([[256, measure('x')]]), 'REGISTER_INDEX', 1),
  defineRefusal('a register of index -1', replaceRegisters([[-1, measure('x')]]), 'REGISTER_INDEX', 1),
  defineRefusal(
    'a register whose index is a string',
    replaceField('pcrs', encodeMap([...registerEntries(), ['16', encode(measure('x'))]])),
    'REGISTER_INDEX',
    1,
  ),
  defineRefusal(
    'a register twice',
    replaceField('pcrs', encodeMap([...registerEntries(), [0, encode(measure('x'))]])),
    'CBOR_DUPLICATE_KEY',
    1,
  ),
  defineRefusal(
    'a register of zeros twice',
    replaceField('pcrs', encodeMap([...registerEntries(), [5, encode(new Uint8Array(48))]])),
    'CBOR_DUPLICATE_KEY',
    null,
  ),
  ...[0, 31, 33, 47, 49, 63, 65].map((size) =>
    defineRefusal(
      `a register of ${size} bytes`,
      replaceRegisters([[4, new Uint8Array(size)]]),
      'REGISTER_SIZE',
      1,
    ),
  ),
  defineRefusal(
    'a register that is a string',
    documentWith({ pcrs: new Map<number, unknown>([...registers(), [4, 'a'.repeat(48)]]) }),
    'REGISTER_SIZE',
    1,
  ),
  defineRefusal(
    'a certificate of no bytes',
    documentWith({ certificate: new Uint8Array() }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  defineRefusal(
    'a certificate of 1025 bytes',
    documentWith({ certificate: new Uint8Array(1025) }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  defineRefusal('a certificate that is a string', documentWith({ certificate: 'a' }), 'DOCUMENT_FIELD', 1),
  defineRefusal('an empty bundle', documentWith({ cabundle: [] }), 'DOCUMENT_FIELD_SIZE', 1),
  defineRefusal(
    'a bundle of 11 certificates',
    documentWith({ cabundle: Array(11).fill(CHAIN.root.certificate) }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  defineRefusal(
    'a bundle that is bytes',
    documentWith({ cabundle: CHAIN.root.certificate }),
    'DOCUMENT_FIELD',
    1,
  ),
  defineRefusal(
    'a bundle with an empty certificate',
    documentWith({ cabundle: [...bundle(), new Uint8Array()] }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  defineRefusal(
    'a bundle with a certificate of 1025 bytes',
    documentWith({ cabundle: [...bundle(), new Uint8Array(1025)] }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  defineRefusal(
    'a public key of 1025 bytes',
    documentWith({ public_key: new Uint8Array(1025) }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  defineRefusal(
    'user data of 513 bytes',
    documentWith({ user_data: new Uint8Array(513) }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  defineRefusal(
    'a nonce of 513 bytes',
    documentWith({ nonce: new Uint8Array(513) }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  defineRefusal('a public key that is a string', documentWith({ public_key: 'a' }), 'DOCUMENT_FIELD', null),
  defineRefusal('a nonce that is a number', documentWith({ nonce: 1 }), 'DOCUMENT_FIELD', null),
  defineCase(
    'a document without register 8, which no rule needs',
    documentWith({ pcrs: new Map([...registers()].filter(([index]) => index !== 8)) }),
  ),
  ...listBignumCases(),
];

/**
 * Lists cases of bignums. Sui's reader takes some of them as numbers and some as tags like any other, and
 * refuses the rest.
 */
function listBignumCases(): Case[] {
  const ones = (size: number) => new Uint8Array(size).fill(0xff);
  const tagged = (tag: number, content: Uint8Array) => new Uint8Array([0xc0 + tag, ...content]);
  const unknown = (value: Uint8Array) => sign(encodeMap([...entries(), ['x', value]]));
  const time = (value: Uint8Array) => replaceField('timestamp', value);
  const chunks = Uint8Array.of(0xc2, 0x5f, 0x42, 1, 0, 0xff);
  const zeros = (size: number) => encode(new Uint8Array([...new Uint8Array(size), 1, 0]));
  return [
    defineRefusal('a bignum tag on a string', unknown(tagged(2, encode('a'))), 'CBOR_MALFORMED', null),
    defineRefusal(
      'a bignum tag on a list, in the nonce',
      replaceField('nonce', tagged(3, encode([1]))),
      'CBOR_MALFORMED',
      null,
    ),
    defineRefusal('a bignum tag on a number as the time', time(tagged(2, encode(1))), 'CBOR_MALFORMED', 1),
    defineCase('a bignum of 16 bytes', unknown(tagged(2, encode(ones(16))))),
    defineCase('a bignum of 17 bytes', unknown(tagged(2, encode(ones(17))))),
    defineCase(
      'a negative bignum of 2^127 - 1',
      unknown(tagged(3, encode(Uint8Array.of(0x7f, ...ones(15))))),
    ),
    defineCase(
      'a negative bignum of 2^127',
      unknown(tagged(3, encode(Uint8Array.of(0x80, ...new Uint8Array(15))))),
      {
        abort: 1,
      },
    ),
    defineCase('a negative bignum of 17 bytes', unknown(tagged(3, encode(ones(17))))),
    defineCase(
      'a bignum of 16 bytes within another tag',
      unknown(Uint8Array.of(0xd8, 100, ...tagged(2, encode(ones(16))))),
    ),
    defineCase(
      'a negative bignum of 16 bytes within another tag',
      unknown(Uint8Array.of(0xd8, 100, ...tagged(3, encode(ones(16))))),
      {
        abort: 1,
      },
    ),
    defineCase('a bignum of 16 bytes within a bignum tag', unknown(tagged(2, tagged(2, encode(ones(16))))), {
      code: 'CBOR_MALFORMED',
    }),
    defineCase('a time that is a bignum in chunks', time(chunks), { abort: 1 }),
    defineCase('a time that is a bignum of 16 bytes', time(tagged(2, zeros(14)))),
    defineCase('a time that is a bignum of 17 bytes', time(tagged(2, zeros(15))), { abort: 1 }),
    defineRefusal(
      'a time that is a bignum of 2^64',
      time(tagged(2, encode(Uint8Array.of(1, ...new Uint8Array(8))))),
      'DOCUMENT_FIELD',
      1,
    ),
  ];
}

function bundle(): Uint8Array[] {
  return [CHAIN.root, CHAIN.regional, CHAIN.zonal, CHAIN.instance].map(({ certificate }) => certificate);
}

function nestArrays(depth: number): unknown {
  return Array.from({ length: depth }).reduce<unknown>((inner) => [inner], 0);
}
