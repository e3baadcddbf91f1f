/**
 * `app.yaml`: what an application may connect to, which secrets it needs, and who may send them. An image
 * contains it as `app.json`, and thus needs no parser of YAML.
 */
import { X509Certificate } from 'node:crypto';
import { ed25519 } from '@noble/curves/ed25519.js';
import { ConfigError } from 'sui-enclave/errors';
import { namedEntries } from 'sui-enclave-service/named_entries';
import * as v from 'valibot';
import { parseYaml } from './parse_yaml.ts';

/**
 * Maximum size of `app.yaml` in bytes, since the parser's time grows with the square of the number of names
 * in a map.
 */
export const MAX_MANIFEST_BYTES = 64 * 1024;
/** Maximum number of endpoints of an application. */
const MAX_ENDPOINTS = 64;
/** Maximum size of `app.json` in bytes. Aliases of YAML can repeat a text of `app.yaml` for each endpoint. */
const MAX_JSON_BYTES = MAX_ENDPOINTS * MAX_MANIFEST_BYTES;

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
const unique = <T>(findName: (entry: T) => string) =>
  v.check<T[], string>(
    (entries) => new Set(entries.map(findName)).size === entries.length,
    'has a duplicate name',
  );

/** Name of an event or of one of its fields. */
const EventName = v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_]{0,31}$/));
/** Fields that every event of an application has. The last one is added when the event is exported. */
const OWN_FIELDS = ['event', 'time_ms', 'name', 'request_id', 'enclave'];
const EventFields = v.pipe(
  v.array(v.pipe(EventName, v.notValues(OWN_FIELDS))),
  v.maxLength(8),
  unique((name) => name),
);

/**
 * An ed25519 key in lower case. Keys of small order are refused: they have no secret, so anybody could sign
 * for them.
 */
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

/** Path of a folder, relative to the folder of app.yaml. */
const FilesFolder = v.pipe(
  v.string(),
  v.maxLength(200),
  v.regex(/^[A-Za-z0-9_][A-Za-z0-9._-]*(\/[A-Za-z0-9_][A-Za-z0-9._-]*)*$/),
);

/** Name of an application, as in `APP`. */
export const APPLICATION_NAME = /^[a-z][a-z0-9_-]{0,63}$/;

