/** Whose tokens get a salt, and with which version of the seed: `SALT_CLIENTS`. */
import * as v from 'valibot';
import { ConfigError } from '../../errors.ts';
import { SUI_V1, valueFault } from '../../zklogin/claims.ts';
import { isIssuedBy, MICROSOFT_ISSUER, normalizeIssuer } from '../../zklogin/issuer.ts';
import { PROVIDERS } from '../../zklogin/providers.ts';

/** A client id at an issuer, and what stands for ever once it has users: the version of its seed. */
export interface Client {
  /** Normalised, or MICROSOFT_ISSUER. */
  readonly issuer: string;
  readonly clientId: string;
  /** From 1. */
  readonly seed: number;
  readonly jwksUrl: URL;
  /** Who else than the client may be a token's `azp`: the client ids of its apps on phones, for instance. */
  readonly presenters: readonly string[];
}

const text = (maxQuoted: number) =>
  v.pipe(
    v.string(),
    v.check(
      (value) => valueFault(value, maxQuoted) === null,
      'has characters or a length that no proof takes',
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
          v.check((names) => new Set(names).size === names.length, 'names one twice'),
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
      `SALT_CLIENTS, ${v.getDotPath(result.issues[0]) ?? 'top level'}: want a list of {"issuer": text, "client_id": text, "seed": version from 1} and, for an issuer that is none of the known providers, "jwks_url": https URL; with "presenters": a list of texts, other values of azp than the client id are taken`,
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

/** Keys of a known provider come from where it publishes them, and nowhere else. */
function jwksUrl(issuer: string, given: string | undefined, index: number): URL {
  const known = Object.values(PROVIDERS).find(
    (provider) => provider.issuer === issuer || isTenant(provider.issuer, issuer),
  );
  if (known && given !== undefined) {
    throw new ConfigError(
      `SALT_CLIENTS, entry ${index}: the keys of ${issuer} have their place: leave jwks_url out`,
    );
  }
  const url = known?.jwksUrl ?? given;
  if (url === undefined) {
    throw new ConfigError(
      `SALT_CLIENTS, entry ${index}: ${issuer} is none of the known providers: say by jwks_url where its keys are`,
    );
  }
  return new URL(url);
}

/**
 * What goes into the derivation is issuer ‖ client id: no two entries may be alike there, or the users of
 * one would get the salts of the other.
 */
function requireApart(clients: readonly Client[]): void {
  for (const [index, one] of clients.entries()) {
    for (const [earlier, other] of clients.slice(0, index).entries()) {
      if (concatenateAlike(one, other) || concatenateAlike(other, one)) {
        throw new ConfigError(
          `SALT_CLIENTS, entries ${earlier} and ${index}: their issuer and client id, put together, can be the same text`,
        );
      }
      if (one.issuer === other.issuer && one.jwksUrl.href !== other.jwksUrl.href) {
        throw new ConfigError(
          `SALT_CLIENTS, entries ${earlier} and ${index}: one issuer, but two places of its keys`,
        );
      }
    }
  }
}

function concatenateAlike(one: Client, other: Client): boolean {
  const [a, b] = [one.issuer + one.clientId, other.issuer + other.clientId];
  if (a === b) return true;
  if (one.issuer !== MICROSOFT_ISSUER) return false;
  // Every tenant's issuer has one length, so the texts are alike where the other's begins with one.
  const length = MICROSOFT_ISSUER.length - '{tenantid}'.length + 36;
  return isTenant(MICROSOFT_ISSUER, b.slice(0, length)) && b.slice(length) === one.clientId;
}

/** Whether an issuer is one of Microsoft's tenants, and the pattern Microsoft's. */
function isTenant(pattern: string, issuer: string): boolean {
  const tid = issuer.split('/')[3];
  return pattern === MICROSOFT_ISSUER && isIssuedBy(pattern, { iss: issuer, tid });
}
