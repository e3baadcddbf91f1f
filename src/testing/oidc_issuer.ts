/** An issuer on loopback that signs tokens and serves its keys. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  exportJWK,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose';
import { onTestFinished } from 'vitest';

export const GOOGLE = 'https://accounts.google.com';
export const CLIENT_ID = '575519204237-msop9ep45u2uo98hapqmngv8d84qdc8k.apps.googleusercontent.com';

type Key = CryptoKey;

/** RSA keys, which are slow to generate. Issuers use them in turn, so that the issuers of a test differ. */
const KEY_PAIRS = Array.from({ length: 3 }, () => {
  let keyPair: Promise<{ privateKey: Key; publicKey: Key }> | undefined;
  return () => {
    keyPair ??= generateKeyPair('RS256', { extractable: true });
    return keyPair;
  };
});
let issuerCount = 0;

export class Issuer {
  readonly issuer: string;
  readonly kid: string;
  readonly privateKey: Key;
  readonly publicKey: Key;
  /** Keys that the issuer serves. */
  keys: JWK[];
  /** Number of requests for the issuer's keys. */
  asked = 0;
  /** Answers a request for the keys. Tests can replace it. */
  answer: (response: ServerResponse) => unknown = (response) =>
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys: this.keys }));
  readonly #server = createServer((_request, response) => {
    this.asked++;
    this.answer(response);
  });

  private constructor(issuer: string, kid: string, privateKey: Key, publicKey: Key, jwk: JWK) {
    this.issuer = issuer;
    this.kid = kid;
    this.privateKey = privateKey;
    this.publicKey = publicKey;
    this.keys = [{ ...jwk, kid, use: 'sig', alg: 'RS256' }];
  }

  static async start(issuer = GOOGLE, kid = 'key-1'): Promise<Issuer> {
    const makeKeyPair = KEY_PAIRS[issuerCount++ % KEY_PAIRS.length] as (typeof KEY_PAIRS)[number];
    const { privateKey, publicKey } = await makeKeyPair();
    const instance = new Issuer(issuer, kid, privateKey, publicKey, await exportJWK(publicKey));
    await new Promise<void>((resolve) => {
      instance.#server.listen(0, '127.0.0.1', resolve);
    });
    onTestFinished(() => instance.stop());
    return instance;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /**
   * Returns a signed token of the issuer.
   *
   * @param claims claims that replace the defaults. A claim that is undefined is left out
   */
  async token(
    claims: Record<string, unknown> = {},
    { header = {}, key = this.privateKey }: { header?: Record<string, unknown>; key?: Key | Uint8Array } = {},
  ): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    const defaults = {
      iss: this.issuer,
      aud: CLIENT_ID,
      sub: '110463452167303598383',
      iat: now,
      exp: now + 3600,
    };
    const payload = JSON.parse(JSON.stringify({ ...defaults, ...claims })) as JWTPayload;
    const protectedHeader = { alg: 'RS256', kid: this.kid, typ: 'JWT', ...header } as JWTHeaderParameters;
    return await new SignJWT(payload).setProtectedHeader(protectedHeader).sign(key);
  }
}
