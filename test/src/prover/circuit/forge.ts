/**
 * Builds inputs of the circuit as an attacker would, without the checks of input.ts. The tests' key signs in
 * the issuer's place, and the public input is the one that the circuit computes. So only the rule that a
 * forged input breaks can refuse it.
 */
import { constants, privateEncrypt } from 'node:crypto';
import { poseidonHash } from '@mysten/sui/zklogin';
import { sha256 } from '@noble/hashes/sha2.js';
import type { CircuitInput } from '../../../../src/prover/input.ts';
import { PROFILES } from '../../../../src/prover/profile.ts';
import {
  EPHEMERAL_KEY,
  MAX_EPOCH,
  NONCE,
  OUR_MODULUS,
  OUR_PRIVATE_KEY,
  RANDOMNESS,
  SALT,
} from '../support.ts';

const PROFILE = PROFILES.small;
const SIZE = 64 * PROFILE.blocks;

/** An extended claim, with the positions of its parts as a prover states them. */
export interface Claim {
  readonly text: string;
  readonly nameLength: number;
  readonly colonIndex: number;
  readonly valueIndex: number;
  readonly valueLength: number;
}

/** Returns the claim that an honest prover states for this text, changed by `lie`. */
export function claim(text: string, lie: Partial<Claim> = {}): Claim {
  const [, name = '', spaceBefore = '', spaceAfter = '', value = ''] =
    /^("(?:[^"\\]|\\.)*")(\s*):(\s*)(.*?)\s*[,}]$/s.exec(text) ?? [];
  const colonIndex = name.length + spaceBefore.length;
  const valueIndex = colonIndex + 1 + spaceAfter.length;
  return { text, nameLength: name.length, colonIndex, valueIndex, valueLength: value.length, ...lie };
}

export interface Forgery {
  /** Part of the token before its first dot. */
  readonly headerBase64?: string;
  /** Payload of the token, with a character for each byte. */
  readonly payload?: string;
  readonly kc?: Claim;
  readonly nonce?: Claim;
  readonly aud?: Claim;
  readonly ev?: Claim;
  readonly iss?: string;
  readonly randomness?: bigint;
  /** Changes the message before it is hashed and signed. */
  readonly message?: (padded: Buffer) => void;
  readonly blocks?: number;
  /** Changes the encoded message (RFC 8017, section 9.2) before it is signed. */
  readonly encoded?: (em: Buffer) => void;
  /** Changes signals. The public input is computed from the changed signals. */
  readonly lie?: (input: Record<string, string | string[]>) => void;
}

export const KC = '"sub":"10629404924099930",';
export const AUD = '"aud":"client-id",';
export const ISS = '"iss":"https://id.example",';
export const NONCE_CLAIM = `"nonce":"${NONCE}"}`;
export const PAYLOAD = `{${ISS}${KC}${AUD}${NONCE_CLAIM}`;

const HEADER = Buffer.from('{"alg":"RS256","kid":"ours"}').toString('base64url');

export function forge(forgery: Forgery = {}): CircuitInput {
  const { payload = PAYLOAD, headerBase64 = HEADER, iss = ISS, randomness = BigInt(RANDOMNESS) } = forgery;
  const { kc = claim(KC), aud = claim(AUD), nonce = claim(NONCE_CLAIM) } = forgery;
  const payloadBase64 = Buffer.from(payload, 'latin1').toString('base64url');
  const unsigned = `${headerBase64}.${payloadBase64}`;
  const blocks = forgery.blocks ?? Math.ceil((unsigned.length + 9) / 64);
  const padded = Buffer.alloc(SIZE);
  padded.write(unsigned, 'latin1');
  padded[unsigned.length] = 0x80;
  padded.writeUInt32BE(8 * unsigned.length, 64 * blocks - 4);
  forgery.message?.(padded);
  const em = encode(computeDigest(padded, blocks));
  forgery.encoded?.(em);
  const signature = privateEncrypt({ key: OUR_PRIVATE_KEY, padding: constants.RSA_NO_PADDING }, em);

  const payloadStart = headerBase64.length + 1;
  const signals = (prefix: string, { text, ...positions }: Claim, max: number) => ({
    [`ext_${prefix}`]: Array.from(
      Buffer.concat([Buffer.from(text, 'latin1'), Buffer.alloc(max)], max),
      String,
    ),
    [`ext_${prefix}_length`]: String(text.length),
    ...position(prefix, payload, text, payloadStart),
    [`${prefix}_colon_index`]: String(positions.colonIndex),
    [`${prefix}_value_index`]: String(positions.valueIndex),
  });
  const ev = forgery.ev ?? nonce;
  const input: Record<string, string | string[]> = {
    padded_unsigned_jwt: Array.from(padded, String),
    payload_start_index: String(payloadStart),
    num_sha2_blocks: String(blocks),
    payload_len: String(payloadBase64.length),
    signature: limbs(signature),
    modulus: limbs(OUR_MODULUS),
    ...signals('kc', kc, PROFILE.extendedSubject),
    kc_name_length: String(kc.nameLength),
    kc_value_length: String(kc.valueLength),
    ...signals('nonce', nonce, PROFILE.extendedNonce),
    eph_public_key: [String(EPHEMERAL_KEY >> 128n), String(EPHEMERAL_KEY % (1n << 128n))],
    max_epoch: String(MAX_EPOCH),
    jwt_randomness: String(randomness),
    ...signals('ev', ev, PROFILE.extendedEmailVerified),
    ev_name_length: String(ev.nameLength),
    ev_value_length: String(ev.valueLength),
    ...signals('aud', aud, PROFILE.extendedAudience),
    aud_value_length: String(aud.valueLength),
    ...position('iss', payload, iss, payloadStart),
    salt: SALT,
  };
  forgery.lie?.(input);
  input['all_inputs_hash'] = String(publicInputFor(input));
  return input;
}

