/**
 * Tests the rules of the statement in the order of the table in src/prover/circuit/README.md. Each forged
 * input breaks one rule and has the right public input. The template that enforces the rule must refuse it.
 */

import { poseidonHash } from '@mysten/sui/zklogin';
import { describe, expect, test } from 'vitest';
import { EPHEMERAL_KEY, MAX_EPOCH, NONCE } from '../support.ts';
import { AUD, claim, type Forgery, forge, ISS, KC, limbs, NONCE_CLAIM, PAYLOAD } from './forge.ts';
import { run } from './generator.ts';

const refusal = (forgery: Forgery) => run(forge(forgery)).refusedBy;
/** Returns a change that adds these differences to numbers of the input. */
const shift =
  (differences: Record<string, number>) =>
  (input: Record<string, string | string[]>): void => {
    for (const [name, by] of Object.entries(differences)) input[name] = String(Number(input[name]) + by);
  };
/** Makes a forgery that changes one element of a list. */
const element = (name: string, index: number, change: (value: number) => number) => ({
  lie: (input: Record<string, string | string[]>) => {
    const list = input[name] as string[];
    list[index] = String(change(Number(list[index])));
  },
});
const unsignedLength = () => {
  const { payload_start_index, payload_len } = forge();
  return Number(payload_start_index) + Number(payload_len);
};
const LENGTH = unsignedLength();
const LONG_PAYLOAD = PAYLOAD.replace(KC, `"x":"${'x'.repeat(100)}",${KC}`);
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
const BLOCKS = Math.ceil((LENGTH + 9) / 64);

const nonceFor = (randomness: bigint) => {
  const hash = poseidonHash([EPHEMERAL_KEY >> 128n, EPHEMERAL_KEY % (1n << 128n), MAX_EPOCH, randomness]);
  return Buffer.from(hash.toString(16).padStart(64, '0').slice(-40), 'hex').toString('base64url');
};
/** Makes a payload with another nonce claim. */
const withNonce = (value: string, randomness?: bigint): Forgery => ({
  ...withNonceClaim(`"nonce":"${value}"}`),
  ...(randomness !== undefined && { randomness }),
});
const withNonceClaim = (text: string): Forgery => ({
  payload: PAYLOAD.replace(NONCE_CLAIM, text),
  nonce: claim(text),
  // The claim in place of email_verified is valid, so that the nonce is the only fault.
  ev: claim(AUD),
});
/** Makes a nonce with '+' where base64url has '-'. */
function withPlainBase64(): Forgery {
  for (let randomness = 1n; ; randomness++) {
    const nonce = nonceFor(randomness);
    if (nonce.includes('-')) return withNonce(nonce.replace('-', '+'), randomness);
  }
}
/** Makes a payload with another key claim. */
const withKc = (text: string, lie = {}): Forgery => ({
  payload: PAYLOAD.replace(KC, text),
  kc: claim(text, lie),
});
const withAud = (text: string, lie = {}): Forgery => ({
  payload: PAYLOAD.replace(AUD, text),
  aud: claim(text, lie),
});
/**
 * Makes a message whose padding ends one block beyond the circuit's last block. No block counts as the last,
 * so the hash is zero.
 */
