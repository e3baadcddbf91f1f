/** Cases of the payload: rules 11 to 20, and variations in real firmware. */
import { encode } from 'cborg';
import {
  encodeMap,
  type MapEntry,
  measure,
  signDocument,
} from '../../../../../src/testing/attestation_ca.ts';
import type { Case } from './case.ts';
import { CHAIN, documentWith, entries, made, PUBLIC_KEY, refused, registers } from './made.ts';

function signed(payload: Uint8Array): Uint8Array {
  return signDocument(payload, CHAIN.leaf);
}

/** Makes the valid payload with the encoded value of one field replaced. */
function withEncoded(field: string, value: Uint8Array): Uint8Array {
  return signed(encodeMap(entries().map(([key, old]): MapEntry => [key, key === field ? value : old])));
}

function without(field: string): Uint8Array {
  return signed(encodeMap(entries().filter(([key]) => key !== field)));
}

function withRegisters(change: readonly (readonly [number, Uint8Array])[]): Uint8Array {
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
  made('a payload of definite length, as older firmware writes it', documentWith({})),
  made('a payload of indefinite length, as newer firmware writes it', documentWith({}, CHAIN, 'indefinite')),
  made(
    'registers in a map of indefinite length',
    withEncoded('pcrs', encodeMap(registerEntries(), 'indefinite')),
  ),
  made(
    'a bundle of indefinite length',
    withEncoded(
      'cabundle',
      Buffer.concat([Buffer.of(0x9f), ...bundle().map((der) => encode(der)), Buffer.of(0xff)]),
    ),
  ),
  made(
    'a public key in two chunks',
    withEncoded(
      'public_key',
      Buffer.concat([
        Buffer.of(0x5f),
        encode(PUBLIC_KEY.slice(0, 9)),
        encode(PUBLIC_KEY.slice(9)),
        Buffer.of(0xff),
      ]),
    ),
  ),
  made(
    'a length in more bytes than needed',
    withEncoded('public_key', Buffer.concat([Buffer.of(0x59, 0, 32), PUBLIC_KEY])),
  ),
  made('32 registers, as newer firmware lists them', withRegisters(ALL_REGISTERS)),
  made(
    'registers of 32 and 64 bytes',
    withRegisters([
      [20, new Uint8Array(32).fill(1)],
      [21, new Uint8Array(64).fill(1)],
    ]),
  ),
  made('optional fields that are null', documentWith({ public_key: null, user_data: null, nonce: null })),
  made(
    'optional fields that are empty',
    documentWith({ public_key: new Uint8Array(), user_data: new Uint8Array(), nonce: new Uint8Array() }),
  ),
  made(
    'optional fields that are left out',
    documentWith({ public_key: undefined, user_data: undefined, nonce: undefined }),
  ),
  made(
    'optional fields of full size',
    documentWith({
      public_key: new Uint8Array(1024),
      user_data: new Uint8Array(512),
      nonce: new Uint8Array(512),
    }),
  ),
  made('a public key of RSA', documentWith({ public_key: new Uint8Array(294) })),
  made('an unknown field', documentWith({ firmware: [1, { version: 2.5 }, null, true] })),

  refused('a payload that is not CBOR', signed(Uint8Array.of(0xff, 0xff)), 'CBOR_MALFORMED', 1),
  refused('a payload cut short', signed(encodeMap(entries()).slice(0, -1)), 'CBOR_MALFORMED', 1),
  refused('a map that ends after a key', signed(Uint8Array.of(0xbf, 0x61, 0x61, 0xff)), 'CBOR_MALFORMED', 1),
  refused('257 nested arrays', documentWith({ deep: nested(257) }), 'CBOR_MALFORMED', 1),
  made('254 nested arrays in an unknown field', documentWith({ deep: nested(254) })),
  refused(
    'a string that is not UTF-8',
    withEncoded('module_id', Uint8Array.of(0x61, 0xff)),
    'CBOR_MALFORMED',
    1,
  ),
  refused('a byte after the payload', signed(PADDED), 'CBOR_TRAILING_BYTES', null),
  refused('a payload that is a list', signed(encode([])), 'DOCUMENT_FIELD', 1),
  refused('a key that is a number', signed(encodeMap([...entries(), [1, encode(1)]])), 'DOCUMENT_FIELD', 1),
  refused('a key twice', signed(encodeMap([...entries(), ['nonce', encode(null)]])), 'CBOR_DUPLICATE_KEY', 1),
  refused(
    'an unknown key twice',
    signed(encodeMap([...entries(), ['x', encode(1)], ['x', encode(1)]], 'indefinite')),
    'CBOR_DUPLICATE_KEY',
    1,
  ),
  ...['module_id', 'timestamp', 'pcrs', 'certificate', 'cabundle'].map((field) =>
    refused(`no ${field}`, without(field), 'DOCUMENT_FIELD', 1),
  ),
  refused('no digest', without('digest'), 'DOCUMENT_DIGEST', 1),
  refused('a digest of SHA256', documentWith({ digest: 'SHA256' }), 'DOCUMENT_DIGEST', 1),
  refused('an empty module_id', documentWith({ module_id: '' }), 'DOCUMENT_FIELD', 1),
  refused('a module_id that is bytes', documentWith({ module_id: PUBLIC_KEY }), 'DOCUMENT_FIELD', 1),
  refused('a timestamp that is a string', documentWith({ timestamp: '1' }), 'DOCUMENT_FIELD', 1),
  refused('a timestamp that is negative', documentWith({ timestamp: -1 }), 'DOCUMENT_FIELD', 1),
  refused(
    'a timestamp that is a float',
    withEncoded('timestamp', Uint8Array.of(0xfa, 0x3f, 0x80, 0, 0)),
    'DOCUMENT_FIELD',
    1,
  ),
  made('a timestamp that is a bignum', withEncoded('timestamp', Uint8Array.of(0xc2, 0x42, 1, 0))),
  refused(
    'a timestamp beyond all dates',
    documentWith({ timestamp: 8_640_000_000_000_001 }),
    'DOCUMENT_FIELD',
    null,
  ),
  refused('a timestamp of 2^64 - 1', documentWith({ timestamp: 2n ** 64n - 1n }), 'DOCUMENT_FIELD', null),
  refused('registers that are a list', documentWith({ pcrs: [] }), 'DOCUMENT_FIELD', 1),
  refused('no register at all', documentWith({ pcrs: new Map() }), 'DOCUMENT_FIELD_SIZE', null),
  refused('33 registers', withRegisters([...ALL_REGISTERS, [32, measure('x')]]), 'DOCUMENT_FIELD_SIZE', 1),
  refused('a register of index 32', withRegisters([[32, measure('x')]]), 'REGISTER_INDEX', null),
  refused('a register of index 256', withRegisters([[256, measure('x')]]), 'REGISTER_INDEX', 1),
  refused('a register of index -1', withRegisters([[-1, measure('x')]]), 'REGISTER_INDEX', 1),
  refused(
    'a register whose index is a string',
    withEncoded('pcrs', encodeMap([...registerEntries(), ['16', encode(measure('x'))]])),
    'REGISTER_INDEX',
    1,
  ),
  refused(
    'a register twice',
    withEncoded('pcrs', encodeMap([...registerEntries(), [0, encode(measure('x'))]])),
    'CBOR_DUPLICATE_KEY',
    1,
  ),
  refused(
    'a register of zeros twice',
    withEncoded('pcrs', encodeMap([...registerEntries(), [5, encode(new Uint8Array(48))]])),
    'CBOR_DUPLICATE_KEY',
    null,
  ),
  ...[0, 31, 33, 47, 49, 63, 65].map((size) =>
    refused(`a register of ${size} bytes`, withRegisters([[4, new Uint8Array(size)]]), 'REGISTER_SIZE', 1),
  ),
  refused(
    'a register that is a string',
    documentWith({ pcrs: new Map<number, unknown>([...registers(), [4, 'a'.repeat(48)]]) }),
    'REGISTER_SIZE',
    1,
  ),
  refused(
    'a certificate of no bytes',
    documentWith({ certificate: new Uint8Array() }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  refused(
    'a certificate of 1025 bytes',
    documentWith({ certificate: new Uint8Array(1025) }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  refused('a certificate that is a string', documentWith({ certificate: 'a' }), 'DOCUMENT_FIELD', 1),
  refused('an empty bundle', documentWith({ cabundle: [] }), 'DOCUMENT_FIELD_SIZE', 1),
  refused(
    'a bundle of 11 certificates',
    documentWith({ cabundle: Array(11).fill(CHAIN.root.certificate) }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  refused('a bundle that is bytes', documentWith({ cabundle: CHAIN.root.certificate }), 'DOCUMENT_FIELD', 1),
  refused(
    'a bundle with an empty certificate',
    documentWith({ cabundle: [...bundle(), new Uint8Array()] }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  refused(
    'a bundle with a certificate of 1025 bytes',
    documentWith({ cabundle: [...bundle(), new Uint8Array(1025)] }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  refused(
    'a public key of 1025 bytes',
    documentWith({ public_key: new Uint8Array(1025) }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  refused(
    'user data of 513 bytes',
    documentWith({ user_data: new Uint8Array(513) }),
    'DOCUMENT_FIELD_SIZE',
    1,
  ),
  refused('a nonce of 513 bytes', documentWith({ nonce: new Uint8Array(513) }), 'DOCUMENT_FIELD_SIZE', 1),
  refused('a public key that is a string', documentWith({ public_key: 'a' }), 'DOCUMENT_FIELD', null),
  refused('a nonce that is a number', documentWith({ nonce: 1 }), 'DOCUMENT_FIELD', null),
  made(
    'a document without register 8, which no rule needs',
    documentWith({ pcrs: new Map([...registers()].filter(([index]) => index !== 8)) }),
  ),
  ...bignums(),
];

/**
 * Cases of bignums. Some are numbers for Sui's reader, some are tags like any other, and some are neither.
 */
function bignums(): Case[] {
  const ones = (size: number) => new Uint8Array(size).fill(0xff);
  const tagged = (tag: number, content: Uint8Array) => new Uint8Array([0xc0 + tag, ...content]);
  const unknown = (value: Uint8Array) => signed(encodeMap([...entries(), ['x', value]]));
  const time = (value: Uint8Array) => withEncoded('timestamp', value);
  const chunks = Uint8Array.of(0xc2, 0x5f, 0x42, 1, 0, 0xff);
  const zeros = (size: number) => encode(new Uint8Array([...new Uint8Array(size), 1, 0]));
  return [
    refused('a bignum tag on a string', unknown(tagged(2, encode('a'))), 'CBOR_MALFORMED', null),
    refused(
      'a bignum tag on a list, in the nonce',
      withEncoded('nonce', tagged(3, encode([1]))),
      'CBOR_MALFORMED',
      null,
    ),
    refused('a bignum tag on a number as the time', time(tagged(2, encode(1))), 'CBOR_MALFORMED', 1),
    made('a bignum of 16 bytes', unknown(tagged(2, encode(ones(16))))),
    made('a bignum of 17 bytes', unknown(tagged(2, encode(ones(17))))),
    made('a negative bignum of 2^127 - 1', unknown(tagged(3, encode(Uint8Array.of(0x7f, ...ones(15)))))),
    made(
      'a negative bignum of 2^127',
      unknown(tagged(3, encode(Uint8Array.of(0x80, ...new Uint8Array(15))))),
      {
        abort: 1,
      },
    ),
    made('a negative bignum of 17 bytes', unknown(tagged(3, encode(ones(17))))),
    made(
      'a bignum of 16 bytes within another tag',
      unknown(Uint8Array.of(0xd8, 100, ...tagged(2, encode(ones(16))))),
    ),
    made(
      'a negative bignum of 16 bytes within another tag',
      unknown(Uint8Array.of(0xd8, 100, ...tagged(3, encode(ones(16))))),
      {
        abort: 1,
      },
    ),
    made('a bignum of 16 bytes within a bignum tag', unknown(tagged(2, tagged(2, encode(ones(16))))), {
      code: 'CBOR_MALFORMED',
    }),
    made('a time that is a bignum in chunks', time(chunks), { abort: 1 }),
    made('a time that is a bignum of 16 bytes', time(tagged(2, zeros(14)))),
    made('a time that is a bignum of 17 bytes', time(tagged(2, zeros(15))), { abort: 1 }),
    refused(
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

function nested(depth: number): unknown {
  return Array.from({ length: depth }).reduce<unknown>((inner) => [inner], 0);
}
