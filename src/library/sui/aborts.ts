/**
 * Explains the errors of `move/enclave` and `move/feed`, and of the framework functions that they rely on.
 */

/** Codes and explanations of errors by module and name. Neither name nor code ever changes. */
const ERRORS: Readonly<Record<string, readonly [code: number, explanation: string]>> = {
  'enclave::ENotOneTimeWitness': [
    1,
    'new_cap needs the one-time witness that the init of a module receives, but was given another value',
  ],
  'enclave::EInvalidCap': [
    2,
    'the capability is not the one that made this config: use the one that the config names',
  ],
  'enclave::EWrongConfig': [
    3,
    'the enclave or registrar belongs to another config: use the one that it names',
  ],
  'enclave::EInvalidPCRs': [
    4,
    'the enclave runs an image that the config does not allow: deploy the image of the config, or update the PCRs',
  ],
  'enclave::EInvalidPublicKey': [
    5,
    'the attestation document holds no ed25519 public key of 32 bytes: it is not from this server',
  ],
  'enclave::EAlreadyRegistered': [
    6,
    'this key was already registered at this version, and perhaps destroyed: restart the enclave for a new key',
  ],
  'enclave::EInvalidConfigVersion': [
    7,
    "the enclave is stale, since the config's PCRs were updated: register an enclave of the new image",
  ],
  'enclave::ENotStale': [
    8,
    "contracts accept the enclave's version of the config: only the holder of the capability can destroy it",
  ],
  'enclave::ETooOld': [9, 'the signed timestamp is too old: call the enclave again'],
  'enclave::EInFuture': [
    10,
    'the signed timestamp is more than a minute ahead of the chain: the clock of the enclave is wrong',
  ],
  'enclave::EInvalidSignature': [
    11,
    'the enclave did not sign these values: pass each one unchanged, and check that contract and server use the same types',
  ],
  'enclave::ENotPublisher': [
    12,
    'the Publisher is not of the module that defines the type of the application: use the one that this module claimed',
  ],
  'enclave::ERetired': [
    13,
    'the config is permanently retired: use the config that the application uses now',
  ],
  'enclave::ENotRegistrar': [
    14,
    'the registrar was revoked, or is of another config: ask the holder of the capability for a new one',
  ],
  'enclave::EKeyTooOld': [
    15,
    "the enclave's key is older than the config allows: restart the enclave, and register its new key",
  ],
  'enclave::EInvalidKeyAge': [16, 'the maximum key age must be more than 0 ms: to allow any age, pass none'],
  'enclave::EInvalidOverlap': [
    17,
    'an overlap must end in the future, and at most 24 hours from now by the clock of the chain',
  ],
  'enclave::EOverlapping': [
    18,
    'the config has an overlap already: end it first, or allow the image immediately, which makes enclaves of both older versions stale',
  ],
  'enclave::ENoOverlap': [19, 'the config has no overlap to end'],
  'enclave::EWrongPackageVersion': [
    20,
    'the config is of another version of the package: call that version, or have the admin migrate the config to this one',
  ],
  'enclave::ENotOlder': [
    21,
    'the config is of this version of the package already, or of a newer one: there is nothing to migrate',
  ],
  'enclave::ENotOpen': [22, 'the config is not open: register with its capability or a registrar'],
  'enclave::EDocumentTooOld': [
    23,
    'without a capability, only an attestation of the last 10 minutes can be registered: request a new one from the enclave',
  ],
  'pcrs::EPcrMissing': [1, 'one of the registers PCR0, PCR1 and PCR2 is missing'],
  'pcrs::EPcrLength': [2, 'one of the registers is not 48 bytes long'],
  'pcrs::EDebugPcrs': [
    3,
    'PCR0 is all zero: the enclave runs in debug mode, and its parent can read its memory',
  ],
  'source::ESourceUrl': [1, "the URL of the image's repository must be 1 to 200 printable ASCII characters"],
  'source::ECommitLength': [2, "the commit of the image's source must be 20 or 32 bytes"],
  'source::EFolder': [3, "the application's folder must be 0 to 100 printable ASCII characters"],
  'source::EFrameworkVersion': [4, 'the version of the framework must be 1 to 50 printable ASCII characters'],
  'source::EMeasurementsLength': [5, 'the digest of measurements.json must be 32 bytes (SHA-256)'],
  'once::EAlreadyClaimed': [
    1,
    'an answer with this nonce was claimed before: its effect has happened already',
  ],
  'once::ENonceLength': [2, 'the nonce must have 16 to 64 bytes: have the server sign such a nonce'],
  'once::ENotClaimed': [3, 'there is no claim of this nonce: it was never made, or was removed already'],
  'once::ENotExpired': [
    4,
    'the claim is kept while its answer could be submitted again: wait until the answer is too old',
  ],
  'feed::EInvalidSymbol': [1, 'the symbol of a feed must be 1 to 32 printable ASCII characters'],
  'feed::EInvalidDecimals': [2, 'a feed has at most 18 decimals'],
  'feed::EInvalidBounds': [3, 'the lowest value of a feed must be at least 1, and at most the highest'],
  'feed::EInvalidTimes': [
    4,
    "a feed's minimum interval must be at most its heartbeat, which must be less than its maximum age",
  ],
  'feed::EInvalidMove': [5, 'the least move of a feed must be at most 10000 basis points'],
  'feed::EInvalidConfigs': [6, 'a feed must list 1 to 16 configs, each once'],
  'feed::EInvalidThreshold': [7, 'the threshold of a feed must be from 1 to the number of its configs'],
  'feed::EWrongFeed': [8, 'the round or check was begun with another feed: pass that feed to every call'],
  'feed::EConfigNotListed': [
    9,
    "the feed's rules do not list this config: have an enclave of a listed config sign",
  ],
  'feed::EConfigRepeated': [10, 'the round has a value of this config already: add one for each config'],
  'feed::EOutOfBounds': [11, 'the value is outside of the bounds that the rules of the feed set'],
  'feed::EAheadOfClock': [
    12,
    'the time of the value is more than 10 seconds ahead of the chain: the clock of the enclave is wrong',
  ],
  'feed::ETooFewValues': [13, "the update has values of fewer configs than the feed's threshold: add more"],
  'feed::ENotNewer': [
    14,
    'the feed has a value of this time or a later one: another writer was faster, or the value is a repetition',
  ],
  'feed::ETooSoon': [
    15,
    'the minimum interval since the last value of the feed is not over: wait, and call the enclaves again',
  ],
  'feed::ENotDue': [
    16,
    'the value has moved by less than the bound, and the heartbeat is not due: there is nothing to write',
  ],
  'feed::ENoValue': [17, 'the feed has no value yet: update it first'],
  'feed::ETooOld': [18, 'the value of the feed is older than the maximum age: update the feed first'],
  'feed::EConfigRetired': [19, 'a value of the last update is of a config that is retired: do not use it'],
  'feed::EVersionNotAccepted': [
    20,
    'a value of the last update is of an image that is no longer accepted: do not use it, and update the feed by new enclaves',
  ],
  'feed::EConfigNotChecked': [
    21,
    'a config of the last update was not checked: call check_config with every config that the feed lists',
  ],
  'feed::EUpdatedSince': [22, 'the feed was updated after the check began: begin the check after the update'],
};

