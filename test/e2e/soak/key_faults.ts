/** Tries faults of an issuer's keys (JWKS, JSON Web Key Set), while a user asks for a salt. */
import { setTimeout as sleep } from 'node:timers/promises';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { ask, readCode } from './answers.ts';
import type { Findings } from './finding.ts';
import { Part } from './processes.ts';
import type { KeysMode } from './salt.ts';

/**
 * Time by which the soak sets the clock ahead, in milliseconds. The service must fetch the keys again after a
 * day.
 */
const OVER_A_DAY_MS = 25 * 60 * 60_000;
/** Pause after a failure, in milliseconds: PAUSE_AFTER_FAILURE_MS of src/service/oidc/keys.ts. */
const PAUSE_MS = 5000;

const EXPECTED: readonly (readonly [KeysMode, string])[] = [
  ['dead', 'SALT_ISSUER_UNREACHABLE'],
  ['lies', 'SALT_ISSUER_MALFORMED'],
  ['hangs', 'SALT_ISSUER_TIMEOUT'],
];

export class SaltUser {
  readonly service: Part;
  readonly #mint: () => Promise<string>;
  #salt: string | undefined;

  private constructor(service: Part, mint: () => Promise<string>) {
    this.service = service;
    this.#mint = mint;
  }

  static async start(): Promise<SaltUser> {
    const { privateKey, publicKey } = await generateKeyPair('RS256');
    const jwk = { ...(await exportJWK(publicKey)), kid: 'soak', use: 'sig', alg: 'RS256' };
    const service = await Part.start('./salt.ts', { TOKEN_KEY: JSON.stringify(jwk) });
    const mint = async () => {
      const now = Math.floor(Date.now() / 1000);
      const claims = { iss: 'https://accounts.google.com', aud: 'soak', sub: '1', iat: now, exp: now + 600 };
      return await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'soak' }).sign(privateKey);
    };
    return new SaltUser(service, mint);
  }

  async tryFaults(findings: Findings): Promise<void> {
    for (const [keys, expected] of EXPECTED) {
      this.service.tell({ keys, aheadMs: OVER_A_DAY_MS });
      const code = await this.#ask();
      findings.add(`JWKS, ${keys}: the answer has a code`, code === expected, code, expected);
      this.service.tell({ keys: 'well' });
      await sleep(PAUSE_MS + 50);
      const first = await this.#ask();
      const name = `JWKS, ${keys}: the first attempt after ${PAUSE_MS / 1000} s`;
      findings.add(name, first === 'SALT', first, 'SALT');
    }
  }

  /** Returns the code of a refusal, `SALT` for the user's first salt, or `ANOTHER_SALT` if it has changed. */
  async #ask(): Promise<string> {
    const { status, text } = await ask(`${this.service.origin}/get_salt`, { token: await this.#mint() });
    if (status !== 200) return readCode(text);
    const { salt } = JSON.parse(text);
    this.#salt ??= salt;
    return salt === this.#salt ? 'SALT' : 'ANOTHER_SALT';
  }
}
