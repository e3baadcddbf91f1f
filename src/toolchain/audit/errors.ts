/**
 * Findings of an audit, with one `code` for each kind of difference. A message contains at most one line of
 * an attacker's text.
 */
import { CodedError } from 'sui-enclave/errors';
import { EXIT } from 'sui-enclave-cli/command';

const { failed, notTried } = EXIT;

/** Exit code if nothing differed, but not everything was checked. */
export const NOT_FULLY_CHECKED = 3;

/** Exit code if nothing differed and everything was checked, but the image is for development. */
export const DEVELOPMENT_ONLY = 4;

/** Every code of an audit, with its exit code and its meaning. */
export const AUDIT_CODES = {
  CONFIG_RETIRED: [failed, 'The config has ended: contracts accept no enclave of it.'],
  SOURCE_MISSING: [failed, 'The config names no source, so there is nothing to compare the image with.'],
  SOURCE_REFUSED: [
    failed,
    'An audit does not fetch from the URL of the source: it is not https, has a user or a port, or is in a private network.',
  ],
  COMMIT_MISSING: [failed, 'The repository does not deliver the commit that the config names.'],
  COMMIT_NOT_ON_BRANCH: [
    failed,
    'No branch or tag of the repository contains the commit: it was replaced, or comes from a fork.',
  ],
  SOURCE_TOO_LARGE: [
    failed,
    'The commit has more bytes or files than an audit reads, or takes more time or memory to read or compile than an audit allows.',
  ],
  SOURCE_UNSAFE: [
    failed,
    'The commit has links, submodules or file names that no image is built from, or objects that do not match their hashes.',
  ],
  SOURCE_INVALID: [failed, 'The folder that the config names does not hold an application.'],
  FRAMEWORK_VERSION: [
    failed,
    "The image was built with a version or state of the framework that differs from this program's. The message says how to get the right program.",
  ],
  FRAMEWORK_UNKNOWN: [
    failed,
    "The application's lock file names a package of the framework whose digest this program does not know.",
  ],
  LOCK_UNTRUSTED: [
    failed,
    "The application's lock file has an entry that is not a package of the registry with a SHA-512.",
  ],
  PACKAGE_CHANGED: [failed, "The registry's copy of a package does not match the SHA-512 in the lock file."],
  BUILD_FAILED: [failed, 'The sources of the commit do not build into an image.'],
  REGISTERS_DIFFER: [
    failed,
    'The sources build into an image with other registers: the register of the boot system also differs.',
  ],
  APPLICATION_DIFFERS: [
    failed,
    'The sources build into the same boot system, but another application: its code or its settings differ.',
  ],
  MEASUREMENTS_DIFFER: [
    failed,
    'The sources build into the same registers, but not into the record of the build that the config names: the image was built from another commit.',
  ],
  ENCLAVE_DEBUG: [failed, 'An enclave runs in debug mode: its parent can read its memory.'],
  ROOT_UNKNOWN: [
    failed,
    "An enclave's certificates have a root other than AWS's, as an emulated enclave's do.",
  ],
  ENCLAVE_REGISTERS: [failed, "An enclave attests registers that differ from the config's."],
  ATTESTATION_INVALID: [failed, "An enclave's attestation document is not valid."],
  KEY_DIFFERS: [failed, 'The server at a URL says that it signs with a key other than the attested one.'],
  KEY_NOT_REGISTERED: [failed, 'The attested key of an enclave is not registered under the config.'],
  ENCLAVE_STALE: [
    failed,
    'An enclave was registered under an older version of the config, or its key is too old.',
  ],
  BYTECODE_DIFFERS: [
    failed,
    'A package on chain differs from the compiled sources, or its `enclave` is not a release.',
  ],
  BYTECODE_UNKNOWN: [
    failed,
    "The sources have no Move module of the application's name, or two of them, or one that does not compile.",
  ],
  RELEASE_REFUSED: [
    failed,
    'The release is not signed as it must be, or its log lacks or withdraws it: the message has the code of the cause.',
  ],
  RELEASE_DIFFERS: [
    failed,
    'The release is of an image, a commit or a folder that the config does not name.',
  ],
  NOT_FULLY_CHECKED: [
    NOT_FULLY_CHECKED,
    'Nothing differs, but not everything was checked: the first line says what.',
  ],
  DEVELOPMENT_IMAGE: [
    DEVELOPMENT_ONLY,
    'On a development network, the config allows an emulated enclave. Everything else was checked, and agrees, but this proves nothing.',
  ],
  START_UNKNOWN: [notTried, 'No config was found for the id, digest or URL that was named.'],
  SEVERAL_CONFIGS: [
    notTried,
    'Several configs were found for the id, digest or URL that was named. The message lists them: name one of these.',
  ],
  NO_GIT: [notTried, 'git is not installed, or too old.'],
} as const;

export type AuditCode = keyof typeof AUDIT_CODES;

/** A difference, or the reason why something was not checked. */
export class AuditError extends CodedError<AuditCode> {
  get exit(): number {
    return AUDIT_CODES[this.code][0];
  }
}
