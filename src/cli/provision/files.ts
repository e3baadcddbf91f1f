/** The files of a provisioner: secrets, and the key that signs them. */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import type { ProvisionerKey } from 'sui-enclave/sealing/secrets';
import type { Environment } from '../command.ts';
import { readRegularFile } from '../read_file.ts';
import { type ProvisionFileCode, ProvisionFileError } from './errors.ts';

const MAX_BYTES = 1024 * 1024;
/** Beginning of an ed25519 private key in PKCS #8, before its 32 bytes: RFC 8410, section 7. */
const PKCS8_PREFIX = Buffer.from('302e020100300506032b657004220420', 'hex');

/**
 * Reads a file that only its owner may read. The group's bits must be 0, except in the folder that systemd
 * makes for a service's credentials (systemd.exec(5), LoadCredential=). There, the bits are the mask of an
 * access control list, and may allow reading.
 */
function readPrivateFile(path: string, env: Environment, code: ProvisionFileCode): Buffer {
  // The message does not repeat the path: the path may be a secret given by mistake, and would be logged.
  if (/^\s*[{"]|PRIVATE KEY|^[0-9a-f]{64}$/i.test(path)) {
    throw new ProvisionFileError(
      code,
      'give the name of a file, not its content: process lists show arguments',
    );
  }
  try {
    return readRegularFile(path, ({ mode, size }) => {
      const isCredential = resolve(dirname(path)) === env['CREDENTIALS_DIRECTORY'];
      if ((mode & (isCredential ? 0o037 : 0o077)) !== 0) {
        throw new ProvisionFileError(code, `${path} is open to other users: chmod 600 ${path}`);
      }
      if (size > MAX_BYTES) throw new ProvisionFileError(code, `${path} is larger than 1 MiB`);
    });
  } catch (error) {
    if (error instanceof ProvisionFileError) throw error;
    throw new ProvisionFileError(code, `${path} can't be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** @throws ProvisionFileError: SECRETS_FILE */
export function readSecretsFile(path: string, env: Environment): Record<string, string> {
  return parseSecrets(readPrivateFile(path, env, 'SECRETS_FILE').toString());
}

/**
 * Parses a JSON object that has a non-empty string for each name.
 *
 * @throws ProvisionFileError: SECRETS_FILE
 */
export function parseSecrets(text: string): Record<string, string> {
  let data: unknown;
  try {
    data = JSON.parse(text);
  } catch {
    // The parser's own message quotes the secrets.
    throw new ProvisionFileError('SECRETS_FILE', 'the secrets are not JSON');
  }
  const isObject = typeof data === 'object' && data !== null && !Array.isArray(data);
  const entries = isObject ? Object.entries(data as object) : [];
  const isUsable = ([name, value]: [string, unknown]) =>
    /^[A-Z][A-Z0-9_]{0,63}$/.test(name) && typeof value === 'string' && value !== '';
  if (entries.length === 0 || !entries.every(isUsable)) {
    const message =
      'the secrets must be one JSON object with the upper-case names of app.yaml, and a non-empty string for each';
    throw new ProvisionFileError('SECRETS_FILE', message);
  }
  return data as Record<string, string>;
}

/**
 * Returns an ed25519 key from a file with PEM, as `openssl genpkey -algorithm ed25519` writes it, or with 64
 * hexadecimal digits.
 *
 * @throws ProvisionFileError: PROVISIONER_KEY
 */
export function readProvisionerKey(path: string, env: Environment): ProvisionerKey {
  const bytes = readPrivateFile(path, env, 'PROVISIONER_KEY');
  const privateKey = parseKey(bytes.toString('latin1').trim());
  bytes.fill(0);
  if (privateKey?.asymmetricKeyType !== 'ed25519') {
    const message = `${path} must have an ed25519 private key, as openssl genpkey -algorithm ed25519 writes it, or in 64 hexadecimal digits`;
    throw new ProvisionFileError('PROVISIONER_KEY', message);
  }
  const { x } = createPublicKey(privateKey).export({ format: 'jwk' });
  return {
    publicKey: Uint8Array.from(Buffer.from(x as string, 'base64url')),
    sign: (message) => sign(null, message, privateKey),
  };
}

function parseKey(text: string): KeyObject | undefined {
  try {
    if (!/^[0-9a-f]{64}$/i.test(text)) return createPrivateKey(text);
    const key = Buffer.concat([PKCS8_PREFIX, Buffer.from(text, 'hex')]);
    return createPrivateKey({ key, format: 'der', type: 'pkcs8' });
  } catch {
    // OpenSSL's own message may say something about the key.
    return undefined;
  }
}