/** Explanations of plain constants of the framework, by module and number. */
const BY_NUMBER: Readonly<Record<string, string>> = {
  'nitro_attestation::0': 'this network does not verify attestation documents',
  'nitro_attestation::1': 'the attestation document can not be parsed',
  'nitro_attestation::2':
    'the attestation document does not verify: it expired (about 3 hours after it was made), or is not from AWS',
  'nitro_attestation::3': 'the attestation document lacks a register that the network requires',
};

/** The codes of the errors that have an explanation, by `module::NAME`. */
export const ABORT_CODES: Readonly<Record<string, number>> = Object.fromEntries(
  Object.entries(ERRORS).map(([abort, [code]]) => [abort, code]),
);

/** An abort as a node describes it. */
export interface Abort {
  readonly module?: string | undefined;
  /** The code of the error constant, if the node gives it. Default: the code that `number` contains. */
  readonly code?: number | undefined;
  /** The name of the error constant. */
  readonly name?: string | undefined;
  /** The message of the error constant. */
  readonly text?: string | undefined;
  /**
   * The number that the transaction aborted with: the value of the constant. If the constant has a name, the
   * number has no meaning.
   */
  readonly number: string;
}

/** Returns the short form of an abort, and an explanation: if known, which check failed and what to do. */
export function explainAbort(abort: Abort): { abort: string; explanation: string } {
  const abortName = findName(abort);
  const short = `${abort.module ?? '?'}::${abortName ?? abort.number}`;
  const explanation = abortName === undefined ? BY_NUMBER[short] : ERRORS[short]?.[1];
  return { abort: short, explanation: explanation ?? abort.text ?? 'a check of the contract failed' };
}

/**
 * Returns the error's name, by its code if there is one. If the node also gives another name, the abort is
 * from another module of the same name, and the node's name counts.
 */
function findName({ module, name, number, code = readCode(number) }: Abort): string | undefined {
  if (code === undefined) return name;
  const entry = Object.entries(ERRORS).find(
    ([abort, [abortCode]]) => abortCode === code && abort.startsWith(`${module}::`),
  );
  const moduleName = entry?.[0].split('::')[1];
  return moduleName !== undefined && (name === undefined || name === moduleName)
    ? moduleName
    : (name ?? String(code));
}

/**
 * Returns the code of an `#[error(code = …)]` constant in the number that a function aborted with. The number
 * is an `ErrorBitset` of Move: four bits of version, four bits that are 0, then the code. If the code is 255,
 * or the version is older, the constant has no code.
 */
function readCode(number: string): number | undefined {
  if (!/^\d{1,20}$/.test(number)) return undefined;
  const bits = BigInt(number);
  const code = Number((bits >> 48n) & 0xffn);
  return bits >> 56n === 0xc0n && code !== 0xff ? code : undefined;
}
