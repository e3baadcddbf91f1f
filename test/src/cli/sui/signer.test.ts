import { rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeSuiPrivateKey, encodeSuiPrivateKey, type Keypair } from '@mysten/sui/cryptography';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Secp256k1Keypair } from '@mysten/sui/keypairs/secp256k1';
import { Secp256r1Keypair } from '@mysten/sui/keypairs/secp256r1';
import { afterAll, describe, expect, test } from 'vitest';
import { findSender, readSigner } from '../../../../src/cli/sui/signer.ts';

const FILE = join(tmpdir(), `sui.keystore.${process.pid}`);
afterAll(() => rmSync(FILE, { force: true }));

const keys: Record<string, Keypair> = {
  ed25519: new Ed25519Keypair(),
  secp256k1: new Secp256k1Keypair(),
  secp256r1: new Secp256r1Keypair(),
};
const FLAGS = { ed25519: 0, secp256k1: 1, secp256r1: 2 };
const signerKey = keys['ed25519'] as Keypair;
const otherKey = new Ed25519Keypair();

/** Encodes a keystore entry of the Sui CLI: base64 of the scheme's flag and the key. */
function keystoreEntry(flag: number, key: Keypair): string {
  return Buffer.concat([Buffer.of(flag), decodeSuiPrivateKey(key.getSecretKey()).secretKey]).toString(
    'base64',
  );
}

function writeKeystore(content: unknown): void {
  writeFileSync(FILE, typeof content === 'string' ? content : JSON.stringify(content));
}

describe('SUI_PRIVATE_KEY', () => {
  test.each(Object.keys(keys))('of %s signs for its address', async (scheme) => {
    const key = keys[scheme] as Keypair;
    const env = { SUI_PRIVATE_KEY: `${key.getSecretKey()}\n` };
    expect(findSender(env, {})).toBe(key.toSuiAddress());
    expect((await readSigner(env, {})).toSuiAddress()).toBe(key.toSuiAddress());
    expect(findSender(env, { address: key.toSuiAddress() })).toBe(key.toSuiAddress());
  });

  test('of an address other than --address is refused', () => {
    const env = { SUI_PRIVATE_KEY: signerKey.getSecretKey() };
    expect(() => findSender(env, { address: otherKey.toSuiAddress() })).toThrow(
      `SUI_PRIVATE_KEY is the key of ${signerKey.toSuiAddress()}, not of --address ${otherKey.toSuiAddress()}`,
    );
  });

  const secret = signerKey.getSecretKey();
  test.each([
    ['that is cut', secret.slice(0, -1)],
    ['with one character changed', secret.replace(/.$/, (last) => (last === 'q' ? 'p' : 'q'))],
    ['in hexadecimal', Buffer.from(decodeSuiPrivateKey(secret).secretKey).toString('hex')],
    ['of a scheme that has no private key', encodeSuiPrivateKey(new Uint8Array(32).fill(7), 'ZkLogin')],
  ])('%s is refused, and does not appear in the error', (_, text) => {
    let error: Error | undefined;
    try {
      findSender({ SUI_PRIVATE_KEY: text }, {});
    } catch (thrown) {
      error = thrown as Error;
    }
    expect(error).toMatchObject({ code: 'SIGNER', message: expect.stringContaining('suiprivkey1') });
    const printed = `${error?.message}${error?.stack}${JSON.stringify(error)}${String(error?.cause)}`;
    expect(printed).not.toContain(text.slice(20, 40));
  });
});

describe('the keystore', () => {
  test.each(Object.entries(FLAGS))('has the %s key of --address', async (scheme, flag) => {
    const key = keys[scheme] as Keypair;
    writeKeystore([keystoreEntry(0, otherKey), keystoreEntry(flag, key)]);
    const signer = await readSigner({}, { address: key.toSuiAddress(), keystore: FILE });
    expect(signer.toSuiAddress()).toBe(key.toSuiAddress());
  });

  test('is in SUI_CONFIG_DIR by default', async () => {
    const address = signerKey.toSuiAddress();
    await expect(readSigner({ SUI_CONFIG_DIR: '/nowhere' }, { address })).rejects.toMatchObject({
      code: 'SIGNER',
      message: expect.stringContaining('/nowhere/sui.keystore'),
    });
  });

  test('without the key of --address is refused, and the error names the alternatives', async () => {
    writeKeystore([keystoreEntry(0, otherKey)]);
    await expect(readSigner({}, { address: signerKey.toSuiAddress(), keystore: FILE })).rejects.toMatchObject(
      {
        code: 'SIGNER',
        message: expect.stringContaining('--unsigned'),
      },
    );
  });

  const entry = keystoreEntry(0, signerKey);
  test.each([
    ['not JSON', `[${entry}`],
    ['not an array', JSON.stringify({ key: entry })],
    ['an entry of another length', JSON.stringify([entry.slice(0, -4)])],
    ['an entry of an unknown scheme', JSON.stringify([keystoreEntry(9, signerKey)])],
    ['an entry that is not a string', JSON.stringify([[entry]])],
  ])('that is malformed (%s) is refused, and not repeated in the error', async (_, content) => {
    writeKeystore(content);
    const error: Error = await readSigner({}, { address: signerKey.toSuiAddress(), keystore: FILE }).then(
      () => new Error('not refused'),
      (thrown) => thrown,
    );
    expect(error).toMatchObject({ code: 'SIGNER', message: expect.stringContaining('not a keystore') });
    expect(`${error.message}${error.stack}${String(error.cause)}`).not.toContain(entry.slice(4, 20));
  });
});

test('findSender fails without a key and --address', () => {
  expect(() => findSender({ SUI_PRIVATE_KEY: '' }, {})).toThrow('set SUI_PRIVATE_KEY, or name the sender');
  expect(() => findSender({}, { address: '0x6' })).toThrow('0x and 64');
});
