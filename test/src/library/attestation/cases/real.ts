/** Documents of real enclaves. */
import { readFileSync } from 'node:fs';
import type { Image } from '../../../../../src/library/attestation/index.ts';
import type { Case } from './case.ts';

function readVector(name: string): string {
  return readFileSync(new URL(`../../../../vectors/${name}.hex`, import.meta.url), 'utf8').trim();
}

const WEATHER = readVector('nautilus-weather');
const TWITTER = readVector('nautilus-twitter');
const DEBUG = readVector('evervault-debug');

/** PCR2 of an image with one ramdisk: it measures nothing. PCR0 equals PCR1 in both images here. */
const PCR2_OF_NOTHING =
  '21b9efbc184807662e966d34f390821309eeac6802309798826296bf3e8bec7c10edb30948c90ba67310f7b964fc500a';

function createImage(pcr0: string): Image {
  return { pcr0, pcr1: pcr0, pcr2: PCR2_OF_NOTHING };
}

export const WEATHER_IMAGE: Image = createImage(
  'cbe1afb6ed0ff89f10295af0b802247ec5670da8f886e71a4226373b032c322f4e42c9c98288e7211682b258684505a2',
);
const TWITTER_IMAGE = createImage(
  '8912462a02fd4f827c5e9c7d12d8f33acc3ae99f23dcf35054f6d157a243edf3b78dc2781b7eb8335745ae4817388b41',
);
const WEATHER_KEY = 'e8e62201dbe293b703c759f653107acbc2c911fa1d2e66f2c747bec95971a2af';
const DEBUG_NONCE_HEAD = 'bba6bfd51866d2e4e095ba3277f208a4692e62f7';

/** Times at which the documents were made, and the last second of the weather enclave's leaf. */
export const WEATHER_AT = Date.parse('2025-04-15T02:25:23.696Z');
const WEATHER_END = Date.parse('2025-04-15T05:17:50Z');
const TWITTER_AT = Date.parse('2025-04-15T15:38:57.935Z');
const DEBUG_AT = Date.parse('2023-09-18T15:03:30.860Z');

export const realCases: Case[] = [
  {
    name: 'the weather enclave, when its document was made',
    document: WEATHER,
    at: WEATHER_AT,
    policy: { images: [WEATHER_IMAGE], publicKey: WEATHER_KEY, maxAgeMs: 0 },
    code: null,
    abort: null,
  },
  {
    name: 'the weather enclave, in the last millisecond of its leaf',
    document: WEATHER,
    at: WEATHER_END + 999,
    policy: { images: [TWITTER_IMAGE, WEATHER_IMAGE] },
    code: null,
    abort: null,
  },
  {
    name: 'the weather enclave, a second after its leaf expired',
    document: WEATHER,
    at: WEATHER_END + 1000,
    policy: { images: [WEATHER_IMAGE] },
    code: 'CERTIFICATE_EXPIRED',
    abort: 2,
  },
  {
    name: 'the weather enclave, a year later',
    document: WEATHER,
    at: Date.parse('2026-06-01T00:00:00Z'),
    policy: { images: [WEATHER_IMAGE] },
    code: 'CERTIFICATE_EXPIRED',
    abort: 2,
  },
  {
    name: 'the weather enclave, a second before its leaf is valid',
    document: WEATHER,
    at: Date.parse('2025-04-15T02:17:46.999Z'),
    policy: { images: [WEATHER_IMAGE] },
    code: 'CERTIFICATE_NOT_YET_VALID',
    abort: 2,
  },
  {
    name: 'the weather enclave, checked against the image of another enclave',
    document: WEATHER,
    at: WEATHER_AT,
    policy: { images: [TWITTER_IMAGE] },
    code: 'POLICY_PCRS',
    abort: null,
  },
  {
    name: 'the weather enclave, under tag 18',
    document: `d2${WEATHER}`,
    at: WEATHER_AT,
    policy: { images: [WEATHER_IMAGE] },
    code: null,
    abort: null,
  },
  {
    name: 'the weather enclave, whose document lacks the expected nonce',
    document: WEATHER,
    at: WEATHER_AT,
    policy: { images: [WEATHER_IMAGE], nonce: '00' },
    code: 'POLICY_NONCE',
    abort: null,
  },
  {
    name: 'the weather enclave with the signature of the twitter enclave',
    document: WEATHER.slice(0, -192) + TWITTER.slice(-192),
    at: WEATHER_AT,
    policy: { images: [WEATHER_IMAGE] },
    code: 'COSE_SIGNATURE_MISMATCH',
    abort: 2,
  },
  {
    name: 'the twitter enclave, when its document was made',
    document: TWITTER,
    at: TWITTER_AT,
    policy: { images: [TWITTER_IMAGE] },
    code: null,
    abort: null,
  },
  {
    name: 'the twitter enclave, three hours later',
    document: TWITTER,
    at: TWITTER_AT + 3 * 3_600_000,
    policy: { images: [TWITTER_IMAGE] },
    code: 'CERTIFICATE_EXPIRED',
    abort: 2,
  },
  {
    name: 'a debug enclave that the policy does not allow',
    document: DEBUG,
    at: DEBUG_AT,
    policy: { images: [WEATHER_IMAGE] },
    code: 'POLICY_DEBUG',
    abort: null,
  },
  {
    name: 'a debug enclave that the policy allows',
    document: DEBUG,
    at: DEBUG_AT,
    policy: { images: [WEATHER_IMAGE], allowDebug: true },
    code: null,
    abort: null,
  },
  {
    name: 'a debug enclave whose nonce is longer than the expected prefix of it',
    document: DEBUG,
    at: DEBUG_AT,
    policy: { images: [WEATHER_IMAGE], allowDebug: true, nonce: DEBUG_NONCE_HEAD },
    code: 'POLICY_NONCE',
    abort: null,
  },
  {
    name: 'a debug enclave, a day later',
    document: DEBUG,
    at: DEBUG_AT + 86_400_000,
    policy: { images: [WEATHER_IMAGE], allowDebug: true },
    code: 'CERTIFICATE_EXPIRED',
    abort: 2,
  },
  {
    name: 'the unsigned document of an emulator',
    document: readVector('qemu-unsigned'),
    at: WEATHER_AT,
    policy: { images: [WEATHER_IMAGE] },
    code: 'COSE_PROTECTED_HEADER',
    abort: 1,
  },
];
