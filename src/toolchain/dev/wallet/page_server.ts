/**
 * Serves the wallet's page, `examples/wallet`: its static files, and the form that a provider posts to it.
 */
import { createServer, type Server } from 'node:http';
import { text } from 'node:stream/consumers';
import type { DiscoveryOptions } from 'sui-enclave/zklogin';
import { WALLET } from '../../places.ts';
import { insertIntoHead, loadSite, readPath, type Site, sendFile } from '../site.ts';

/** An enclave of the weather application that the page can ask. */
export interface WalletEnclave {
  readonly url: string;
  /** Id of the published package `weather`, whose contract trusts the config. */
  readonly packageId: string;
  readonly configId: string;
  /** Root certificate of the enclave's attestation documents, in PEM. */
  readonly rootPem: string;
}

/** Client id at the provider, and the way in which this client gets its answers. */
export interface Way {
  readonly how: string;
  readonly title: string;
  readonly text: string;
  readonly clientId: string;
  readonly options: Partial<DiscoveryOptions>;
}

/** Settings that the server writes into the page. */
export interface Settings {
  readonly issuer: string;
  readonly saltUrl: string;
  readonly proverUrl: string;
  /** Whether the prover proves the user's login, and the node checks the proof. A fake proves another one. */
  readonly provesReally: boolean;
  readonly nodeUrl: string;
  readonly faucetUrl: string;
  readonly ways: readonly Way[];
  readonly enclave: WalletEnclave | null;
  /** The form that a provider posted to the page; null without one. */
  readonly posted: string | null;
}

const SOURCE = 'examples/wallet';
/** Paths of the page. A provider redirects to the second one. */
const PAGE = ['index.html', 'back'];
/** Maximum size of a posted form in bytes, far more than a token has. */
const MAX_POSTED = 65_536;

/**
 * Creates the server of the wallet's page.
 *
 * @param readEnclave called at each load of the page
 * @param log called when the page can't be built
 */
export function createPageServer(
  settings: Omit<Settings, 'posted' | 'enclave'>,
  readEnclave: () => Settings['enclave'],
  log: (line: string) => void,
): Server {
  const site = loadSite(WALLET, SOURCE);
  site.catch((error: Error) => log(`The wallet's page can't be built: ${error.message}`));
  return createServer(async (request, response) => {
    const path = readPath(request.url);
    try {
      const { headers, files } = await site;
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
      const isPost = request.method === 'POST';
      if (isPost && path !== 'back') return void response.writeHead(405).end();
      if (PAGE.includes(path)) {
        // A request without a length does not come from a browser's form.
        const length = Number(request.headers['content-length']);
        if (isPost && !(length <= MAX_POSTED)) return void response.writeHead(413).end();
        const posted = isPost ? await text(request) : null;
        return sendFile(
          response,
          'index.html',
          formatPage(await site, { ...settings, enclave: readEnclave(), posted }),
        );
      }
      const content = files.get(path);
      if (content) sendFile(response, path, content);
      else response.writeHead(404).end();
    } catch {
      response.writeHead(500, { 'content-type': 'text/plain' }).end("The page can't be built.\n");
    }
  });
}

/**
 * Returns the page with its settings as an element of data, since the page's policy forbids inline scripts.
 */
function formatPage(site: Site, settings: Settings): string {
  const json = JSON.stringify(settings).replaceAll('<', '\\u003c');
  return insertIntoHead(site, `<script type="application/json" id="settings">${json}</script>`);
}
