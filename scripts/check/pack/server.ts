/**
 * Packs the published server, which includes the service and those modules of the library that it imports.
 */
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { layOut, listModules, withoutExtension } from './compile.ts';
import {
  formatInstall,
  internalEntries,
  type Manifest,
  makeTarball,
  type Publication,
  ROOT,
  readManifest,
  type Tarball,
} from './tarball.ts';

const FOLDER = join(ROOT, 'build/package-server');

/** Entry that is not published, because its module names a file of a clone. */
const ONLY_IN_A_CHECKOUT = './built_addon';

/** The first version of Node 22 that runs TypeScript, the language of applications. */
export const NODE = '>=22.18';

/** Lists the public entries with the paths of their modules from `src`, without extension. */
function listEntries({ exports }: Manifest): [entry: string, module: string][] {
  return Object.entries(exports)
    .filter(([entry]) => entry !== ONLY_IN_A_CHECKOUT)
    .map(([entry, path]) => [entry, withoutExtension(join('server', path))]);
}

export const serverEntries = () => listEntries(readManifest('server')).map(([, module]) => module);

/** @returns the names of the server's modules in the package, by their paths from `src` without extension */
export function layOutServer(): ReadonlyMap<string, string> {
  const manifest = readManifest('server');
  layOut({ folder: FOLDER, entries: serverEntries(), declared: 'all' });
  return new Map([
    ...listModules(FOLDER).map((module) => [module, `${manifest.name}/internal/${module}`] as const),
    ...listEntries(manifest).map(([entry, module]) => [module, join(manifest.name, entry)] as const),
  ]);
}

/** @param internal modules to export under `./internal`, for the toolchain of exactly the same version */
export function packServer(publication: Publication, internal: readonly string[]): Tarball {
  const manifest = readManifest('server');
  const entries = listEntries(manifest);
  const isPublic = (module: string) => entries.some(([, entry]) => entry === module);
  const internalModules = internal.filter((module) => !isPublic(module));
  // The builder of an image compiles the addon for the Node of that image.
  copyFileSync(join(ROOT, 'src/server/nsm/addon.cc'), join(FOLDER, 'server/nsm/addon.cc'));
  // An application has its own schemas and BCS types, which a second copy of either package would not
  // recognise.
  const { peerDependencies = {} } = manifest;
  writeFileSync(join(FOLDER, 'README.md'), readme(manifest, publication));
  return makeTarball({
    folder: FOLDER,
    manifest,
    directory: 'src/server',
    publication,
    node: NODE,
    peerDependencies,
    entries: {
      ...Object.fromEntries(entries.map(([entry, module]) => [entry, `./${module}`])),
      ...internalEntries(internalModules),
    },
  });
}

function readme({ name, dependencies, peerDependencies = {} }: Manifest, publication: Publication): string {
  const peers = Object.entries(peerDependencies).map(([peer, exact]) => `${peer}@${exact}`);
  const addonApi = dependencies?.['node-addon-api'];
  return `# ${name}

The server that runs inside an AWS Nitro Enclave and signs what an application computes. It needs Node ${NODE.replace('>=', '')} or newer.

\`\`\`sh
${formatInstall(publication, [name], peers)}
\`\`\`

${Object.keys(peerDependencies)
  .map((peer) => `\`${peer}\``)
  .join(
    ' and ',
  )} are peer dependencies, at exactly these versions: the application's own copies are used. In TypeScript, an application needs \`@types/node\` and \`@types/express\` as well.

\`apps/greeting/app.ts\`

\`\`\`ts
import { defineApp, processData, signedType, struct, text, u64 } from '${name}';
import * as v from 'valibot';

const Greeting = signedType(0, struct('Greeting', { name: text, letters: u64 }));
const payload = v.strictObject({ name: v.string() });

export default defineApp({
  signs: [Greeting],
  create: ({ sign }) => ({
    endpoints: [
      processData({
        payload,
        handle: async ({ name }) => sign(Greeting, BigInt(Date.now()), { name, letters: BigInt(name.length) }),
      }),
    ],
  }),
});
\`\`\`

\`apps/greeting/app.yaml\`: the hosts that the application may call, and the secrets that it needs

\`\`\`yaml
endpoints: []
secrets: []
\`\`\`

\`main.js\`

\`\`\`js
import { loadApplication } from '${name}/load_application';
import { start } from '${name}/start';

await start({
  version: '1.0.0',
  load: (name) => loadApplication(new URL('apps/', import.meta.url), name),
  nsmAddon: '/usr/lib/nsm.node',
});
\`\`\`

\`APP=greeting node main.js\` then answers \`POST /process_data\` with \`{"payload": {"name": "Ada"}}\`, on port 3000. Outside an enclave there is no NSM, and the server starts anyway; in an enclave, \`NSM_REQUIRED=true\` prevents that.

The entries under \`internal\` are for the toolchain of the same version, and change without notice.

The package has only the source of the NSM's addon, \`server/nsm/addon.cc\`. Compile it for the image in which the server runs, with the headers of that image's Node and of \`node-addon-api\` ${addonApi}.
`;
}
