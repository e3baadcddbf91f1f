import { createHmac, randomBytes } from 'node:crypto';
import * as v from 'valibot';
import { type AppContext, type Application, endpoint } from '../../app.ts';
import { ConfigError } from '../../errors.ts';
import { type Env, integer, text } from '../../server/config.ts';
import type { Upstream } from '../../server/upstream.ts';
import { type Client, parseClients } from './clients.ts';
import { deriveSalt, fingerprint, parseSeeds } from './derive.ts';
import { IssuerKeys } from './keys.ts';
import { addressKey, RateLimit, Slots } from './limits.ts';
import { TokenVerifier, type Verified } from './verify.ts';

/** Four times what a token of the known providers takes. */
const MAX_TOKEN_LENGTH = 8192;

const SaltRequest = v.strictObject({
  token: v.pipe(
    v.string(),
    v.minLength(1, 'must not be empty'),
    v.maxLength(MAX_TOKEN_LENGTH, `must be at most ${MAX_TOKEN_LENGTH} characters`),
  ),
});

/** The salt is no statement that a contract would check: nothing is signed. */
export const signs = [];

export const secretsNotInEnvironment = ['SALT_SEED'];

/** `POST /get_salt`: the salt of whoever a genuine token is about. */
export function create({ env, log, upstream }: AppContext): Application {
  requireSafeSettings(env);
  const clients = parseClients(text(env, 'SALT_CLIENTS'));
  const fingerprints = readFingerprints(env);
  const perUser = new RateLimit(
    integer(env, 'SALT_USER_REQUESTS_PER_MINUTE', { from: 1, to: 10_000, otherwise: 30 }),
  );
  const perAddress = new RateLimit(
    integer(env, 'SALT_ADDRESS_REQUESTS_PER_MINUTE', { from: 1, to: 100_000, otherwise: 300 }),
  );
  const slots = new Slots(integer(env, 'SALT_MAX_VERIFICATIONS', { from: 1, to: 10_000, otherwise: 64 }));
  const verifier = new TokenVerifier(clients, keysByIssuer(clients, upstream), slots);
  // New with each start: nobody can tell later whose line in the log it was, whatever they know.
  const userKey = randomBytes(32);
  let seeds: readonly Buffer[] = [];

  return {
    checkSecrets({ SALT_SEED = '' }) {
      const parsed = parseSeeds(SALT_SEED);
      requireSeeds(parsed, clients, fingerprints);
      seeds = parsed;
      // A client whose version is another than at the last start would lose its users' addresses: here it shows.
      const shown = clients.map(({ issuer, clientId, seed }) => ({
        issuer,
        client_id: clientId,
        version: seed,
        fingerprint: fingerprint(parsed[seed - 1] as Buffer),
      }));
      log.info({ seed_fingerprints: seeds.map(fingerprint), clients: shown }, 'the seed has arrived');
    },
    endpoints: [
      endpoint({
        method: 'POST',
        path: '/get_salt',
        body: SaltRequest,
        async handle({ token }, { address }) {
          if (address !== undefined) perAddress.take(addressKey(address));
          const verified = await verifier.verify(token);
          const user = hashUser(userKey, verified);
          perUser.take(user);
          const { client, issuer, subject } = verified;
          const salt = deriveSalt(seeds[client.seed - 1] as Buffer, issuer, client.clientId, subject);
          log.info({ issuer: client.issuer, client_id: client.clientId, user }, 'gave a salt');
          return { salt };
        },
      }),
    ],
  };
}

function requireSafeSettings(env: Env): void {
  if ((env['CORS_ORIGINS'] ?? '*') === '*') {
    throw new ConfigError(
      "CORS_ORIGINS must name your wallets' origins, or be none: salts are not for every page",
    );
  }
  if (env['SALT_ADDRESS_REQUESTS_PER_MINUTE'] !== undefined && Number(env['TRUSTED_PROXIES'] ?? 0) === 0) {
    throw new ConfigError(
      'SALT_ADDRESS_REQUESTS_PER_MINUTE needs TRUSTED_PROXIES: without a trusted proxy nobody has an address',
    );
  }
  if (env['SECRETS_FD'] !== undefined && env['SALT_SEED_FINGERPRINTS'] === undefined) {
    throw new ConfigError(
      'SALT_SEED_FINGERPRINTS must be set where the seed comes by a hand-off (SECRETS_FD), or whoever hands over first would choose it: `npm run salt_seed -- fingerprint FILE` prints them',
    );
  }
}

function readFingerprints(env: Env): string[] | undefined {
  const list = text(env, 'SALT_SEED_FINGERPRINTS')?.split(',');
  if (list && !list.every((each) => /^[0-9a-f]{32}$/.test(each))) {
    throw new ConfigError(
      'SALT_SEED_FINGERPRINTS must be 32 hex characters for each version of the seed, separated by commas',
    );
  }
  return list;
}

function requireSeeds(
  seeds: readonly Buffer[],
  clients: readonly Client[],
  fingerprints: readonly string[] | undefined,
): void {
  const newest = Math.max(...clients.map(({ seed }) => seed));
  if (newest > seeds.length) {
    throw new ConfigError(
      `SALT_CLIENTS names version ${newest} of the seed, but SALT_SEED has ${seeds.length}`,
    );
  }
  if (!fingerprints) return;
  if (fingerprints.length !== seeds.length) {
    throw new ConfigError(
      `SALT_SEED_FINGERPRINTS has ${fingerprints.length} versions, but SALT_SEED has ${seeds.length}`,
    );
  }
  const wrong = seeds.findIndex((seed, index) => fingerprint(seed) !== fingerprints[index]);
  if (wrong !== -1) {
    throw new ConfigError(
      `version ${wrong + 1} of SALT_SEED has the fingerprint ${fingerprint(seeds[wrong] as Buffer)}, not that of SALT_SEED_FINGERPRINTS: it is another seed`,
    );
  }
}

/** One set of keys for each place of keys, whatever issuers and clients share it. */
function keysByIssuer(clients: readonly Client[], upstream: AppContext['upstream']) {
  const keys = new Map<string, IssuerKeys>();
  for (const { jwksUrl } of clients) {
    if (keys.has(jwksUrl.href)) continue;
    keys.set(jwksUrl.href, new IssuerKeys(wayTo(jwksUrl, upstream), jwksUrl.pathname + jwksUrl.search));
  }
  return ({ jwksUrl }: Client) => keys.get(jwksUrl.href) as IssuerKeys;
}

function wayTo({ hostname }: URL, upstream: AppContext['upstream']): Upstream {
  try {
    return upstream(hostname);
  } catch {
    throw new ConfigError(`SALT_CLIENTS: ${hostname} is not among the endpoints of app.yaml: add it there`);
  }
}

/** The same for a user's requests until the server ends, and nothing that tells who it is. */
function hashUser(key: Buffer, { client, issuer, subject }: Verified): string {
  return createHmac('sha256', key)
    .update(JSON.stringify([issuer, client.clientId, subject]))
    .digest('hex')
    .slice(0, 32);
}
