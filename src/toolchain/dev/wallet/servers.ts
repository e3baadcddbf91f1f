/** Fakes on loopback of the services that a wallet needs: a provider and a prover. */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { exportJWK, generateKeyPair } from 'jose';
import { type Configuration, Provider } from 'oidc-provider';
import { listen as listenOn } from 'sui-enclave-devnet/listen';
import { answersPreflight, isLoopbackOrigin, readBody } from 'sui-enclave-testing/loopback';

const PROOFS = new URL('../../../../test/vectors/zklogin-proofs.json', import.meta.url);

/** Clients for three ways to log in. */
export const CLIENTS = {
  implicit: {
    clientId: 'wallet-implicit',
    options: { responseType: 'id_token' },
    title: 'In the address',
    text: 'Implicit flow: the token comes in the fragment of the redirect, as from Google.',
  },
  code: {
    clientId: 'wallet-code',
    options: { responseType: 'code' },
    title: 'With a code',
    text: 'Code flow: the page exchanges a code for the token, as with Kakao.',
  },
  form_post: {
    clientId: 'wallet-form-post',
    options: { responseType: 'code id_token', extraParameters: { response_mode: 'form_post' } },
    title: 'In a form',
    text: 'form_post: the page’s server gets the token and hands it over, as from Apple.',
  },
} as const;
export type LoginFlow = keyof typeof CLIENTS;

/** Listens on a port. @param port 0 lets the system choose. @returns the origin. @throws ConfigError */
export const listen = async (server: Server, port = 0): Promise<string> =>
  await listenOn(server, 'PORT', port);

/**
 * Starts `oidc-provider` with its own pages for login and consent, where any name is a user. It sends users
 * back to any page of this machine, so that a wallet under development needs no registration.
 *
 * @param port 0 lets the system choose
 */
export async function startProvider(port = 0): Promise<{ server: Server; issuer: string }> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  let handle: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
  const server = createServer((request, response) => handle?.(request, response));
  const issuer = await listen(server, port);
  const common = {
    // The provider requires a URI, but accepts every URI of loopback: see below.
    redirect_uris: ['http://127.0.0.1/back'],
    application_type: 'native',
    token_endpoint_auth_method: 'none',
  } as const;
  const configuration: Configuration = {
    clients: [
      {
        ...common,
        client_id: CLIENTS.implicit.clientId,
        response_types: ['id_token'],
        grant_types: ['implicit'],
      },
      {
        ...common,
        client_id: CLIENTS.code.clientId,
        response_types: ['code'],
        grant_types: ['authorization_code'],
      },
      {
        ...common,
        client_id: CLIENTS.form_post.clientId,
        response_types: ['code id_token'],
        grant_types: ['implicit', 'authorization_code'],
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'dev-wallet', use: 'sig', alg: 'RS256' }] },
    responseTypes: ['id_token', 'code', 'code id_token'],
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
    // The providers that Sui knows accept an authorization code without a challenge.
    pkce: { required: () => false },
    clientBasedCORS: (_context, origin) => isLoopbackOrigin(origin),
    cookies: { keys: ['of the fake'] },
    // These are lifetimes in seconds. Without them, the provider prints a notice for each.
    ttl: { Interaction: 3600, Session: 3600, Grant: 3600, IdToken: 3600, AccessToken: 3600 },
    features: { devInteractions: { enabled: true } },
  };
  const provider = withoutWarnings(() => new Provider(issuer, configuration));
  provider.Client.prototype.redirectUriAllowed = (uri) => {
    const url = URL.parse(uri);
    return url !== null && isLoopbackOrigin(url.origin) && url.hash === '';
  };
  provider.use(async (context, next) => {
    await next();
    // The provider's pages would load a font from an outside host, but no request may leave this machine.
    const { body } = context;
    if (typeof body === 'string') context.body = body.replace(/@import url\([^)]*\);/g, '');
  });
  handle = provider.callback();
  return { server, issuer };
}

/** Suppresses the provider's warnings about its in-memory adapter and its own pages, which suit a fake. */
function withoutWarnings<T>(create: () => T): T {
  const { warn } = console;
  console.warn = () => {};
  try {
    return create();
  } finally {
    console.warn = warn;
  }
}

/** Maximum size of a request for a proof in bytes, far more than a token has. */
const MAX_REQUEST = 65_536;

/** Reads the token of a request for a proof; undefined for any other request. */
function readToken(body: Buffer): string | undefined {
  try {
    const { jwt } = JSON.parse(body.toString());
    return String(jwt);
  } catch {
    return undefined;
  }
}

/** Answers in the prover's format. Its points prove another statement, so no validator would accept them. */
export function createFakeProver(broken: () => boolean): Server {
  const [{ partialInputs }] = JSON.parse(readFileSync(PROOFS, 'utf8'));
  return createServer(async (request, response) => {
    if (answersPreflight(request, response)) return;
    if (broken()) return void response.writeHead(500).end();
    // The request may be cut off.
    const body = await readBody(request, response, MAX_REQUEST).catch(() => null);
    if (body === null) return;
    const jwt = readToken(body);
    if (jwt === undefined) return void response.writeHead(400).end();
    const [headerBase64 = '', payload = ''] = jwt.split('.');
    const json = Buffer.from(payload, 'base64url').toString();
    const [claim = ''] = /"iss":"[^"]*"[,}]/.exec(json) ?? [];
    const [start, end] = [8 * json.indexOf(claim), 8 * (json.indexOf(claim) + claim.length)];
    const from = Math.floor(start / 6);
    const value = payload.slice(from, Math.floor((end - 1) / 6) + 1);
    const issBase64Details = { value, indexMod4: from % 4 };
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ ...partialInputs, headerBase64, issBase64Details }));
  });
}
