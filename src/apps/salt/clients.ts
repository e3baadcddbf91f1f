/** `SALT_CLIENTS`: the clients whose tokens get a salt, and the version of the seed for each. */
import * as v from 'valibot';
import { ConfigError } from '../../errors.ts';
import { SUI_V1, valueFault } from '../../zklogin/claims.ts';
import { isIssuedBy, MICROSOFT_ISSUER, normalizeIssuer } from '../../zklogin/issuer.ts';
import { PROVIDERS } from '../../zklogin/providers.ts';

/** A client id at an issuer, with the version of its seed, which must never change once the client has users. */
export interface Client {
  /** Normalised, or MICROSOFT_ISSUER. */
  readonly issuer: string;
  readonly clientId: string;
  /** Version of the seed, from 1. */
  readonly seed: number;
  readonly jwksUrl: URL;
  /** Accepted values of a token's `azp` besides the client id: for example the client ids of its mobile apps. */
  readonly presenters: readonly string[];
}

const text = (maxQuoted: number) =>
  v.pipe(
    v.string(),
    v.check(
      (value) => valueFault(value, maxQuoted) === null,
      'has characters or a length that a zkLogin proof cannot contain',
    ),
  );

const Entries = v.pipe(
  v.array(
    v.strictObject({
      issuer: text(SUI_V1.extendedIssuer - '"iss":,'.length),
      client_id: text(SUI_V1.audience),
      seed: v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(1000)),
      jwks_url: v.optional(
        v.pipe(
          v.string(),
          v.check(
            (url) => URL.canParse(url) && /^https:\/\/[^/:@]+\/[^#]*$/.test(url),
            'must be an https URL',
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
    }),
  ),
  v.minLength(1, 'needs an entry'),
  v.maxLength(1000),
);

/** @throws ConfigError that names the entry */
export function parseClients(json: string | undefined): Client[] {
  if (json === undefined) throw new ConfigError('SALT_CLIENTS must list the clients whose tokens get a salt');
  let data: unknown;
  try {
    data = JSON.parse(json);
  } catch {
    throw new ConfigError('SALT_CLIENTS is not JSON');
  }
  const result = v.safeParse(Entries, data);
  if (!result.success) {
    throw new ConfigError(
      `SALT_CLIENTS, ${v.getDotPath(result.issues[0]) ?? 'top level'}: must be an array of {"issuer": string, "client_id": string, "seed": version from 1}. An issuer other than the known providers also needs "jwks_url": https URL. Optional: "presenters", an array of strings: accepted values of azp besides the client id`,
    );
  }
  const clients = result.output.map((entry, index) => {
    const issuer = normalizeIssuer(entry.issuer);
    return {
      issuer,
      clientId: entry.client_id,
      seed: entry.seed,
      jwksUrl: jwksUrl(issuer, entry.jwks_url, index),
      presenters: entry.presenters ?? [],
    };
  });
  requireApart(clients);
  return clients;
}

/** Keys of a known provider come only from the URL at which it publishes them. */
function jwksUrl(issuer: string, given: string | undefined, index: number): URL {
  const known = Object.values(PROVIDERS).find(
    (provider) => provider.issuer === issuer || isTenant(provider.issuer, issuer),
  );
  if (known && given !== undefined) {
    throw new ConfigError(
      `SALT_CLIENTS, entry ${index}: the keys of ${issuer} have a known URL: remove jwks_url`,
    );
  }
  const url = known?.jwksUrl ?? given;
  if (url === undefined) {
    throw new ConfigError(
      `SALT_CLIENTS, entry ${index}: ${issuer} is not a known provider: set jwks_url to the URL of its keys`,
    );
  }
  return new URL(url);
}

/**
 * The salt is derived from issuer ‖ client id. The concatenation must be unique to an entry, or the users of one
 * client would get the salts of another.
 */
function requireApart(clients: readonly Client[]): void {
  for (const [index, one] of clients.entries()) {
    for (const [earlier, other] of clients.slice(0, index).entries()) {
      if (concatenateAlike(one, other) || concatenateAlike(other, one)) {
        throw new ConfigError(
          `SALT_CLIENTS, entries ${earlier} and ${index}: their issuers and client ids can have the same concatenation`,
        );
      }
      if (one.issuer === other.issuer && one.jwksUrl.href !== other.jwksUrl.href) {
        throw new ConfigError(
          `SALT_CLIENTS, entries ${earlier} and ${index}: the same issuer has two different jwks_url`,
        );
      }
    }
  }
}

function concatenateAlike(one: Client, other: Client): boolean {
  const [a, b] = [one.issuer + one.clientId, other.issuer + other.clientId];
  if (a === b) return true;
  if (one.issuer !== MICROSOFT_ISSUER) return false;
  // All tenants' issuers have the same length, so only this split of the other concatenation can match.
  const length = MICROSOFT_ISSUER.length - '{tenantid}'.length + 36;
  return isTenant(MICROSOFT_ISSUER, b.slice(0, length)) && b.slice(length) === one.clientId;
}

/** Whether the pattern is Microsoft's and the issuer one of its tenants. */
function isTenant(pattern: string, issuer: string): boolean {
  const tid = issuer.split('/')[3];
  return pattern === MICROSOFT_ISSUER && isIssuedBy(pattern, { iss: issuer, tid });
}
