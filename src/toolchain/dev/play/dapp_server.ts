/**
 * Serves the dapp of `play`: its built files, settings for this run, and a row of links, each of which makes
 * the dapp ask a broken server instead. A script of this server makes the row. The dapp's build does not
 * contain this script.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { listFiles, readPath, sendFile } from '../site.ts';
import { COUNTERPARTS, type Counterpart } from './ports.ts';

/** A server that the dapp can use instead of the honest one. */
export interface Case {
  readonly title: string;
  /** Explanation, in a sentence or two, of what is wrong with the server, and who refuses it. */
  readonly text: string;
}

export const HONEST: Case = {
  title: 'Honest enclave',
  text: 'It runs the expected image, its key is registered, and its answers are not changed in transit.',
};

export const CASES: Readonly<Record<Counterpart, Case>> = {
  changed: {
    title: 'Changed answer',
    text: 'A host in front of the enclave changes a value that the enclave signed. Ask it: the signature no longer matches, and this page refuses the answer.',
  },
  other_image: {
    title: 'Another image',
    text: 'A real enclave, but other code runs in it. This page refuses its attestation document, whose registers differ.',
  },
  unregistered: {
    title: 'Unregistered key',
    text: 'The expected code, with a key that no admin has registered on Sui. You can read its answers, but a contract refuses them.',
  },
  replayed: {
    title: 'Old answer',
    text: "A host that repeats the first answer. Ask once, press c in the terminal to move the chain's clock forward by two hours, ask again and mint: the contract refuses the answer, which is too old. This page refuses the repeated answer to any other question.",
  },
};

/** Path of the script that makes the row. */
const SCRIPT = 'play.js';
/** Path of the row's links, in JSON. */
const ROW = 'play.json';
/** Matches the paths under which the dapp asks a broken server. */
const BROKEN = new RegExp(`^broken/(${COUNTERPARTS.join('|')})/(.*)$`);

export interface DappOptions {
  /** Folder of the built page. */
  readonly folder: string;
  /** Returns the content of settings.json. Called at each request. */
  readonly settings: (enclaveUrl: string) => object;
  readonly enclaveUrl: string;
  readonly counterparts: Readonly<Record<Counterpart, string>>;
}

export function createDappServer({ folder, settings, enclaveUrl, counterparts }: DappOptions): Server {
  const script = readFileSync(fileURLToPath(new URL('row.js', import.meta.url)));
  const row = JSON.stringify([
    { path: '/', ...HONEST },
    ...COUNTERPARTS.map((name) => ({ path: `/broken/${name}/`, ...CASES[name] })),
  ]);
  return createServer(({ method, url }, response) => {
    if (method !== 'GET' && method !== 'HEAD') return void response.writeHead(405).end();
    const path = readPath(url);
    if (path === SCRIPT) return sendFile(response, path, script);
    if (path === ROW) return sendFile(response, path, row);
    const [, name, counterpartPath] = BROKEN.exec(path) ?? [];
    const counterpart = COUNTERPARTS.find((candidate) => candidate === name);
    const file = counterpart === undefined ? path : counterpartPath || 'index.html';
    if (file === 'settings.json') {
      const url = counterpart === undefined ? enclaveUrl : counterparts[counterpart];
      return sendFile(response, file, JSON.stringify(settings(url)));
    }
    sendBuilt(response, folder, file);
  });
}

/** Sends a file of the dapp in its latest build. */
function sendBuilt(response: ServerResponse, folder: string, file: string): void {
  // Only names that the folder lists are served, so no path can leave the folder.
  const isBuilt = existsSync(folder) && listFiles(folder).includes(file);
  if (!isBuilt) return void response.writeHead(404).end();
  const content = readFileSync(join(folder, file));
  const element = `<head>\n<script type="module" src="/${SCRIPT}"></script>`;
  const isPage = extname(file) === '.html';
  sendFile(response, file, isPage ? content.toString().replace('<head>', () => element) : content);
}
