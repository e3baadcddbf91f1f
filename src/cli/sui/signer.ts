import { homedir } from 'node:os';
import { join } from 'node:path';
import { decodeSuiPrivateKey, type Keypair } from '@mysten/sui/cryptography';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { Secp256k1Keypair } from '@mysten/sui/keypairs/secp256k1';
import { Secp256r1Keypair } from '@mysten/sui/keypairs/secp256r1';
import { checkAddress } from 'sui-enclave/sui/values';
import { readRegularFile } from '../read_file.ts';
import { SuiCommandError } from './errors.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Signature schemes by the flag byte that the Sui CLI writes before a key. */
const SCHEMES = {
  0: Ed25519Keypair,
  1: Secp256k1Keypair,
  2: Secp256r1Keypair,
} as const;

const NAMED_SCHEMES: Readonly<Record<string, 0 | 1 | 2>> = { ED25519: 0, Secp256k1: 1, Secp256r1: 2 };

interface SignerOptions {
  readonly address?: string | undefined;
  /** Path of the keystore. Default: the Sui CLI's keystore. */
  readonly keystore?: string | undefined;
}

/**
 * Returns the sender's address: the address of SUI_PRIVATE_KEY, or `address`.
 *
 * @throws SuiCommandError: NO_SENDER or SIGNER; SuiError
 */
export function findSender(env: Environment, { address }: SignerOptions): string {
  const optionAddress = address === undefined ? undefined : checkAddress('--address', address);
  const environmentAddress = readEnvironmentKey(env)?.toSuiAddress();
  if (
    environmentAddress !== undefined &&
    optionAddress !== undefined &&
    environmentAddress !== optionAddress
  ) {
    throw new SuiCommandError(
      'SIGNER',
      `SUI_PRIVATE_KEY is the key of ${environmentAddress}, not of --address ${optionAddress}: unset one of them`,
    );
  }
  const sender = environmentAddress ?? optionAddress;
  if (sender === undefined) {
    throw new SuiCommandError('NO_SENDER', 'no sender: set SUI_PRIVATE_KEY, or name the sender by --address');
  }
  return sender;
}

/**
 * Returns the key of the sender: SUI_PRIVATE_KEY, or the sender's key in the keystore.
 *
 * @throws as `findSender`
 */
export async function readSigner(env: Environment, options: SignerOptions): Promise<Keypair> {
  const sender = findSender(env, options);
  return readEnvironmentKey(env) ?? (await findKeystoreKey(keystorePath(env, options), sender));
}

function readEnvironmentKey({ SUI_PRIVATE_KEY: text }: Environment): Keypair | undefined {
  if (text === undefined || text === '') return undefined;
  try {
    const { scheme, secretKey } = decodeSuiPrivateKey(text.trim());
    return createKeypair(NAMED_SCHEMES[scheme], secretKey);
  } catch {
    // The cause may quote the key.
    throw new SuiCommandError(
      'SIGNER',
      'SUI_PRIVATE_KEY must be a private key of ed25519, secp256k1 or secp256r1, as `sui keytool export` prints it (suiprivkey1…)',
    );
  }
}

function createKeypair(flag: number | undefined, secretKey: Uint8Array): Keypair {
  const scheme = SCHEMES[flag as keyof typeof SCHEMES];
  if (scheme === undefined) throw new TypeError('unknown scheme');
  return scheme.fromSecretKey(secretKey);
}

function keystorePath(env: Environment, { keystore }: SignerOptions): string {
  return keystore ?? join(env['SUI_CONFIG_DIR'] || join(homedir(), '.sui/sui_config'), 'sui.keystore');
}

/**
 * Finds the key in the Sui CLI's keystore: a JSON array of keys in base64, each of which is the scheme's flag
 * byte and 32 bytes.
 */
async function findKeystoreKey(path: string, address: string): Promise<Keypair> {
  for (const keypair of readKeystore(path, await readKeystoreFile(path))) {
    if (keypair.toSuiAddress() === address) return keypair;
  }
  throw new SuiCommandError(
    'SIGNER',
    `the keystore ${path} has no key of ${address}: set SUI_PRIVATE_KEY, or use --unsigned and sign elsewhere`,
  );
}

async function readKeystoreFile(path: string): Promise<string> {
  try {
    return readRegularFile(path).toString();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new SuiCommandError(
      'SIGNER',
      `the keystore ${path} can't be read (${code}): name it by --keystore, or set SUI_PRIVATE_KEY`,
    );
  }
}

function readKeystore(path: string, text: string): Keypair[] {
  try {
    const entries: unknown = JSON.parse(text);
    if (!Array.isArray(entries)) throw new TypeError('not an array');
    return entries.map((entry: unknown) => {
      if (typeof entry !== 'string') throw new TypeError('not a string');
      const [flag, ...secretKey] = Buffer.from(entry, 'base64');
      return createKeypair(flag, Uint8Array.from(secretKey));
    });
  } catch {
    // The cause may quote the key.
    throw new SuiCommandError(
      'SIGNER',
      `${path} is not a keystore of the Sui CLI: a JSON array of keys in base64`,
    );
  }
}
