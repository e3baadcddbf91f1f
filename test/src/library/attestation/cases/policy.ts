/** Cases of the policy: rules 36 to 41. */
import { type Case, toHex } from './case.ts';
import { AT, defineCase, documentWith, IMAGE, PUBLIC_KEY, registers } from './made.ts';

const OTHER_IMAGE = { pcr0: 'aa'.repeat(48), pcr1: 'bb'.repeat(48), pcr2: 'cc'.repeat(48) };
const NONCE = new Uint8Array(32).fill(3);
const USER_DATA = new Uint8Array(5).fill(4);
const FULL = documentWith({ nonce: NONCE, user_data: USER_DATA });
const DEBUG = documentWith({
  pcrs: new Map([...registers()].map(([index, value]) => [index, index < 3 ? new Uint8Array(48) : value])),
});

function createCase(
  name: string,
  policy: Partial<Case['policy']>,
  code: string | null,
  document = FULL,
): Case {
  return defineCase(name, document, { policy: { images: [IMAGE], ...policy }, code });
}

export const policyCases: Case[] = [
  createCase(
    'every requirement that a policy can have',
    {
      publicKey: toHex(PUBLIC_KEY),
      nonce: toHex(NONCE),
      userData: toHex(USER_DATA),
      maxAgeMs: 0,
    },
    null,
  ),
  createCase('one of several images', { images: [OTHER_IMAGE, IMAGE] }, null),
  createCase('an image in capital letters', { images: [{ ...IMAGE, pcr0: IMAGE.pcr0.toUpperCase() }] }, null),
  createCase(
    'none of several images',
    { images: [OTHER_IMAGE, { ...IMAGE, pcr2: OTHER_IMAGE.pcr2 }] },
    'POLICY_PCRS',
  ),
  createCase(
    'an image that matches in register 0 alone',
    { images: [{ ...OTHER_IMAGE, pcr0: IMAGE.pcr0 }] },
    'POLICY_PCRS',
  ),
  createCase(
    'registers mixed from two images',
    {
      images: [
        { ...IMAGE, pcr0: OTHER_IMAGE.pcr0 },
        { ...OTHER_IMAGE, pcr0: IMAGE.pcr0 },
      ],
    },
    'POLICY_PCRS',
  ),
  createCase(
    'an image whose registers 0 and 1 are swapped',
    { images: [{ ...IMAGE, pcr0: IMAGE.pcr1, pcr1: IMAGE.pcr0 }] },
    'POLICY_PCRS',
  ),
  defineCase(
    'a document without register 1',
    documentWith({ pcrs: new Map([...registers()].filter(([index]) => index !== 1)) }),
    { code: 'POLICY_PCRS' },
  ),
  defineCase(
    'a register 0 of 64 bytes that starts like the expected one',
    documentWith({
      pcrs: new Map([
        ...registers(),
        [0, new Uint8Array([...(registers().get(0) ?? []), ...new Uint8Array(16)])],
      ]),
    }),
    { code: 'POLICY_PCRS' },
  ),
  createCase('a debug enclave', {}, 'POLICY_DEBUG', DEBUG),
  createCase('a debug enclave, allowed', { allowDebug: true }, null, DEBUG),
  createCase('a debug enclave, forbidden', { allowDebug: false }, 'POLICY_DEBUG', DEBUG),
  createCase(
    'another image, with debug enclaves allowed',
    { allowDebug: true, images: [OTHER_IMAGE] },
    'POLICY_PCRS',
  ),
  defineCase(
    'only register 0 zero, with debug enclaves allowed',
    documentWith({ pcrs: new Map([...registers(), [0, new Uint8Array(48)]]) }),
    {
      policy: { images: [IMAGE], allowDebug: true },
      code: 'POLICY_PCRS',
    },
  ),
  createCase('another public key', { publicKey: '08'.repeat(32) }, 'POLICY_PUBLIC_KEY'),
  createCase('a public key that is longer', { publicKey: `${toHex(PUBLIC_KEY)}07` }, 'POLICY_PUBLIC_KEY'),
  createCase(
    'a public key, though the document has none',
    { publicKey: '07' },
    'POLICY_PUBLIC_KEY',
    documentWith({ public_key: null }),
  ),
  createCase('another nonce', { nonce: '03'.repeat(31) }, 'POLICY_NONCE'),
  createCase('a nonce, though the document has none', { nonce: '03' }, 'POLICY_NONCE', documentWith({})),
  createCase('other user data', { userData: '05' }, 'POLICY_USER_DATA'),
  createCase(
    'user data, though the document has none',
    { userData: '04' },
    'POLICY_USER_DATA',
    documentWith({}),
  ),
  { ...createCase('a document as old as allowed', { maxAgeMs: 5000 }, null), at: AT + 5000 },
  { ...createCase('a document older than allowed', { maxAgeMs: 5000 }, 'POLICY_TOO_OLD'), at: AT + 5001 },
  { ...createCase('a document as far ahead as allowed', { maxAgeMs: 5000 }, null), at: AT - 5000 },
  { ...createCase('a document from the future', { maxAgeMs: 5000 }, 'POLICY_FROM_FUTURE'), at: AT - 5001 },
];
