import { integerBetween, type SettingTable, textSetting } from 'sui-enclave-server';
import * as v from 'valibot';

export const SALT_SETTINGS = {
  SALT_CLIENTS: {
    schema: textSetting('list the clients whose tokens get a salt'),
    meaning:
      'the clients whose tokens get a salt, as JSON: `[{"issuer": "https://accounts.google.com", "client_id": "…", "seed": 1}]`. An issuer that is not a known provider needs `"jwks_url"`, whose host must be in app.yaml. `"presenters": ["…"]` lists values of `azp` that are accepted besides the client id',
  },
  SALT_SEED_FINGERPRINTS: {
    schema: v.pipe(
      textSetting('be 32 hex characters for each version of the seed, separated by commas', (text) =>
        /^[0-9a-f]{32}(,[0-9a-f]{32})*$/.test(text),
      ),
      v.transform((text) => text.split(',')),
    ),
    optional: true,
    meaning:
      'the fingerprint of each version of the seed, separated by commas; other seeds are refused. Required with `SECRETS_FD` or `SECRETS=sealed`, and therefore in an image',
  },
  SALT_USER_REQUESTS_PER_MINUTE: {
    schema: integerBetween(1, 10_000),
    default: '30',
    meaning: 'maximum number of requests a minute of each verified user',
  },
  SALT_ADDRESS_REQUESTS_PER_MINUTE: {
    schema: integerBetween(1, 100_000),
    default: '300',
    meaning: 'maximum number of requests a minute of each address; needs `TRUSTED_PROXIES`',
  },
  SALT_MAX_VERIFICATIONS: {
    schema: integerBetween(1, 10_000),
    default: '64',
    meaning: 'maximum number of tokens that are verified at the same time; further requests receive 503',
  },
} as const satisfies SettingTable;