const ManifestFile = v.strictObject({
  name: v.optional(v.pipe(v.string(), v.regex(APPLICATION_NAME))),
  endpoints: v.pipe(
    v.array(EndpointEntry),
    v.maxLength(MAX_ENDPOINTS),
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
  events: v.optional(v.pipe(namedEntries(EventName, EventFields), v.maxSize(16)), {}),
  files: v.optional(
    v.pipe(
      v.array(FilesFolder),
      v.maxLength(16),
      unique((folder) => folder),
    ),
    [],
  ),
});

/** `app.yaml`: measured with the image, so that an operator can't extend it. */
export interface Manifest {
  /** The value of `APP`. Without this value, the application has the name of its folder. */
  readonly name?: string;
  /** Host names that the application may connect to, by https on port 443. */
  readonly endpoints: readonly string[];
  /** PEM of the only authorities that are trusted for a host, by host. */
  readonly authorities?: Readonly<Record<string, string>>;
  /** Names of the secrets that the application needs. */
  readonly secrets: readonly string[];
  /**
   * ed25519 keys, in hexadecimal, of those who may send the secrets. If there is any key, each set of secrets
   * must be sealed to the enclave and signed with one of these keys, and `POST /secrets` accepts sets too.
   */
  readonly provisioners?: readonly string[];
  /**
   * Allows a start with `REQUESTS=sealed`, which refuses the application's routes. Without `plain`, such a
   * start fails if the application has routes.
   */
  readonly plain?: true;
  /** Events that the application may send with `EVENTS`: the names of their fields. Values are numbers. */
  readonly events?: Readonly<Record<string, readonly string[]>>;
  /** Folders whose files the image also contains, relative to the folder of app.yaml. */
  readonly files?: readonly string[];
}

/** Parses the content of `app.yaml`. @throws ConfigError that names the invalid property */
export function parseManifest(yaml: string): Manifest {
  if (Buffer.byteLength(yaml) > MAX_MANIFEST_BYTES) {
    throw new ConfigError(`app.yaml has more than ${MAX_MANIFEST_BYTES} bytes`);
  }
  let data: unknown;
  try {
    data = parseYaml(yaml);
  } catch (cause) {
    throw new ConfigError('app.yaml is not YAML, or has custom tags', { cause });
  }
  return validateManifest(data, 'app.yaml');
}

/**
 * Parses `app.json` of an image.
 *
 * @throws ConfigError that names the invalid property; also if the text is not what `formatManifest` writes,
 *   for example because a name occurs twice
 */
export function parseManifestJson(json: string): Manifest {
  if (Buffer.byteLength(json) > MAX_JSON_BYTES) {
    throw new ConfigError(`app.json has more than ${MAX_JSON_BYTES} bytes`);
  }
  let data: unknown;
  try {
    data = JSON.parse(json);
  } catch (cause) {
    throw new ConfigError('app.json is not JSON', { cause });
  }
  const manifest = validateManifest(data, 'app.json');
  if (formatManifest(manifest) !== json) {
    throw new ConfigError('app.json is not in the form in which a build writes it');
  }
  return manifest;
}

/**
 * Formats `app.json`. Every `app.yaml` with the same meaning results in the same text, in which the order of
 * properties is fixed.
 */
export function formatManifest(manifest: Manifest): string {
  const { name, endpoints, authorities = {}, secrets, provisioners, plain, events, files } = manifest;
  const entries = endpoints.map((host) => {
    const ca = Object.hasOwn(authorities, host) ? authorities[host] : undefined;
    return ca === undefined ? host : { host, ca };
  });
  return `${JSON.stringify({ name, endpoints: entries, secrets, provisioners, plain, events, files })}\n`;
}

function validateManifest(data: unknown, file: string): Manifest {
  const parsed = v.safeParse(ManifestFile, data);
  if (!parsed.success) {
    throw new ConfigError(
      `${file}, ${v.getDotPath(parsed.issues[0]) ?? 'top level'}: the file must have the lists endpoints (host names in ` +
        'lower case, or {host: name, ca: PEM}) and secrets (names in upper case), may have a name (lower case ' +
        'letters, digits, _ and -, at most 64), the list provisioners (at most 16 ed25519 public keys, each 64 ' +
        'hexadecimal digits in lower case, in quotes), plain: true, events (at most 16 names in lower case, each ' +
        'with a list of at most 8 fields) and the list files (at most 16 folders of the application), no other ' +
        'property, and no duplicate name',
    );
  }
  const { name, endpoints, secrets, provisioners, plain, events, files } = parsed.output;
  const authorities: Record<string, string> = {};
  for (const [index, { host, ca }] of endpoints.entries()) {
    if (ca !== undefined) authorities[host] = requireAuthorities(ca, `${file}, endpoints.${index}.ca`);
  }
  const hosts = endpoints.map(({ host }) => host);
  return {
    ...(name !== undefined && { name }),
    endpoints: hosts,
    secrets,
    ...(Object.keys(authorities).length > 0 && { authorities }),
    ...(provisioners.length > 0 && { provisioners }),
    ...(plain && { plain }),
    ...(events.size > 0 && { events: Object.fromEntries(events) }),
    ...(files.length > 0 && { files }),
  };
}

/** @param pem the certificates themselves, instead of a path, so that they are measured with app.yaml */
function requireAuthorities(pem: string, property: string): string {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
  const isWhole = blocks.length > 0 && blocks.length === pem.split('-----BEGIN').length - 1;
  if (!isWhole || !blocks.every(isAuthority)) {
    throw new ConfigError(
      `${property}: must be one or more CA certificates in PEM, as a block below "ca: |", and no other PEM`,
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
