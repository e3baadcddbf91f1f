import { readFileSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import type { Readable } from 'node:stream';
import { ApplicationMistake, ConfigError } from 'sui-enclave/errors';
import type { Logger } from 'sui-enclave-service/log';
import type { Env } from 'sui-enclave-service/settings';
import { isInstance, messageOf } from 'sui-enclave-service/thrown';
import * as v from 'valibot';
import { EnclaveServerError } from '../enclave_errors.ts';

/** The maximum size of a hand-off, which is one line of JSON, in bytes. */
const MAX_HANDOFF_BYTES = 64 * 1024;

/** The application's secrets have not arrived yet. */
export class SecretsMissing extends EnclaveServerError {
  readonly missing: readonly string[];
  /** Reason why the last hand-off was refused. */
  readonly refused: string | undefined;

  constructor(missing: readonly string[], refused?: string) {
    super('SECRETS_MISSING', `secrets have not been provided yet: ${missing.join(', ')}`);
    this.missing = missing;
    this.refused = refused;
  }

  override get details() {
    return { missing: this.missing, refused: this.refused };
  }
}

/**
 * An application's own validation of its secrets.
 *
 * @throws ConfigError that describes the problem without repeating a value
 */
export type SecretsCheck = (values: Readonly<Record<string, string>>) => void;

/**
 * The secrets that the application names in its app.yaml. They may arrive after the start. The first complete
 * set is final, so that a secret can't be replaced at run time.
 */
export class Secrets {
  readonly #names: readonly string[];
  #values: ReadonlyMap<string, string> | undefined;
  #check: SecretsCheck = () => {};
  #completed: () => void = () => {};
  /** Reason why the last hand-off was refused: the message of a ConfigError, which never contains a value. */
  refused: string | undefined;

  constructor(names: readonly string[]) {
    this.#names = names;
    if (names.length === 0) this.#values = new Map();
  }

  /** The names of the missing secrets. */
  missing(): readonly string[] {
    return this.#values ? [] : this.#names;
  }

  /**
   * Accepts exactly the declared names, each with a non-empty string.
   *
   * @throws ConfigError that describes the problem without repeating a value
   */
  provide(values: unknown): void {
    if (this.#values)
      throw new ConfigError('the enclave has its secrets already: the first valid set is final');
    const entries = Object.fromEntries(this.#names.map((name) => [name, v.pipe(v.string(), v.minLength(1))]));
    const parsed = v.safeParse(v.strictObject(entries), values);
    if (!parsed.success) {
      throw new ConfigError(
        `secrets must be one JSON object with exactly these properties, each a non-empty string: ${this.#names.join(', ')}. For example ${formatExample(this.#names)}`,
      );
    }
    this.#check(parsed.output);
    this.#values = new Map(Object.entries(parsed.output));
    this.#completed();
  }

  /** Calls `completed` when a set is accepted after this call. */
  whenComplete(completed: () => void): void {
    this.#completed = completed;
  }

  /** Requires that further sets of secrets, and the accepted one, pass this check. @throws ConfigError */
  checkWith(check: SecretsCheck): void {
    if (this.#values) check(Object.fromEntries(this.#values));
    this.#check = check;
  }

  /** Returns the text without the values of the secrets, in their plain form and as encoded in a URL. */
  redact(text: string): string {
    const forms = [...(this.#values?.values() ?? [])].flatMap((value) => [
      value,
      encodeURIComponent(value.toWellFormed()),
    ]);
    // One secret may be the beginning of another.
    forms.sort((left, right) => right.length - left.length);
    return forms.reduce((redacted, form) => redacted.replaceAll(form, '[Redacted]'), text);
  }

  /** @throws SecretsMissing until the hand-off; ApplicationMistake if app.yaml does not name the secret */
  get(name: string): string {
    if (!this.#names.includes(name))
      throw new ApplicationMistake(`${name} is not among the secrets of app.yaml`);
    const value = this.#values?.get(name);
    if (value === undefined) throw new SecretsMissing(this.missing(), this.refused);
    return value;
  }
}

/** Requires that none of these variables is set. @throws ConfigError that names the first that is set */
export function requireNotInEnv(names: readonly string[], env: Env): void {
  const name = names.find((candidate) => env[candidate] !== undefined);
  if (name === undefined) return;
  throw new ConfigError(
    `${name} must not be in the environment, where shells and process lists show it: use ${name}_FILE or SECRETS_FD`,
  );
}

/**
 * Reads each secret from the variable with its name, or from the file that `<name>_FILE` names.
 *
 * @param notInEnv secrets that must come from a file
 * @throws ConfigError that names each missing variable
 */
export function secretsFromEnv(
  names: readonly string[],
  env: Env,
  notInEnv: readonly string[] = [],
): Secrets {
  const missing = names.filter((name) => !env[name] && env[`${name}_FILE`] === undefined);
  if (missing.length > 0) {
    const list = (secretNames: readonly string[], ending = '') =>
      secretNames.map((name) => name + ending).join(', ');
    const inAnyPlace = missing.filter((name) => !notInEnv.includes(name));
    const inFileOnly = missing.filter((name) => notInEnv.includes(name));
    const instructions = [
      ...(inAnyPlace.length > 0
        ? [
            `${list(inAnyPlace)} must be set in the environment, or ${list(inAnyPlace, '_FILE')} must name a file with it`,
          ]
        : []),
      ...(inFileOnly.length > 0
        ? [`${list(inFileOnly, '_FILE')} must name a file with ${list(inFileOnly)}`]
        : []),
    ];
    throw new ConfigError(`${instructions.join('; ')}: the application can't answer without it`);
  }
  const secrets = new Secrets(names);
  if (names.length > 0) secrets.provide(Object.fromEntries(names.map((name) => [name, fromEnv(name, env)])));
  return secrets;
}

function fromEnv(name: string, env: Env): string | undefined {
  const path = env[`${name}_FILE`];
  if (path === undefined) return env[name];
  if (env[name] !== undefined) throw new ConfigError(`${name} and ${name}_FILE are both set: keep one`);
  if (!isAbsolute(path)) throw new ConfigError(`${name}_FILE must be an absolute path`);
  try {
    const bytes = readFileSync(path);
    if (bytes.length <= MAX_HANDOFF_BYTES) {
      // Editors and shells end a file with a newline that is not part of the secret.
      return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '');
    }
  } catch {
    // The file is missing, unreadable or not UTF-8. The error below covers all three.
  }
  throw new ConfigError(`${name}_FILE must name a readable text file of at most ${MAX_HANDOFF_BYTES} bytes`);
}

/** Provides the secrets of a hand-off. @throws ConfigError, EnclaveServerError; no message repeats a value */
export type HandOff = (json: unknown) => Promise<void> | void;

/**
 * Reads hand-offs from the process that started the server, one JSON object per line, until one is valid.
 * Logs an invalid hand-off without its content, and waits for the next.
 *
 * @param handOff receives a hand-off. Default: accepts a plain set
 * @returns when the secrets are complete, or the source has ended without them
 */
export async function receiveSecrets(
  secrets: Secrets,
  source: Readable,
  log: Logger,
  handOff: HandOff = (json) => secrets.provide(json),
): Promise<void> {
  const tryLine = (pieces: readonly Buffer[], size: number) =>
    tryHandOff({ secrets, log, handOff }, pieces, size);
  let line: Buffer[] = [];
  let bytes = 0;
  try {
    for await (let chunk of source as AsyncIterable<Buffer>) {
      for (let end = chunk.indexOf(0x0a); end !== -1; end = chunk.indexOf(0x0a)) {
        line.push(chunk.subarray(0, end));
        if (await tryLine(line, bytes + end)) return;
        line = [];
        bytes = 0;
        chunk = chunk.subarray(end + 1);
      }
      bytes += chunk.length;
      // The rest of a line that is too long is only counted, not buffered.
      if (bytes <= MAX_HANDOFF_BYTES) line.push(chunk);
    }
    if (bytes > 0 && (await tryLine(line, bytes))) return;
    log.error({ missing: secrets.missing() }, 'the hand-off ended without the secrets');
  } catch (error) {
    // The server is stopping and has closed the source.
    if ((error as NodeJS.ErrnoException).code === 'ERR_STREAM_PREMATURE_CLOSE') return;
    log.error(
      { err: error, missing: secrets.missing() },
      'the connection of the hand-off broke before the secrets arrived',
    );
  }
}

/** Provides the secrets in a line. If they are refused, logs why. @returns whether they were accepted */
async function tryHandOff(
  { secrets, log, handOff }: { secrets: Secrets; log: Logger; handOff: HandOff },
  pieces: readonly Buffer[],
  bytes: number,
): Promise<boolean> {
  try {
    if (bytes > MAX_HANDOFF_BYTES) throw new ConfigError(`a hand-off is at most ${MAX_HANDOFF_BYTES} bytes`);
    await handOff(parseJson(Buffer.concat(pieces)));
  } catch (error) {
    if (isInstance(error, ConfigError) || isInstance(error, EnclaveServerError)) {
      secrets.refused = messageOf(error);
    }
    log.warn({ err: error }, 'a hand-off of secrets was refused; waiting for the next');
    return false;
  }
  log.info('the secrets have arrived');
  return true;
}

function formatExample(names: readonly string[]): string {
  return JSON.stringify(Object.fromEntries(names.map((name) => [name, '…'])));
}

/** Parses JSON. Drops the parser's error, since its message quotes the input, here a secret. */
function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new ConfigError('a hand-off is one JSON object in UTF-8 on one line');
  }
}
