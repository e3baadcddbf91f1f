import { X509Certificate } from 'node:crypto';
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ed25519 } from '@noble/curves/ed25519.js';
import type { Router } from 'express';
import * as v from 'valibot';
import { parse as parseYaml } from 'yaml';
import { ConfigError } from './errors.ts';
import type { Env } from './server/config.ts';
import type { Logger } from './server/log.ts';
import type { SecretsCheck } from './server/secrets.ts';
import type { SignedAnswer } from './server/signer.ts';
import type { Upstreams } from './server/upstream.ts';
import type { DeclaredType, SignedType } from './wire/intent.ts';

/**
 * An application is a folder `<name>` with `app.yaml` and `app.ts`, which exports this interface. The core loads no
 * other file of it. Neither it nor what it imports may use `await` at the top level: the image's bundle is CommonJS.
 */
export interface ApplicationModule {
  /** Every type that the application signs, each with a unique intent code. */
  readonly signs: readonly DeclaredType[];
  /** Names of secrets that must come from a file or the hand-off: process lists show the environment. */
  readonly secretsNotInEnvironment?: readonly string[];
  /** Called once at the start. @throws ConfigError if the application's configuration is invalid */
  create(context: AppContext): Application;
}

/** What the core provides to an application. */
export interface AppContext {
  readonly env: Env;
  readonly log: Logger;
  /** The value of a secret that app.yaml names. @throws SecretsMissing until the hand-off */
  secret(name: string): string;
  /**
   * A client for an endpoint that app.yaml names, an instance of axios: see Upstreams. Call it at the start, so that a
   * missing host stops the start.
   */
  readonly upstream: Upstreams;
  /** Signs with the enclave's key: see Signer.sign. */
  sign<Data, Input>(type: SignedType<Data, Input>, timestampMs: bigint, data: Data & Input): SignedAnswer;
}

export interface Application {
  /**
   * Validates each complete set of secrets before it is accepted; a ConfigError rejects it. A set from the
   * environment comes before the first request, a set from a hand-off at any time.
   */
  readonly checkSecrets?: SecretsCheck;
  /** Answers `POST /process_data`; optional. */
  readonly processData?: ProcessData;
  /** Further endpoints. */
  readonly endpoints?: readonly Endpoint[];
  /** Routes of its own. */
  readonly routes?: Routes;
}

/**
 * An Express router for what an endpoint can't express, such as files, streams and other media types. It is not part of
 * what is sealed: with `REQUESTS=sealed` its requests are refused.
 */
export interface Routes {
  /** A fixed path such as `/x`. The router sees requests for it and for what is below it, after all endpoints. */
  readonly prefix: string;
  /** The server has read the body: `request.body` is a Buffer, empty for GET and HEAD. */
  readonly router: Router;
}

export interface ProcessData<Payload = never> {
  /** The schema of the request's `payload`. It should reject unknown properties. */
  readonly payload: v.GenericSchema<unknown, Payload>;
  /** See Endpoint. */
  readonly idempotent?: boolean;
  handle(payload: Payload, caller: Caller): Promise<SignedAnswer>;
}

/** An endpoint of an application. Its answer is sent as JSON with status 200. */
export interface Endpoint<Input = never> {
  readonly method: 'GET' | 'POST';
  /** A fixed path such as `/get_salt`, without parameters. */
  readonly path: string;
  /** The schema of a POST's JSON body. */
  readonly body?: v.GenericSchema<unknown, Input>;
  /**
   * The schema of a GET's query: an object with a string for each parameter, or a list of strings for one that is
   * given more than once. Without a schema the query is ignored.
   */
  readonly query?: v.GenericSchema<unknown, Input>;
  /**
   * False: repeating a request has an effect of its own, such as a second payment. A sealed request is then refused,
   * since the host could repeat it: nothing tells the copy from the original. Default: true.
   */
  readonly idempotent?: boolean;
  /** @param input the validated body or query; undefined for a GET without a schema */
  handle(input: Input, caller: Caller): Promise<SignedAnswer | object>;
}

/** The sender of a request. */
export interface Caller {
  /**
   * The address that the outermost trusted proxy saw. Undefined without `TRUSTED_PROXIES`, since behind the enclave's
   * bridge every peer is 127.0.0.1.
   */
  readonly address: string | undefined;
}

/** Gives the handler the type that the schema of the payload describes. */
export function processData<Payload>(definition: ProcessData<Payload>): ProcessData {
  return definition as unknown as ProcessData;
}

/** Gives the handler the type that the schema of the body or query describes. */
export function endpoint<Input>(definition: Endpoint<Input>): Endpoint {
  return definition as unknown as Endpoint;
}

const Hostname = v.pipe(
  v.string(),
  v.regex(/^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+$/),
);
/** A host, or a host that is pinned to certificate authorities. */
const EndpointEntry = v.pipe(
  v.union([Hostname, v.strictObject({ host: Hostname, ca: v.string() })]),
  v.transform((entry) => (typeof entry === 'string' ? { host: entry, ca: undefined } : entry)),
);
const SecretName = v.pipe(v.string(), v.regex(/^[A-Z][A-Z0-9_]{0,63}$/));
const unique = <T>(nameOf: (entry: T) => string) =>
  v.check<T[], string>(
    (entries) => new Set(entries.map(nameOf)).size === entries.length,
    'has a duplicate name',
  );

