import { createHmac, randomBytes } from 'node:crypto';
import { quantity } from 'sui-enclave/wording';
import {
  type AppContext,
  type Application,
  ConfigError,
  defineApp,
  type Env,
  endpoint,
  readSettings,
  type Upstreams,
} from 'sui-enclave-server';
import { createKeySources } from 'sui-enclave-service/oidc/keys';
import { fingerprint, parseSeeds } from 'sui-enclave-service/salt_seeds';
import * as v from 'valibot';
import { parseSaltClients, type SaltClient } from './clients.ts';
import { deriveSalt } from './derive.ts';
import { addressKey, SaltRateLimit, Semaphore } from './limits.ts';
import { SALT_SETTINGS } from './settings.ts';
import { SaltTokenVerifier, type VerifiedUser } from './verify.ts';

/** Maximum length of a token, in characters: four times the length of known providers' tokens. */
const MAX_TOKEN_LENGTH = 8192;

const SaltRequest = v.strictObject({
  token: v.pipe(
    v.string(),
    v.minLength(1, 'must not be empty'),
    v.maxLength(MAX_TOKEN_LENGTH, `must be at most ${MAX_TOKEN_LENGTH} characters`),
  ),
});

/** Creates `POST /get_salt`, which returns the salt of the user whom a valid ID token identifies. */
function create({ env, log, upstream }: AppContext): Application {
  requireSafeSettings(env);
  const settings = readSettings(SALT_SETTINGS, env);
  const clients = parseSaltClients(settings.SALT_CLIENTS);
  const fingerprints = settings.SALT_SEED_FINGERPRINTS;
  const perUser = new SaltRateLimit(settings.SALT_USER_REQUESTS_PER_MINUTE);
  const perAddress = new SaltRateLimit(settings.SALT_ADDRESS_REQUESTS_PER_MINUTE);
  const semaphore = new Semaphore(settings.SALT_MAX_VERIFICATIONS);
  const verifier = new SaltTokenVerifier(
    clients,
    createKeySources(clients, requireListedHosts(upstream)),
    semaphore,
  );
  // Each start has a new key. Once the server has stopped, a log line can't be linked to a user.
  const userKey = randomBytes(32);
  let seeds: readonly Buffer[] = [];

  return {
    checkSecrets({ SALT_SEED = '' }) {
      const parsed = parseSeeds(SALT_SEED);
      requireSeeds(parsed, clients, fingerprints);
      seeds = parsed;
      // Users lose their addresses if a client's seed version changes between starts: the log shows the
      // versions.
      const logged = clients.map(({ issuer, clientId, seed }) => ({
        issuer,
        client_id: clientId,
        version: seed,
        fingerprint: fingerprint(parsed[seed - 1] as Buffer),
      }));
      log.info({ seed_fingerprints: seeds.map(fingerprint), clients: logged }, 'the seed has arrived');
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
          log.info({ issuer: client.issuer, client_id: client.clientId, user }, 'issued a salt');
          return { salt };
        },
      }),
    ],
  };
}

export default defineApp({
  // No contract checks a salt.
  signs: [],
  secretsNotInEnvironment: ['SALT_SEED'],
  create,
});

function requireSafeSettings(env: Env): void {
  if ((env['CORS_ORIGINS'] ?? '*') === '*') {
    throw new ConfigError(
      `CORS_ORIGINS must list your wallets' origins, or be "none": salts must not be available to every page`,
    );
  }
  if (env['SALT_ADDRESS_REQUESTS_PER_MINUTE'] !== undefined && Number(env['TRUSTED_PROXIES'] ?? 0) === 0) {
    throw new ConfigError(
      'SALT_ADDRESS_REQUESTS_PER_MINUTE needs TRUSTED_PROXIES: without a trusted proxy, callers have no address',
    );
  }
  const arrivesLater = env['SECRETS_FD'] !== undefined || env['SECRETS'] === 'sealed';
  if (arrivesLater && env['SALT_SEED_FINGERPRINTS'] === undefined) {
    throw new ConfigError(
      'SALT_SEED_FINGERPRINTS must be set if the seed comes after the start (SECRETS_FD, SECRETS=sealed); otherwise the first sender would choose the seed. Run `npx --offline sui-enclave salt_seed fingerprint FILE` to print the fingerprints',
    );
  }
}

function requireSeeds(
  seeds: readonly Buffer[],
  clients: readonly SaltClient[],
  fingerprints: readonly string[] | undefined,
): void {
  const newest = Math.max(...clients.map(({ seed }) => seed));
  if (newest > seeds.length) {
    throw new ConfigError(
      `SALT_CLIENTS names version ${newest} of the seed, but SALT_SEED has only ${quantity(seeds.length, 'version')}`,
    );
  }
  if (!fingerprints) return;
  if (fingerprints.length !== seeds.length) {
    throw new ConfigError(
      `SALT_SEED_FINGERPRINTS has ${quantity(fingerprints.length, 'version')}, but SALT_SEED has ${seeds.length}`,
    );
  }
  const wrongIndex = seeds.findIndex((seed, index) => fingerprint(seed) !== fingerprints[index]);
  if (wrongIndex !== -1) {
    throw new ConfigError(
      `version ${wrongIndex + 1} of SALT_SEED has the fingerprint ${fingerprint(seeds[wrongIndex] as Buffer)}, not the one in SALT_SEED_FINGERPRINTS: it is a different seed`,
    );
  }
}

/** Returns the upstreams. Refuses a host of SALT_CLIENTS that is not in app.yaml, which is measured. */
function requireListedHosts(upstream: Upstreams): Upstreams {
  return (hostname, bounds) => {
    try {
      return upstream(hostname, bounds);
    } catch {
      throw new ConfigError(`SALT_CLIENTS: ${hostname} is not among the endpoints of app.yaml: add it there`);
    }
  };
}

/** Returns a pseudonym of the user. It stays the same until the server stops, and reveals nothing. */
function hashUser(key: Buffer, { client, issuer, subject }: VerifiedUser): string {
  return createHmac('sha256', key)
    .update(JSON.stringify([issuer, client.clientId, subject]))
    .digest('hex')
    .slice(0, 32);
}