function beyondTheLastBlock(): Forgery {
  const payloadBase64 = Buffer.from(LONG_PAYLOAD).toString('base64url');
  return {
    payload: LONG_PAYLOAD,
    headerBase64: 'e'.repeat(505 - 1 - payloadBase64.length),
    blocks: 8,
    // The padded message has no length.
    message: (bytes) => bytes.fill(0, 508),
    encoded: (em) => em.fill(0, 256 - 32),
    lie: shift({ num_sha2_blocks: 1 }),
  };
}
/** Returns the base64url character of the sextet that the hint in Base64Bits computes for a character. */
function readAs(char: string): string {
  const code = char.charCodeAt(0);
  const sextet = code >= 97 ? code - 71 : code >= 65 ? code - 65 : code >= 48 ? code + 4 : 62;
  return ALPHABET[sextet & 63] as string;
}
/** Makes a key claim, and replaces the character `original` in its base64 by `char`. */
function withCharacter(char: string, original: string): Forgery {
  // base64 encodes three bytes in four characters, the last of which has the low bits of the third byte. The
  // claim repeats the character three times, so one of them is such a third byte.
  const sextet = ALPHABET.indexOf(original);
  const text = `"sub":"${String.fromCharCode(sextet < 35 ? sextet + 64 : sextet).repeat(3)}",`;
  const payload = PAYLOAD.replace(KC, text);
  const base64 = Buffer.from(payload).toString('base64url');
  const index = base64.indexOf(original, Math.ceil((8 * (payload.indexOf(text) + 7)) / 6));
  const start = Number(forge()['payload_start_index']);
  return { ...withKc(text), message: (bytes) => bytes.write(char, start + index, 'latin1') };
}
/**
 * Finds bits that PayloadText reads as these bytes when both of its selectors are 1. The first four bits are
 * in `before`.
 */
function findBitsReadAs(bytes: readonly number[], before: number): string | undefined {
  const [byte, ...followingBytes] = bytes;
  if (byte === undefined) return before.toString(2).padStart(4, '0');
  for (let window = before << 8; window < (before + 1) << 8; window++) {
    // The byte is the sum of the bytes that begin 2 and 4 bits further on, less the byte that begins here.
    if (((window >> 2) & 255) + (window & 255) - (window >> 4) !== byte) continue;
    const followingBits = findBitsReadAs(followingBytes, window & 15);
    if (followingBits !== undefined) return (window >> 4).toString(2).padStart(8, '0') + followingBits;
  }
  return undefined;
}
const EMAIL = '"email":"a@id.example",';
const withEmail = (ev: string, lie = {}): Forgery => ({
  payload: PAYLOAD.replace(KC, EMAIL + ev),
  kc: claim(EMAIL),
  ev: claim(ev, lie),
});

describe('the circuit accepts', () => {
  test.each<[string, Forgery]>([
    ['the input of an honest prover', {}],
    ['a key claim at a second offset in base64', { payload: PAYLOAD.replace(KC, `"x":1,${KC}`) }],
    ['a key claim at the third offset in base64', { payload: PAYLOAD.replace(KC, `"x":12,${KC}`) }],
    ['white space of JSON in every place', withKc('"sub" \t: \r\n"10629404924099930" ,')],
    ['another key claim', withKc('"user_id":"10629404924099930",')],
    ['the longest value', withKc(`"sub":"${'7'.repeat(113)}",`)],
    ['an empty value', withKc('"sub":"",')],
    ['a verified email', withEmail('"email_verified":true,')],
    ['an email whose email_verified is a string', withEmail('"email_verified" : "true" ,')],
    ['a nonce of other randomness', withNonce(nonceFor(5n), 5n)],
    [
      'a claim within a nested object, which a front end must refuse',
      { payload: PAYLOAD.replace(KC, `"x":{${KC}"y":1},`) },
    ],
  ])('%s', (_, forgery) => {
    expect(refusal(forgery)).toBeNull();
  });
});

