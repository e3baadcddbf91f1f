/**
 * Checks RFC 9180's test vector for the suite, with the functions and algorithms that pages and the server
 * use.
 */
import type { Key } from 'hpke';
import { describe, expect, test, vi } from 'vitest';
import { openWith, type Suite, sealTo, webCryptoSuite } from '../../../../src/library/sealing/hpke.ts';
import { NODE_SUITE, SealingKey } from '../../../../src/server/sealing/sealing_key.ts';
import { findCode, hex, suiteWith, toHex, VECTORS } from './support.ts';

const { hpke } = VECTORS;
const bound = { info: hex(hpke.info), aad: hex(hpke.aad) };
const sealed = { ...bound, enc: hex(hpke.enc), ciphertext: hex(hpke.ct) };

/** Imports the recipient's key. It is extractable, since Node 22 derives the public key only of such keys. */
const importWebCryptoKey = () => webCryptoSuite().hpke.DeserializePrivateKey(hex(hpke.skRm), true);

const RECIPIENTS: readonly [string, Suite, () => Promise<Key> | Key][] = [
  ['the server', NODE_SUITE, () => SealingKey.of(hex(hpke.skRm)).key],
  ['Web Crypto', webCryptoSuite(), importWebCryptoKey],
];

describe.each(RECIPIENTS)('%s as the recipient', (_, suite, createKey) => {
  test("opens the vector's ciphertext and exports its secrets", async () => {
    const { plaintext, exportSecret } = await openWith(await createKey(), sealed, suite);
    expect(toHex(plaintext)).toBe(hpke.pt);
    for (const { exporter_context, L, exported_value } of hpke.exports) {
      expect(toHex(await exportSecret(hex(exporter_context), L))).toBe(exported_value);
    }
  });

  test.each(['info', 'aad', 'enc', 'ciphertext'] as const)(
    'refuses the message with another %s',
    async (part) => {
      const changedPart = sealed[part].slice();
      changedPart[3] = (changedPart[3] as number) ^ 1;
      expect(await findCode(openWith(await createKey(), { ...sealed, [part]: changedPart }, suite))).toBe(
        'SEALED_ALTERED',
      );
    },
  );

  // With these keys, the shared secret would be zero for any private key (RFC 7748, section 6.1).
  test.each(['00', '01', 'ec', 'ed', 'ee'])(
    'refuses an encapsulated key of low order: %s…',
    async (first) => {
      const ends = Number.parseInt(first, 16) > 1 ? `${'ff'.repeat(30)}7f` : '00'.repeat(31);
      const enc = hex(first + ends);
      expect(await findCode(openWith(await createKey(), { ...sealed, enc }, suite))).toBe('SEALED_ALTERED');
    },
  );

  test.each([0, 15, 44])('refuses the first %d bytes of the ciphertext', async (length) => {
    const ciphertext = sealed.ciphertext.subarray(0, length);
    expect(await findCode(openWith(await createKey(), { ...sealed, ciphertext }, suite))).toBe(
      'SEALED_ALTERED',
    );
  });
});

describe('the sender', () => {
  test("seals the vector's plaintext to its ciphertext, and exports its secrets", async () => {
    const suite = suiteWith(hex(hpke.skEm), hex(hpke.enc));
    const plaintext = hex(hpke.pt);
    const { enc, ciphertext, exportSecret } = await sealTo(hex(hpke.pkRm), { ...bound, plaintext }, suite);
    expect([toHex(enc), toHex(ciphertext)]).toEqual([hpke.enc, hpke.ct]);
    for (const { exporter_context, L, exported_value } of hpke.exports) {
      expect(toHex(await exportSecret(hex(exporter_context), L))).toBe(exported_value);
    }
  });

  test('uses another ephemeral key each time', async () => {
    const message = { ...bound, plaintext: hex(hpke.pt) };
    const messages = await Promise.all(
      [1, 2, 3].map(() => sealTo(hex(hpke.pkRm), message, webCryptoSuite())),
    );
    expect(new Set(messages.map(({ enc }) => toHex(enc))).size).toBe(3);
  });

  test.each([
    ['on a page without Web Crypto', { getRandomValues: crypto.getRandomValues.bind(crypto) }],
    [
      'in a browser without X25519',
      {
        subtle: {
          importKey: () => Promise.reject(new DOMException('unknown algorithm', 'NotSupportedError')),
        },
      },
    ],
  ])('names the missing algorithm %s', async (_, crypto) => {
    vi.stubGlobal('crypto', crypto);
    try {
      const message = { ...bound, plaintext: hex(hpke.pt) };
      expect(await findCode(sealTo(hex(hpke.pkRm), message, webCryptoSuite()))).toBe('SEALING_UNSUPPORTED');
    } finally {
      vi.unstubAllGlobals();
    }
  });
});

describe("the server's HKDF", () => {
  test("returns the same as Web Crypto's, for every length that HPKE may request", async () => {
    const key = SealingKey.of(hex(hpke.skRm)).key;
    const { exportSecret } = await openWith(key, sealed, NODE_SUITE);
    const webContext = await openWith(await importWebCryptoKey(), sealed, webCryptoSuite());
    for (const size of [1, 31, 32, 33, 64, 65, 1000, 255 * 32]) {
      const context = new Uint8Array(size % 97).fill(size);
      expect(toHex(await exportSecret(context, size))).toBe(
        toHex(await webContext.exportSecret(context, size)),
      );
    }
  });
});