/** An ed25519 key in lower case. With one of small order, which no secret belongs to, anybody could sign. */
const Provisioner = v.pipe(
  v.string(),
  v.regex(/^[0-9a-f]{64}$/),
  v.check((hex) => {
    try {
      return ed25519.Point.fromHex(hex).isTorsionFree() && !ed25519.Point.fromHex(hex).is0();
    } catch {
      return false;
    }
  }),
);

const ManifestFile = v.strictObject({
  endpoints: v.pipe(
    v.array(EndpointEntry),
    v.maxLength(64),
    unique(({ host }) => host),
  ),
  secrets: v.pipe(
    v.array(SecretName),
    v.maxLength(64),
    unique((name) => name),
  ),
  provisioners: v.optional(
    v.pipe(
      v.array(Provisioner),
      v.maxLength(16),
      unique((key) => key),
    ),
    [],
  ),
  plain: v.optional(v.literal(true)),
});

/** `app.yaml`: measured with the image, so that an operator can't extend it. */
export interface Manifest {
  /** Host names that the application may connect to, by https on port 443. */
  readonly endpoints: readonly string[];
  /** By pinned host: PEM of the only authorities that are trusted for it. */
  readonly authorities?: Readonly<Record<string, string>>;
  /** Names of the secrets that it needs. */
  readonly secrets: readonly string[];
  /**
   * ed25519 keys in hexadecimal: who may send them. If there is one, each set of secrets must be sealed and signed by
   * one of these keys, and `POST /secrets` accepts it too.
   */
  readonly provisioners?: readonly string[];
  /** With `REQUESTS=sealed`: the application's routes may be refused. Without it, such a start fails. */
  readonly plain?: true;
}

/** @throws ConfigError that names the invalid property */
export function parseManifest(yaml: string): Manifest {
  let data: unknown;
  try {
    data = parseYaml(yaml);
  } catch (cause) {
    throw new ConfigError('app.yaml is not YAML', { cause });
  }
  const result = v.safeParse(ManifestFile, data);
  if (!result.success) {
    throw new ConfigError(
      `app.yaml, ${v.getDotPath(result.issues[0]) ?? 'top level'}: must have the lists endpoints (host names in lower case, or {host: name, ca: PEM}) and secrets (names in upper case), may have the list provisioners (at most 16 ed25519 public keys, each 64 hexadecimal digits in lower case, in quotes) and plain: true, no other property, and no duplicate name`,
    );
  }
  const { endpoints, secrets, provisioners, plain } = result.output;
  const authorities: Record<string, string> = {};
  for (const [index, { host, ca }] of endpoints.entries()) {
    if (ca !== undefined) authorities[host] = requireAuthorities(ca, `app.yaml, endpoints.${index}.ca`);
  }
  const hosts = endpoints.map(({ host }) => host);
  return {
    endpoints: hosts,
    secrets,
    ...(Object.keys(authorities).length > 0 && { authorities }),
    ...(provisioners.length > 0 && { provisioners }),
    ...(plain && { plain }),
  };
}

/** @param pem the certificates themselves, not a path, so that they are measured with app.yaml */
function requireAuthorities(pem: string, where: string): string {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  const isWhole = blocks.length > 0 && blocks.length === pem.split('-----BEGIN').length - 1;
  if (!isWhole || !blocks.every(isAuthority)) {
    throw new ConfigError(
      `${where}: must be one or more CA certificates in PEM, as a block below "ca: |", and no other PEM`,
    );
  }
  return pem;
}

function isAuthority(pem: string): boolean {
  try {
    return new X509Certificate(pem).ca;
  } catch {
    return false;
  }
}

/**
 * @param appsDir folder with one subfolder for each application, ending in a slash
 * @param name already validated as a plain folder name
 */
export async function loadApplication(
  appsDir: URL,
  name: string,
): Promise<{ manifest: Manifest; module: ApplicationModule }> {
  const folder = new URL(`${name}/`, appsDir);
  const yaml = await readFile(new URL('app.yaml', folder), 'utf8').catch(() => {
    const others = applicationNames(appsDir).join(', ') || 'none';
    throw new ConfigError(`APP=${name}: there is no such application; the applications are: ${others}`);
  });
  const manifest = parseManifest(yaml);
  const module: Partial<ApplicationModule> = await import(new URL('app.ts', folder).href);
  if (!Array.isArray(module.signs) || typeof module.create !== 'function') {
    throw new ConfigError(`APP=${name}: app.ts must export signs (a list of types) and create (a function)`);
  }
  return { manifest, module: module as ApplicationModule };
}

function applicationNames(appsDir: URL): string[] {
  return globSync('*/app.yaml', { cwd: fileURLToPath(appsDir) })
    .map(dirname)
    .sort();
}