describe('rule 1, the message is bytes, padded for SHA-256, with zeros after it: the circuit refuses', () => {
  test.each<[string, string, Forgery]>([
    ['a byte over 255', 'Num2Bits', element('padded_unsigned_jwt', 5, (byte) => byte + 256)],
    ['a byte other than 0x80', 'CheckPadding', { message: (bytes) => bytes.writeUInt8(0x81, LENGTH) }],
    ['a byte in the padding', 'CheckPadding', { message: (bytes) => bytes.writeUInt8(1, LENGTH + 1) }],
    ['another length', 'CheckPadding', { message: (bytes) => bytes.writeUInt8(8, 64 * BLOCKS - 1) }],
    ['a length over 16 bits', 'CheckPadding', { message: (bytes) => bytes.writeUInt8(1, 64 * BLOCKS - 3) }],
    ['a byte after the last block', 'CheckPadding', element('padded_unsigned_jwt', 64 * BLOCKS, () => 1)],
    ['a byte at the very end', 'CheckPadding', element('padded_unsigned_jwt', 511, () => 1)],
    ['one block too many', 'Num2Bits', { blocks: BLOCKS + 1 }],
    ['one block too few', 'Num2Bits', { lie: shift({ num_sha2_blocks: -1 }) }],
    ['no block', 'Num2Bits', { lie: shift({ num_sha2_blocks: -BLOCKS }) }],
    ['a payload that is longer than stated', 'CheckPadding', { lie: shift({ payload_len: -1 }) }],
    ['a payload that is shorter than stated', 'CheckPadding', { lie: shift({ payload_len: 1 }) }],
    [
      'a block beyond the last one, with a signature of zeros instead of a hash',
      'OneHot',
      beyondTheLastBlock(),
    ],
  ])('%s', (_, by, forgery) => {
    expect(refusal(forgery)).toBe(by);
  });
});

describe('rule 2, the header ends before the dot: the circuit refuses', () => {
  test.each<[string, string, Forgery]>([
    [
      'a header one character shorter',
      'ZkLogin',
      { lie: shift({ payload_start_index: -1, payload_len: 1 }) },
    ],
    ['a header one character longer', 'ZkLogin', { lie: shift({ payload_start_index: 1, payload_len: -1 }) }],
    [
      'a header four characters shorter, which leaves claims where they are in base64',
      'ZkLogin',
      { lie: shift({ payload_start_index: -4, payload_len: 4 }) },
    ],
    [
      'a header four characters longer',
      'ZkLogin',
      {
        payload: PAYLOAD.replace(ISS, `"x":12345,${ISS}`),
        lie: shift({ payload_start_index: 4, payload_len: -4 }),
      },
    ],
    [
      'another character in place of the dot',
      'ZkLogin',
      { message: (bytes) => bytes.write(',', Number(forge()['payload_start_index']) - 1) },
    ],
    [
      'a header that continues after 248 characters and a dot',
      'Below',
      { headerBase64: `${'e'.repeat(248)}.e` },
    ],
  ])('%s', (_, by, forgery) => {
    expect(refusal(forgery)).toBe(by);
  });
});

describe('rule 3, the signature follows PKCS #1 v1.5 with SHA-256: the circuit refuses', () => {
  test.each<[string, Forgery]>([
    ['another digest', { encoded: (em) => em.writeUInt8((em.at(-1) as number) ^ 1, 255) }],
    ['another hash algorithm', { encoded: (em) => em.writeUInt8(2, 256 - 32 - 5) }],
    ['a zero among the ones', { encoded: (em) => em.writeUInt8(0, 100) }],
    ['another block type', { encoded: (em) => em.writeUInt8(2, 1) }],
    ['no zero before DigestInfo', { encoded: (em) => em.writeUInt8(0xff, 256 - 52) }],
    [
      'the signature of another message',
      { lie: (input) => (input['signature'] = forge({ blocks: 8 })['signature'] as string[]) },
    ],
  ])('%s', (_, forgery) => {
    expect(refusal(forgery)).toBe('VerifyRsa2048');
  });

  test('a limb over 64 bits', () => {
    const carry = (name: string): Forgery => ({
      lie: (input) => {
        const [low = '', high = '', ...upperLimbs] = input[name] as string[];
        input[name] = [String(BigInt(low) + (1n << 64n)), String(BigInt(high) - 1n), ...upperLimbs];
      },
    });
    expect(refusal(carry('signature'))).toBe('Num2Bits');
    expect(refusal(carry('modulus'))).toBe('Num2Bits');
  });

  test('a signature above the modulus that is congruent to a valid one', () => {
    const number = (list: string[]) => list.reduceRight((sum, limb) => (sum << 64n) + BigInt(limb), 0n);
    const bytes = (value: bigint) => Buffer.from(value.toString(16).padStart(512, '0'), 'hex');
    for (let randomness = 1n; ; randomness++) {
      const honest = withNonce(nonceFor(randomness), randomness);
      const { signature, modulus } = forge(honest) as Record<string, string[]>;
      const same = number(signature as string[]) + number(modulus as string[]);
      if (same >= 1n << 2048n) continue;
      expect(refusal(honest)).toBeNull();
      expect(refusal({ ...honest, lie: (input) => (input['signature'] = limbs(bytes(same))) })).toBe(
        'VerifyRsa2048',
      );
      return;
    }
  });
});

