/** `SALT_CLIENTS`: the clients whose tokens get a salt, and the version of the seed for each. */

import { isProvable } from 'sui-enclave/token/claims';
import { MICROSOFT_ISSUER } from 'sui-enclave/token/issuer';
import { ConfigError } from 'sui-enclave-server';
import * as oidc from 'sui-enclave-service/oidc/clients';
import * as v from 'valibot';

/**
 * A client id at an issuer, with the version of its seed, which must never change once the client has users.
 */
export interface SaltClient extends oidc.Client {
  /** Version of the seed, from 1. */
  readonly seed: number;
}

const Entry = v.strictObject({
  ...oidc.clientEntry(isProvable),
  seed: v.pipe(v.number(), v.safeInteger(), v.minValue(1), v.maxValue(1000)),
});
const SHAPE = '{"issuer": string, "client_id": string, "seed": version from 1}';

/**
 * Parses the JSON of `SALT_CLIENTS`.
 *
 * @throws ConfigError that names the setting, and the entry or entries at fault
 */
export function parseSaltClients(json: string): SaltClient[] {
  const clients = oidc
    .parseClients('SALT_CLIENTS', json, Entry, SHAPE)
    .map(({ client, entry }) => ({ ...client, seed: entry.seed }));
  requireUniqueConcatenations(clients);
  return clients;
}

/**
 * Refuses two entries that can have the same issuer ‖ client id. A salt is derived from this concatenation,
 * so the users of one client would otherwise get the salts of another.
 */
function requireUniqueConcatenations(clients: readonly SaltClient[]): void {
  for (const [index, client] of clients.entries()) {
    for (const [earlier, earlierClient] of clients.slice(0, index).entries()) {
      if (canConcatenateAlike(client, earlierClient) || canConcatenateAlike(earlierClient, client)) {
        throw new ConfigError(
          `SALT_CLIENTS, entries ${earlier} and ${index}: their issuers and client ids can have the same concatenation`,
        );
      }
    }
  }
}

/** Returns whether an issuer ‖ client id of the first entry can equal the second entry's. */
function canConcatenateAlike(first: SaltClient, second: SaltClient): boolean {
  const [a, b] = [first.issuer + first.clientId, second.issuer + second.clientId];
  if (a === b) return true;
  if (first.issuer !== MICROSOFT_ISSUER) return false;
  // All tenants' issuers have the same length, so only this split of the other concatenation can match.
  const length = MICROSOFT_ISSUER.length - '{tenantid}'.length + 36;
  return oidc.isTenant(MICROSOFT_ISSUER, b.slice(0, length)) && b.slice(length) === first.clientId;
}