function position(prefix: string, payload: string, text: string, payloadStart: number) {
  const start = payload.indexOf(text);
  const first = Math.floor((8 * start) / 6);
  const last = Math.floor((8 * (start + text.length) - 1) / 6);
  return {
    [`${prefix}_index_b64`]: String(payloadStart + first),
    [`${prefix}_length_b64`]: String(last - first + 1),
  };
}

/** Computes SHA-256 of the blocks without checking their padding. */
function computeDigest(padded: Buffer, blocks: number): Buffer {
  const hash = sha256.create() as unknown as {
    process(view: DataView, offset: number): void;
    get(): number[];
  };
  const view = new DataView(padded.buffer, padded.byteOffset, padded.length);
  for (let offset = 0; offset < 64 * blocks; offset += 64) hash.process(view, offset);
  const digest = Buffer.alloc(32);
  for (const [index, word] of hash.get().entries()) digest.writeUInt32BE(word >>> 0, 4 * index);
  return digest;
}

/** Encodes a hash by EMSA-PKCS1-v1_5 (RFC 8017, section 9.2) in 256 bytes. */
function encode(digest: Buffer): Buffer {
  const info = Buffer.concat([Buffer.from('3031300d060960864801650304020105000420', 'hex'), digest]);
  const ones = Buffer.alloc(256 - 3 - info.length, 0xff);
  return Buffer.concat([Buffer.from([0, 1]), ones, Buffer.from([0]), info]);
}

export function limbs(number: Buffer): string[] {
  return Array.from({ length: 32 }, (_, i) => String(number.readBigUInt64BE(256 - 8 * (i + 1))));
}

/**
 * Computes the public input as the circuit does, also for invalid inputs. It allows bytes over 255 and quotes
 * within strings. It cuts a text that is longer than the circuit accepts.
 */
function publicInputFor(input: Record<string, string | string[]>): bigint {
  const number = (name: string) => Number(input[name]);
  const numbers = (name: string) => (input[name] as string[]).map(BigInt);
  const content = (claim: string, start: number, length: number, max: number) =>
    numbers(claim).slice(start + 1, Math.max(start + 1, start + Math.min(length, max) - 1));
  const kcName = content('ext_kc', 0, number('kc_name_length'), PROFILE.keyClaimName);
  const kcValue = content('ext_kc', number('kc_value_index'), number('kc_value_length'), PROFILE.subject);
  const aud = content('ext_aud', number('aud_value_index'), number('aud_value_length'), PROFILE.audience);
  const jwt = numbers('padded_unsigned_jwt');
  const [payloadStart, issIndex] = [number('payload_start_index'), number('iss_index_b64')];
  const iss = jwt.slice(issIndex, issIndex + Math.min(number('iss_length_b64'), PROFILE.issuerBase64));
  const header = jwt.slice(0, Math.min(payloadStart - 1, PROFILE.header));
  return poseidonHash([
    ...numbers('eph_public_key'),
    poseidonHash([
      hashAscii(kcName, PROFILE.keyClaimName),
      hashAscii(kcValue, PROFILE.subject),
      hashAscii(aud, PROFILE.audience),
      poseidonHash([BigInt(input['salt'] as string)]),
    ]),
    BigInt(input['max_epoch'] as string),
    hashAscii(iss, PROFILE.issuerBase64),
    (((issIndex - payloadStart) % 4) + 4) % 4,
    hashAscii(header, PROFILE.header),
    hashModulus(numbers('modulus')),
  ]);
}

/** Computes HashAscii of hash.circom. */
function hashAscii(chars: readonly bigint[], max: number): bigint {
  const padded = Array.from({ length: max }, (_, i) => chars[i] ?? 0n);
  const words: bigint[] = [];
  for (let end = max; end > 0; end -= 31) {
    words.unshift(padded.slice(Math.max(0, end - 31), end).reduce((sum, char) => 256n * sum + char, 0n));
  }
  return poseidonHash(words);
}

/** Computes HashBits of hash.circom. */
function hashModulus(limbs: readonly bigint[]): bigint {
  const modulus = limbs.reduceRight((sum, limb) => (sum << 64n) + limb, 0n);
  return poseidonHash(Array.from({ length: 9 }, (_, i) => (modulus >> BigInt(248 * (8 - i))) % (1n << 248n)));
}