const CLAIMS = ['kc', 'nonce', 'ev', 'aud'] as const;

describe('rule 4, each extended claim is in the payload: the circuit refuses', () => {
  test.each(CLAIMS)('the claim %s with another text, position or length', (name) => {
    const text = `ext_${name}`;
    const refusalAfter = (differences: Record<string, number>) => refusal({ lie: shift(differences) });
    expect(refusal(element(text, 3, (byte) => byte ^ 1))).not.toBeNull();
    expect(refusal(element(text, 43, () => 32))).toBe('PayloadText');
    expect(refusal(element(text, 3, (byte) => byte + 256))).not.toBeNull();
    for (const step of [-4, -1, 1, 4]) expect(refusalAfter({ [`${name}_index_b64`]: step })).not.toBeNull();
    for (const step of [-1, 1]) {
      expect(refusalAfter({ [`${name}_length_b64`]: step })).not.toBeNull();
      expect(refusalAfter({ [`${text}_length`]: step })).not.toBeNull();
    }
    expect(refusalAfter({ [`${name}_index_b64`]: 2048 })).toBe('Num2Bits');
    expect(refusalAfter({ [`${name}_length_b64`]: 1000 })).toBe('Below');
  });

  test('a claim that is in the header', () => {
    const header = `{${KC}"alg":"RS256","kid":"ours"}`;
    const forgery: Forgery = {
      headerBase64: Buffer.from(header).toString('base64url'),
      lie: (input) => {
        input['kc_index_b64'] = String(Math.floor(8 / 6));
        input['kc_length_b64'] = String(Math.floor((8 * (KC.length + 1) - 1) / 6));
      },
    };
    expect(refusal(forgery)).toBe('Num2Bits');
  });

  test('a claim at a character whose index is 3 modulo 4, where no byte begins', () => {
    // Both selectors are 1 there, and PayloadText computes bytes that are not in the payload. Few texts have
    // such bits.
    const text = '"j":"",';
    const bits = findBitsReadAs([...Buffer.from(text)], 6);
    const sextets = Math.ceil((6 + 8 * text.length) / 6);
    const bytes = Buffer.from(
      `${'0'.repeat(18)}${bits}${'0'.repeat(48)}`.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ??
        [],
    );
    const prefix = `{${ISS}"x":"`.padEnd(48);
    const forgery: Forgery = {
      payload: `${prefix}${bytes.toString('latin1')}",${AUD}${NONCE_CLAIM}`,
      kc: claim(text),
      lie: (input) => {
        input['kc_index_b64'] = String(Number(input['payload_start_index']) + (prefix.length / 3) * 4 + 3);
        input['kc_length_b64'] = String(sextets);
      },
    };
    expect(refusal(forgery)).toBe('PayloadText');
  });

  test('a claim with a character outside base64url, which the generator reads as a character of base64url', () => {
    for (const char of ['+', '/', '=', '.', '@', '[', '`', '{', ':', ',', '\0', '\x80', '\xff']) {
      expect(refusal(withCharacter(char, readAs(char))), char).toBe('Base64Bits');
    }
    expect(refusal(withCharacter('f', 'f'))).toBeNull();
  });

  test('a claim without its last base64 character, even if that character adds only zeros', () => {
    for (const shift of ['', '"x":1,', '"x":12,']) {
      const payload = PAYLOAD.replace(KC, shift + KC);
      const forgery = (by: number): Forgery => ({
        payload,
        lie: (input) => (input['kc_length_b64'] = String(Number(input['kc_length_b64']) + by)),
      });
      expect(refusal(forgery(0))).toBeNull();
      expect(refusal(forgery(-1))).not.toBeNull();
    }
  });
});

