/** Starts the services on loopback for a dapp with zkLogin wallets, and the dapp's own server. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { exportJWK, generateKeyPair } from 'jose';
import { Provider } from 'oidc-provider';
import { rolldown } from 'rolldown';
import { LoopbackNode } from '../../../src/devnet/node.ts';
import { decodeJwtPayload } from '../../../src/library/zklogin/index.ts';
import { CLIENTS, createFakeProver, listen } from '../../../src/toolchain/dev/wallet/servers.ts';
import type { PageSettings } from './standard_page.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

export interface DappServices {
  /** Origin of the dapp. */
  readonly origin: string;
  /** Another origin on this machine, with an empty page. */
  readonly foreignOrigin: string;
  readonly issuer: string;
  readonly node: LoopbackNode;
  /** Clients of the provider. The dapp has a wallet for each. */
  clients: PageSettings['clients'];
  sponsorKey: string | null;
  /** Value of the provider's header `cross-origin-opener-policy`, or null if it does not send the header. */
  openerPolicy: string | null;
  proverIsBroken: boolean;
  /** Whether the redirect page does nothing, so that a test can take the answer. */
  keepsAnswer: boolean;
  close(): void;
}

export async function startDappServices(): Promise<DappServices> {
  const servers: Server[] = [];
  const serve = async (handle: Handler) => {
    const server = createServer(handle);
    servers.push(server);
    return await listen(server);
  };
  const code = await bundlePage();
  const node = await LoopbackNode.start(new Uint8Array());
  node.servesPages = true;
  const saltUrl = await serve(answerSalt);
  const prover = createFakeProver(() => services.proverIsBroken);
  servers.push(prover);
  const proverUrl = await listen(prover);
  const origin = await serve(async (request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://dapp.invalid');
    if (pathname === '/dapp.js') {
      return void response.setHeader('content-type', 'text/javascript').end(code);
    }
    const posted = request.method === 'POST' ? await text(request) : null;
    const { clients, sponsorKey, issuer } = services;
    const settings = { issuer, saltUrl, proverUrl, nodeUrl: node.url, clients, sponsorKey, posted };
    const isKept = services.keepsAnswer && pathname === '/back';
    response
      .setHeader('content-type', 'text/html')
      .end(isKept ? '<!doctype html>kept' : formatPage(settings));
  });
  const foreignOrigin = await serve((request, response) => {
    const { pathname } = new URL(request.url ?? '', 'http://elsewhere.invalid');
    const frame = pathname === '/frame' ? `<iframe src="${origin}/dapp"></iframe>` : '';
    response.setHeader('content-type', 'text/html').end(`<!doctype html>elsewhere ${frame}`);
  });
  let provider: Handler | undefined;
  const issuer = await serve((request, response) => {
    const { openerPolicy } = services;
    if (openerPolicy !== null) response.setHeader('cross-origin-opener-policy', openerPolicy);
    provider?.(request, response);
  });
  provider = await createProvider(issuer, `${origin}/back`);
  const services: DappServices = {
    origin,
    // With another host name, it is also another site.
    foreignOrigin: foreignOrigin.replace('127.0.0.1', 'localhost'),
    issuer,
    node,
    clients: [CLIENTS.implicit],
    sponsorKey: null,
    openerPolicy: null,
    proverIsBroken: false,
    keepsAnswer: false,
    close() {
      node.close();
      for (const server of servers) {
        server.closeAllConnections();
        server.close();
      }
    },
  };
  return services;
}

async function bundlePage(): Promise<string> {
  const bundle = await rolldown({
    input: fileURLToPath(new URL('./standard_page.ts', import.meta.url)),
    platform: 'browser',
    logLevel: 'silent',
  });
  const { output } = await bundle.generate({ format: 'esm', codeSplitting: false });
  await bundle.close();
  return output[0].code;
}

function formatPage(settings: PageSettings): string {
  return `<!doctype html><title>dapp</title><link rel="icon" href="data:,"><body>
    <script type="application/json" id="settings">${JSON.stringify(settings).replaceAll('<', '\\u003c')}</script>
    <script type="module" src="/dapp.js"></script>`;
}

/** Answers with a salt for each user of each client. wallet.e2e.ts tests the real service. */
async function answerSalt(request: IncomingMessage, response: ServerResponse): Promise<void> {
  response
    .setHeader('access-control-allow-origin', '*')
    .setHeader('access-control-allow-headers', 'content-type');
  if (request.method === 'OPTIONS') return void response.end();
  const { aud, sub } = decodeJwtPayload(JSON.parse(await text(request)).token);
  const hash = createHash('sha256').update(`${aud} ${sub}`).digest('hex').slice(0, 32);
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ salt: BigInt(`0x${hash}`).toString() }));
}

/** Starts `oidc-provider` with its own pages for login and consent, where any name is a user. */
async function createProvider(issuer: string, redirectUri: string): Promise<Handler> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const grants = { id_token: ['implicit'], code: ['authorization_code'] };
  const clients = Object.values(CLIENTS).map(({ clientId, options: { responseType } }) => ({
    client_id: clientId,
    redirect_uris: [redirectUri],
    application_type: 'native' as const,
    token_endpoint_auth_method: 'none' as const,
    response_types: [responseType],
    grant_types: responseType === 'code id_token' ? Object.values(grants).flat() : grants[responseType],
  }));
  const provider = new Provider(issuer, {
    clients,
    jwks: { keys: [{ ...(await exportJWK(privateKey)), kid: 'test', use: 'sig', alg: 'RS256' }] },
    responseTypes: ['id_token', 'code', 'code id_token'],
    findAccount: (_context, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
    pkce: { required: () => false },
    clientBasedCORS: () => true,
    cookies: { keys: ['of the test'] },
    ttl: { Interaction: 3600, Session: 3600, Grant: 3600, IdToken: 3600, AccessToken: 3600 },
    features: { devInteractions: { enabled: true } },
  });
  provider.use(async (context, next) => {
    await next();
    // The provider's pages load a font from an outside host, but no request may leave this machine.
    const { body } = context;
    if (typeof body === 'string') context.body = body.replace(/@import url\([^)]*\);/g, '');
  });
  return provider.callback();
}
