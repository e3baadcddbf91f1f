import { X509Certificate } from 'node:crypto';
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as v from 'valibot';
import { parse as parseYaml } from 'yaml';
import { ConfigError } from './errors.ts';
import type { Env } from './server/config.ts';
import type { Logger } from './server/log.ts';
import type { SecretsCheck } from './server/secrets.ts';
import type { SignedAnswer } from './server/signer.ts';
import type { Upstream } from './server/upstream.ts';
import type { DeclaredType, SignedType } from './wire/intent.ts';

/**
 * What an application is to the core: a folder `<name>` with `app.yaml` and `app.ts`. The core knows
 * nothing else of it, and app.ts is the only file of it that the core loads.
 */
export interface ApplicationModule {
  /** Every type that the application signs, each with an intent code of its own. */
  readonly signs: readonly DeclaredType[];
  /** Names of secrets that are refused in the environment, where process lists show them: a file may have them. */
  readonly secretsNotInEnvironment?: readonly string[];
  /** Called once at the start; a mistake in the application's own configuration is a ConfigError. */
  create(context: AppContext): Application;
}

/** What the core gives to an application. */
export interface AppContext {
  readonly env: Env;
  readonly log: Logger;
  /** The value of a secret that app.yaml names. @throws SecretsMissing until the hand-off. */
  secret(name: string): string;
  /** The way to an endpoint that app.yaml names. Get it at the start, where a host that is not there shows. */
  upstream(host: string): Upstream;
  /** Signs with the enclave's key: see Signer.sign. */
  sign<Data, Input>(type: SignedType<Data, Input>, timestampMs: bigint, data: Data & Input): SignedAnswer;
}

export interface Application {
  /**
   * Called with each complete set of the secrets before it is taken; what it throws refuses the set. From
   * the environment they come before the first request, by a hand-off at any time.
   */
  readonly checkSecrets?: SecretsCheck;
  /** Answers `POST /process_data`; without it there is no such endpoint. */
  readonly processData?: ProcessData;
  /** Endpoints of its own. */
  readonly endpoints?: readonly Endpoint[];
}

export interface ProcessData<Payload = never> {
  /** The schema of the request's `payload`; a member that it doesn't name should be refused. */
  readonly payload: v.GenericSchema<unknown, Payload>;
  handle(payload: Payload, caller: Caller): Promise<SignedAnswer>;
}

/** An endpoint that an application adds; its answer is sent as JSON with status 200. */
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
  /** @param input the validated body or query; undefined for a GET without a schema */
  handle(input: Input, caller: Caller): Promise<SignedAnswer | object>;
}

/** What is known of who sent a request. */
export interface Caller {
  /**
   * The address that the first of the trusted proxies saw; undefined where none is configured
   * (`TRUSTED_PROXIES`), since behind the enclave's bridge every peer is 127.0.0.1.
   */
  readonly address: string | undefined;
}

/** Keeps the type that the schema gives to the payload for the handler. */
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
/** A host, or a host with the authority of its own that it is pinned to. */
const EndpointEntry = v.pipe(
  v.union([Hostname, v.strictObject({ host: Hostname, ca: v.string() })]),
  v.transform((entry) => (typeof entry === 'string' ? { host: entry, ca: undefined } : entry)),
);
const SecretName = v.pipe(v.string(), v.regex(/^[A-Z][A-Z0-9_]{0,63}$/));
const unique = <T>(nameOf: (entry: T) => string) =>
  v.check<T[], string>((entries) => new Set(entries.map(nameOf)).size === entries.length, 'names one twice');

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
});

/** `app.yaml`: measured with the image, so that an operator can't widen it. */
export interface Manifest {
  /** Host names that the application may reach, by https on port 443. */
  readonly endpoints: readonly string[];
  /** By host, for those that are pinned: PEM of the authorities that their certificates must lead to, and no others. */
  readonly authorities?: Readonly<Record<string, string>>;
  /** Names of the secrets that it needs. */
  readonly secrets: readonly string[];
}

/** @throws ConfigError that says which member is wrong. */
export function parseManifest(yaml: string): Manifest {
  let data: unknown;
  try {
    data = parseYaml(yaml);
  } catch {
    throw new ConfigError('app.yaml is not YAML');
  }
  const result = v.safeParse(ManifestFile, data);
  if (!result.success) {
    throw new ConfigError(
      `app.yaml, ${v.getDotPath(result.issues[0]) ?? 'top level'}: want the lists endpoints (host names in lower case, or {host: name, ca: PEM}) and secrets (names in upper case), no other member, and no name twice`,
    );
  }
  const { endpoints, secrets } = result.output;
  const authorities: Record<string, string> = {};
  for (const [index, { host, ca }] of endpoints.entries()) {
    if (ca !== undefined) authorities[host] = requireAuthorities(ca, `app.yaml, endpoints.${index}.ca`);
  }
  const hosts = endpoints.map(({ host }) => host);
  return { endpoints: hosts, secrets, ...(Object.keys(authorities).length > 0 && { authorities }) };
}

/** @param pem the certificates themselves, so that they are measured with app.yaml */
function requireAuthorities(pem: string, where: string): string {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  const isWhole = blocks.length > 0 && blocks.length === pem.split('-----BEGIN').length - 1;
  if (!isWhole || !blocks.every(isAuthority)) {
    throw new ConfigError(
      `${where}: want one or more certificates of authorities in PEM, as a text below "ca: |", and nothing else in PEM`,
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
 * @param appsDir folder that holds one folder for each application, ending in a slash.
 * @param name already checked to be a plain folder name.
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