describe('rule 5, an extended claim is name, colon, value and terminator: the circuit refuses', () => {
  test.each<[string, string, Forgery]>([
    ['another terminator', 'Member', withKc('"sub":"1062940492409993"]', { valueLength: 18 })],
    [
      'no terminator',
      'Member',
      withKc('"sub":"1062940492409993" ', { valueIndex: 6, valueLength: 18, colonIndex: 5, nameLength: 5 }),
    ],
    [
      'another colon',
      'Member',
      withKc('"sub"="1062940492409993",', { nameLength: 5, colonIndex: 5, valueIndex: 6, valueLength: 18 }),
    ],
    [
      'a character before the colon',
      'Member',
      withKc('"sub"x:"1",', { nameLength: 5, colonIndex: 6, valueIndex: 7, valueLength: 3 }),
    ],
    [
      'a character after the colon',
      'Member',
      withKc('"sub":x"1",', { nameLength: 5, colonIndex: 5, valueIndex: 7, valueLength: 3 }),
    ],
    [
      'a character after the value',
      'Member',
      withKc('"sub":"1"x,', { nameLength: 5, colonIndex: 5, valueIndex: 6, valueLength: 3 }),
    ],
    [
      'white space that JSON does not have',
      'Member',
      withKc('"sub":\v"1",', { nameLength: 5, colonIndex: 5, valueIndex: 7, valueLength: 3 }),
    ],
    [
      'a value before its colon',
      'Num2Bits',
      withKc('"sub" "1":,', { nameLength: 5, colonIndex: 9, valueIndex: 6, valueLength: 3 }),
    ],
    ['a value that is the name', 'Num2Bits', withKc('"sub":"1",', { valueIndex: 0, valueLength: 5 })],
    ['a value that begins in the name', 'Num2Bits', withKc('"sub":"1",', { valueIndex: 4, valueLength: 5 })],
    ['a value that includes the terminator', 'Member', withKc('"sub":"1",', { valueLength: 4 })],
    ['a value beyond the claim', 'Member', withKc('"sub":"1",', { valueIndex: 20, valueLength: 3 })],
    ['a colon beyond the claim', 'Member', withKc('"sub":"1",', { colonIndex: 60 })],
    ['a colon within the value', 'Num2Bits', withKc('"sub":"1:2",', { colonIndex: 8 })],
    ['a name without its last quote', 'Member', withKc(KC, { nameLength: 4 })],
    ['a name with the colon after it', 'Member', withKc(KC, { nameLength: 6 })],
    ['a name over 32 characters', 'Below', withKc(`"${'n'.repeat(31)}":"1",`)],
    [
      'a name with the white space after it, over 32 characters',
      'Below',
      withKc(`"${'n'.repeat(30)}"  :"1",`, { nameLength: 34 }),
    ],
    ['a value over 115 characters', 'Below', withKc(`"s":"${'7'.repeat(114)}",`)],
    ['a value that continues after 115 characters', 'Below', withKc(`"s":"${'7'.repeat(113)}"7",`)],
    [
      'a colon within the name',
      'Member',
      withKc('"a:b" "1",', { nameLength: 5, colonIndex: 2, valueIndex: 6, valueLength: 3 }),
    ],
    [
      'a quote that ends the name and begins the value',
      'Member',
      withKc('"a:"b",', { nameLength: 4, colonIndex: 2, valueIndex: 3, valueLength: 3 }),
    ],
    [
      'a name without a first quote',
      'JsonString',
      withKc('xsub":"1",', { nameLength: 5, colonIndex: 5, valueIndex: 6, valueLength: 3 }),
    ],
    [
      'a name without a last quote',
      'JsonString',
      withKc('"subx:"1",', { nameLength: 5, colonIndex: 5, valueIndex: 6, valueLength: 3 }),
    ],
    ['a value without a first quote', 'JsonString', withKc('"sub":x1",')],
    [
      'a name that is a single quote',
      'JsonString',
      withKc('":"1",', { nameLength: 1, colonIndex: 1, valueIndex: 2, valueLength: 3 }),
    ],
    [
      'a name with a quote within',
      'JsonString',
      withKc('"su"b":"1",', { nameLength: 6, colonIndex: 6, valueIndex: 7, valueLength: 3 }),
    ],
    ['a name with an escape', 'JsonString', withKc('"s\\u0075b":"1",')],
    [
      'a value that is a single quote',
      'JsonString',
      withKc('"sub":",', { nameLength: 5, colonIndex: 5, valueIndex: 6, valueLength: 1 }),
    ],
    [
      'a value that is not a string',
      'JsonString',
      withKc('"sub":12345,', { nameLength: 5, colonIndex: 5, valueIndex: 6, valueLength: 5 }),
    ],
    [
      'no value',
      'JsonString',
      withKc('"sub":,', { nameLength: 5, colonIndex: 5, valueIndex: 6, valueLength: 0 }),
    ],
    [
      'a value that ends without a quote',
      'JsonString',
      withKc('"sub":"1,', { nameLength: 5, colonIndex: 5, valueIndex: 6, valueLength: 2 }),
    ],
    [
      'a value that includes the next claim',
      'JsonString',
      withKc('"sub":"1","x":"2",', { nameLength: 5, colonIndex: 5, valueIndex: 6, valueLength: 11 }),
    ],
    ['a value with an escape', 'JsonString', withKc('"sub":"1\\n2",')],
    [
      'a value that ends with a backslash',
      'JsonString',
      withKc('"sub":"1\\",', { nameLength: 5, colonIndex: 5, valueIndex: 6, valueLength: 4 }),
    ],
  ])('%s', (_, by, forgery) => {
    expect(refusal(forgery)).toBe(by);
  });
});

