/**
 * Reads the account of `make dev-sui`: the account of SUI_PRIVATE_KEY, or else of a development key that is
 * kept between starts.
 */
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { decodeSuiPrivateKey } from '@mysten/sui/cryptography';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { ConfigError } from 'sui-enclave/errors';
import { readRegularFile } from 'sui-enclave-cli/read_file';
import { findSender } from 'sui-enclave-cli/sui/signer';

export interface Account {
  readonly address: string;
  /** Path of the file with the account's key; undefined if the key comes from the environment. */
  readonly keyFile: string | undefined;
}

const NAME = 'dev-sui.key';

/**
 * Reads the account, and writes a key file if there is none. Only the file's owner can read it.
 *
 * @param folder that ends in a slash and need not exist
 * @throws ConfigError if the file can't be used; SuiCommandError: SIGNER
 */
export function developmentAccount(folder: URL, env: Readonly<Record<string, string | undefined>>): Account {
  if (env['SUI_PRIVATE_KEY']) return { address: findSender(env, {}), keyFile: undefined };
  const file = fileURLToPath(new URL(NAME, folder));
  return { address: (readKey(file) ?? writeKey(folder, file)).toSuiAddress(), keyFile: file };
}

function readKey(file: string): Ed25519Keypair | undefined {
  let text: string;
  try {
    text = readRegularFile(file).toString().trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new ConfigError(`${file} can't be read: ${(error as NodeJS.ErrnoException).code}`);
  }
  if ((statSync(file).mode & 0o077) !== 0) {
    throw new ConfigError(`others can read ${file}: chmod 600, or delete it for a new key`);
  }
  try {
    return Ed25519Keypair.fromSecretKey(decodeSuiPrivateKey(text).secretKey);
  } catch {
    // The error has no cause, since the message of the cause could contain the key.
    throw new ConfigError(
      `${file} does not hold an Ed25519 key of Sui (suiprivkey1…): delete it for a new one`,
    );
  }
}

function writeKey(folder: URL, file: string): Ed25519Keypair {
  const key = new Ed25519Keypair();
  mkdirSync(folder, { recursive: true });
  writeFileSync(file, `${key.getSecretKey()}\n`, { mode: 0o600, flag: 'wx' });
  return key;
}
