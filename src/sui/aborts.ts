/** Explains the errors of `move/enclave`, and of the framework functions that it relies on. */

/** By module and name: the numbers of `#[error]` constants contain a source line, and change with it. */
const BY_NAME: Readonly<Record<string, string>> = {
  'enclave::ENotOneTimeWitness':
    'new_cap needs the one-time witness that the init of a module receives, and was given another value',
  'enclave::EInvalidCap':
    'the capability is not the one that made this config: use the one that the config names',
  'enclave::EWrongConfig':
    'the enclave was registered under another config: use the one that the enclave names',
  'enclave::EInvalidPCRs':
    'the enclave runs another image than the config allows: deploy the image of the config, or update the PCRs',
  'enclave::EInvalidPublicKey':
    'the attestation document holds no ed25519 public key of 32 bytes: it is not from this server',
  'enclave::EAlreadyRegistered':
    'this key was already registered at this version, and perhaps destroyed: restart the enclave for a new key',
  'enclave::EInvalidConfigVersion':
    "the enclave is stale, since the config's PCRs were updated: register an enclave of the new image",
  'enclave::ENotStale':
    "the enclave is registered at the config's latest version: only the holder of the capability can destroy it",
  'enclave::ETooOld': 'the signed timestamp is too old: call the enclave again',
  'enclave::EInFuture':
    'the signed timestamp is more than a minute ahead of the chain: the clock of the enclave is wrong',
  'enclave::EInvalidSignature':
    'the enclave did not sign these values: pass each one unchanged, and check that contract and server use the same types',
  'pcrs::EPcrMissing': 'one of the registers PCR0, PCR1 and PCR2 is missing',
  'pcrs::EPcrLength': 'one of the registers is not 48 bytes long',
  'pcrs::EDebugPcrs': 'PCR0 is all zero: the enclave runs in debug mode, and its parent can read its memory',
};

/** By module and number: these are plain constants of the framework. */
const BY_NUMBER: Readonly<Record<string, string>> = {
  'nitro_attestation::0': 'this network does not verify attestation documents',
  'nitro_attestation::1': 'the attestation document can not be parsed',
  'nitro_attestation::2':
    'the attestation document does not verify: it expired (about 3 hours after it was made), or is not from AWS',
  'nitro_attestation::3': 'the attestation document lacks a register that the network requires',
};

/** The names that have an explanation, as `module::NAME`. */
export const EXPLAINED_ABORTS: readonly string[] = Object.keys(BY_NAME);

/** An abort as a node describes it. */
export interface Abort {
  readonly module?: string | undefined;
  /** The name of the error constant. */
  readonly name?: string | undefined;
  /** The message of the error constant. */
  readonly text?: string | undefined;
  readonly number: string;
}

/** The short form of an abort, and, if known, which check failed and what to do. */
export function explainAbort({ module = '?', name, text, number }: Abort): {
  abort: string;
  explanation: string;
} {
  const abort = `${module}::${name ?? number}`;
  const explanation = name === undefined ? BY_NUMBER[abort] : BY_NAME[abort];
  return { abort, explanation: explanation ?? text ?? 'a check of the contract failed' };
}