describe('rule 6, the audience is a single string named aud: the circuit refuses', () => {
  test.each<[string, string, Forgery]>([
    ['another claim', 'ZkLogin', withAud('"azp":"client-id",')],
    ['a list', 'JsonString', withAud('"aud":["client-id"],')],
    ['a value with an escape', 'JsonString', withAud('"aud":"client\\/id",')],
    ['a value without a first quote', 'JsonString', withAud('"aud":xclient-id",')],
    ['a value without a last quote', 'JsonString', withAud('"aud":"client-idx,')],
    ['a value with a quote within', 'JsonString', withAud('"aud":"client"id",')],
    ['a value over 145 characters', 'Below', withAud(`"aud":"${'c'.repeat(144)}",`)],
    ['a value that continues after 145 characters', 'Below', withAud(`"aud":"${'c'.repeat(143)}"c",`)],
  ])('%s', (_, by, forgery) => {
    expect(refusal(forgery)).toBe(by);
  });
});

describe('rule 7, the nonce is the hash of key, epoch and randomness: the circuit refuses', () => {
  const changeNonce = (index: number) =>
    NONCE.slice(0, index) + (NONCE[index] === 'A' ? 'B' : 'A') + NONCE.slice(index + 1);
  test.each<[string, string, Forgery]>([
    ['a nonce that differs at its first character', 'ZkLogin', withNonce(changeNonce(0))],
    [
      'a nonce that differs at its last bits',
      'ZkLogin',
      withNonce(NONCE.slice(0, 26) + String.fromCharCode(NONCE.charCodeAt(26) + 1)),
    ],
    [
      'a nonce that differs at the bit before the last',
      'ZkLogin',
      withNonce(NONCE.slice(0, 26) + String.fromCharCode(NONCE.charCodeAt(26) + 2)),
    ],
    ['a nonce without a first quote', 'ZkLogin', withNonceClaim(`"nonce":x${NONCE}"}`)],
    ['a nonce without a last quote', 'ZkLogin', withNonceClaim(`"nonce":"${NONCE}x}`)],
    ['a nonce in the alphabet of plain base64', 'Base64Bits', withPlainBase64()],
    ['a nonce that is longer', 'Member', withNonce(`${NONCE}A`)],
    ['a nonce that is shorter', 'Member', withNonce(NONCE.slice(1))],
    [
      'another claim',
      'ZkLogin',
      {
        payload: PAYLOAD.replace('"nonce"', '"once1"'),
        nonce: claim(NONCE_CLAIM.replace('"nonce"', '"once1"')),
      },
    ],
    ['other randomness', 'ZkLogin', { randomness: 5n }],
    ['randomness over 128 bits', 'Num2Bits', withNonce(nonceFor((1n << 128n) + 5n), (1n << 128n) + 5n)],
    ['another epoch', 'ZkLogin', { lie: shift({ max_epoch: 1 }) }],
    ['another key', 'ZkLogin', { lie: (input) => (input['eph_public_key'] = ['1', '2']) }],
  ])('%s', (_, by, forgery) => {
    expect(refusal(forgery)).toBe(by);
  });
});

