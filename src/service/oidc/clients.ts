/** Reads the clients whose tokens a service accepts, which are JSON in one of its settings. */

import { ConfigError } from 'sui-enclave/errors';
import { isIssuedBy, MICROSOFT_ISSUER, normalizeIssuer } from 'sui-enclave/token/issuer';
import { PROVIDERS } from 'sui-enclave/token/providers';
import * as v from 'valibot';

/** A client id at an issuer. */
export interface Client {
  /** The normalised issuer, or MICROSOFT_ISSUER. */
  readonly issuer: string;
  readonly clientId: string;
  readonly jwksUrl: URL;
  /**
   * Accepted values of a token's `azp` besides the client id: for example the client ids of the client's
   * mobile apps.
   */
  readonly presenters: readonly string[];
}

/** Checks of the values that a service can use. */
export interface UsableValues {
  issuer(value: string): boolean;
  clientId(value: string): boolean;
}

/** Returns the schemas of an entry's properties. */
export const clientEntry = (isUsable: UsableValues) => ({
  issuer: v.pipe(v.string(), v.check(isUsable.issuer)),
  client_id: v.pipe(v.string(), v.check(isUsable.clientId)),
  jwks_url: v.optional(
    v.pipe(
      v.string(),
      // A request to an upstream accepts no other form of path.
      v.check(
        (url) => URL.canParse(url) && /^https:\/\/[^/:@]+\/(?!\/)[^#\\]*$/.test(url),
        'must be an https URL whose path starts with one /',
      ),
    ),
  ),
  presenters: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.minLength(1), v.maxLength(255))),
      v.minLength(1),
      v.maxLength(100),
      v.check((names) => new Set(names).size === names.length, 'has a duplicate'),
    ),
  ),
});

type Entry = v.InferOutput<v.StrictObjectSchema<ReturnType<typeof clientEntry>, undefined>>;

/**
 * Parses the setting with the clients.
 *
 * @param setting the name of the setting, for messages
 * @param schema the schema of an entry: `clientEntry`, and the service's own properties
 * @param shape the properties that an entry must have, for messages
 * @returns each client with its entry
 * @throws ConfigError that names the entry
 */
export function parseClients<ServiceEntry extends Entry>(
  setting: string,
  json: string,
  schema: v.GenericSchema<unknown, ServiceEntry>,
  shape: string,
): { readonly client: Client; readonly entry: ServiceEntry }[] {
  let data: unknown;
  try {
    data = JSON.parse(json);
  } catch {
    throw new ConfigError(`${setting} is not JSON`);
  }
  const parsed = v.safeParse(
    v.pipe(v.array(schema), v.minLength(1, 'needs an entry'), v.maxLength(1000)),
    data,
  );
  if (!parsed.success) {
    throw new ConfigError(
      `${setting}, ${v.getDotPath(parsed.issues[0]) ?? 'top level'}: must be an array of ${shape}. An issuer other than the known providers also needs "jwks_url": an https URL whose path starts with one /. Optional: "presenters", an array of strings: accepted values of azp besides the client id`,
    );
  }
  const clients = parsed.output.map((entry, index) => {
    const issuer = normalizeIssuer(entry.issuer);
    const client = {
      issuer,
      clientId: entry.client_id,
      jwksUrl: findJwksUrl(issuer, entry.jwks_url, `${setting}, entry ${index}`),
      presenters: entry.presenters ?? [],
    };
    return { client, entry };
  });
  requireOneUrlPerIssuer(
    setting,
    clients.map(({ client }) => client),
  );
  return clients;
}

/**
 * Returns the URL of an issuer's keys. For a known provider, it is always the URL at which it publishes them.
 *
 * @throws ConfigError
 */
function findJwksUrl(issuer: string, configuredUrl: string | undefined, location: string): URL {
  const provider = Object.values(PROVIDERS).find(
    (provider) => provider.issuer === issuer || isTenant(provider.issuer, issuer),
  );
  if (provider && configuredUrl !== undefined) {
    throw new ConfigError(`${location}: the keys of ${issuer} have a known URL: remove jwks_url`);
  }
  const url = provider?.jwksUrl ?? configuredUrl;
  if (url === undefined) {
    throw new ConfigError(
      `${location}: ${issuer} is not a known provider: set jwks_url to the URL of its keys`,
    );
  }
  return new URL(url);
}

function requireOneUrlPerIssuer(setting: string, clients: readonly Client[]): void {
  for (const [index, client] of clients.entries()) {
    const conflict = clients.findIndex(
      ({ issuer, jwksUrl }) => issuer === client.issuer && jwksUrl.href !== client.jwksUrl.href,
    );
    if (conflict === -1 || conflict > index) continue;
    throw new ConfigError(
      `${setting}, entries ${conflict} and ${index}: the same issuer has two different jwks_url`,
    );
  }
}

/** Returns whether the pattern is Microsoft's, and the issuer is one of Microsoft's tenants. */
export function isTenant(pattern: string, issuer: string): boolean {
  const tid = issuer.split('/')[3];
  return pattern === MICROSOFT_ISSUER && isIssuedBy(pattern, { iss: issuer, tid });
}
