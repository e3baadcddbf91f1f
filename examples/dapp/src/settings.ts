/**
 * Reads `settings.json`: the registers and addresses that the page trusts, and the addresses of its services.
 * Only this file defines its format.
 */
import * as v from 'valibot';

const url = v.pipe(v.string(), v.regex(/^https?:\/\/\S+$/, 'must be an http(s) URL'), v.url('must be a URL'));
const objectId = v.pipe(v.string(), v.regex(/^0x[0-9a-f]{64}$/, 'must be 0x and 64 hexadecimal digits'));
const register = v.pipe(v.string(), v.regex(/^[0-9a-f]{96}$/, 'must be 96 hexadecimal digits'));
const text = v.pipe(v.string(), v.nonEmpty('must not be empty'));

const SettingsSchema = v.strictObject({
  enclave: v.strictObject({
    url,
    /** The registers of the image whose enclaves may answer, from `out/nitro.pcrs`. */
    image: v.strictObject({ pcr0: register, pcr1: register, pcr2: register }),
    /**
     * Root certificates in PEM that replace AWS's. For development only, since emulated enclaves prove
     * nothing.
     */
    developmentRoots: v.optional(text),
  }),
  sui: v.strictObject({
    /** `mainnet`, `testnet`, `devnet`, or `localnet`. */
    network: text,
    /** URL of a node that speaks gRPC-web. The page believes this node, so name one that you trust. */
    nodeUrl: url,
    /** Id of the package `weather`. */
    packageId: objectId,
    /** Id of the `EnclaveConfig` under which the contract accepts keys. */
    configId: objectId,
    /** URL of the console that shows objects and transactions: `src/console`. */
    consoleUrl: v.optional(url),
    /** URL of a faucet that sends SUI for gas, for development only. */
    faucetUrl: v.optional(url),
  }),
  /** Settings of the login. Without them, the page offers only the installed wallets. */
  login: v.optional(
    v.strictObject({
      /** URL of the issuer, exactly as in its tokens. */
      issuer: url,
      /** Name of the login in the list of wallets. */
      name: text,
      /** Client id of this page. At the provider, register `login.html` as its redirect URI. */
      clientId: text,
      saltUrl: url,
      proverUrl: url,
    }),
  ),
});

export type Settings = v.InferOutput<typeof SettingsSchema>;
export type LoginSettings = NonNullable<Settings['login']>;

/** Error of a file that is missing or unusable. */
export class SettingsError extends Error {}

/** @throws SettingsError, whose message names the entry */
export function readSettings(json: unknown): Settings {
  const parsed = v.safeParse(SettingsSchema, json);
  if (parsed.success) return parsed.output;
  const [issue] = parsed.issues;
  throw new SettingsError(`${v.getDotPath(issue) ?? 'the whole file'}: ${issue.message}`);
}

/** @throws SettingsError */
export async function loadSettings(): Promise<Settings> {
  const response = await fetch(new URL('settings.json', document.baseURI), { cache: 'no-store' });
  // For a missing file, servers of single-page applications may answer with the page.
  const isJson = response.headers.get('content-type')?.includes('json');
  if (!response.ok || !isJson) throw new SettingsError('there is no settings.json beside this page');
  return readSettings(await response.json().catch(() => null));
}
