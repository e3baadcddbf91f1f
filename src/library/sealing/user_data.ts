/**
 * The `user_data` of an enclave's attestation documents: the key to which requests are sealed, the
 * application and its version. `README.md` specifies it.
 */
import { bcs } from '@mysten/bcs';
import { equalBytes } from '@noble/curves/utils.js';
import { text } from '../wire/bcs.ts';
import { SealingError } from './errors.ts';
import { ALGORITHM_IDS, KEY_SIZE } from './hpke.ts';

/** The user data that an enclave puts into its attestation documents. */
export interface UserData {
  /** The X25519 key to which requests are sealed, 32 bytes. */
  readonly sealingKey: Uint8Array;
  /**
   * The application's name: a letter, then letters, digits, `_` and `-` in lower case, 64 characters at most.
   */
  readonly application: string;
  /**
   * Version of the image, application and server together: 1 to 64 printable ASCII characters without spaces.
   */
  readonly version: string;
}

const FORMAT = 'sui-enclave/1';
/** The NSM's limit, in bytes. The structure has at most 182 bytes. */
const MAX_SIZE = 512;

const Structure = bcs.struct('UserData', {
  format: text,
  kem: bcs.u16(),
  kdf: bcs.u16(),
  aead: bcs.u16(),
  sealing_key: bcs.fixedArray(KEY_SIZE, bcs.u8()),
  application: text,
  version: text,
});

/** Encodes user data in BCS. @throws SealingError: SEALING_USER_DATA if name or version is invalid */
export function encodeUserData({ sealingKey, application, version }: UserData): Uint8Array {
  requireText(application, version);
  const fields = { format: FORMAT, ...ALGORITHM_IDS, sealing_key: [...sealingKey], application, version };
  return Structure.serialize(fields).toBytes();
}

/**
 * Decodes user data. Accepts only bytes that `encodeUserData` returns.
 *
 * @throws SealingError: SEALING_USER_DATA
 */
export function decodeUserData(bytes: Uint8Array): UserData {
  const { format, kem, kdf, aead, sealing_key, application, version } = parse(bytes);
  if (format !== FORMAT) throw unusable(`its format is not ${FORMAT}`);
  if (kem !== ALGORITHM_IDS.kem || kdf !== ALGORITHM_IDS.kdf || aead !== ALGORITHM_IDS.aead) {
    throw unusable('its algorithms of HPKE are not supported');
  }
  requireText(application, version);
  return { sealingKey: Uint8Array.from(sealing_key), application, version };
}

function parse(bytes: Uint8Array): typeof Structure.$inferType {
  const malformed = 'it is not the structure UserData in BCS';
  if (bytes.length > MAX_SIZE) throw unusable(malformed);
  let fields: typeof Structure.$inferType;
  let reencoded: Uint8Array;
  try {
    fields = Structure.parse(bytes);
    reencoded = Structure.serialize(fields).toBytes();
  } catch {
    throw unusable(malformed);
  }
  // BCS has one encoding of each value. The comparison refuses bytes after the structure, long forms of
  // lengths, and invalid UTF-8.
  if (!equalBytes(reencoded, bytes)) throw unusable(malformed);
  return fields;
}

function requireText(application: string, version: string): void {
  if (!/^[a-z][a-z0-9_-]{0,63}$/.test(application)) throw unusable('the name of the application is invalid');
  if (!/^[!-~]{1,64}$/.test(version)) throw unusable('the version is invalid');
}

function unusable(problem: string): SealingError {
  return new SealingError('SEALING_USER_DATA', `the user data does not describe an enclave: ${problem}`);
}