describe('rule 8, an email is verified: the circuit refuses', () => {
  test.each<[string, string, Forgery]>([
    ['an email that is not verified', 'JsonString', withEmail('"email_verified":false,')],
    [
      'an email whose email_verified is the string "false"',
      'ZkLogin',
      withEmail('"email_verified":"false",'),
    ],
    [
      'an email whose email_verified is the string "true "',
      'ZkLogin',
      withEmail('"email_verified":"true ",'),
    ],
    [
      'an email without the claim email_verified',
      'ZkLogin',
      { payload: PAYLOAD.replace(KC, EMAIL), kc: claim(EMAIL) },
    ],
    ['another claim that is true', 'ZkLogin', withEmail('"phone_verified":true,')],
    ['a claim whose name begins with email_verified', 'Below', withEmail('"email_verified2":true,')],
    ['an email whose email_verified is the number 1', 'JsonString', withEmail('"email_verified":1,')],
  ])('%s', (_, by, forgery) => {
    expect(refusal(forgery)).toBe(by);
  });
});

describe('rule 9, the issuer is a slice of the payload: the circuit refuses', () => {
  test('an issuer that begins in the header, or ends after the payload', () => {
    const start = Number(forge()['iss_index_b64']) - Number(forge()['payload_start_index']);
    expect(refusal({ lie: shift({ iss_index_b64: -start - 1 }) })).toBe('Num2Bits');
    expect(refusal({ lie: shift({ iss_index_b64: LENGTH }) })).toBe('Num2Bits');
    expect(refusal({ lie: (input) => (input['iss_index_b64'] = String(LENGTH - 10)) })).toBe('Num2Bits');
  });

  test('an issuer over 224 characters', () => {
    const lie = (length: string) => (input: Record<string, string | string[]>) =>
      (input['iss_length_b64'] = length);
    expect(refusal({ payload: LONG_PAYLOAD, lie: lie('224') })).toBeNull();
    expect(refusal({ payload: LONG_PAYLOAD, lie: lie('225') })).toBe('Below');
  });
});

describe('rule 10, the public input is the hash of all that validators know: the circuit refuses', () => {
  test('another public input', () => {
    const input = forge();
    const hash = BigInt(input['all_inputs_hash'] as string);
    expect(run({ ...input, all_inputs_hash: String(hash + 1n) }).refusedBy).toBe('ZkLogin');
    for (const name of ['salt', 'iss_length_b64'])
      expect(run({ ...input, [name]: String(BigInt(input[name] as string) - 1n) }).refusedBy).toBe('ZkLogin');
  });
});
