/** Checks the manifests and READMEs of the packed packages, as npm and its users read them. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { quantity } from '../../../src/library/wording.ts';
import type { RepositoryManifest } from '../pack.ts';
import { listMismatches, type Versioned } from '../versions.ts';
import { findMistakes } from './lint.ts';
import { expectEqual, ROOT, readPublished, type Steps, unpack } from './support.ts';

/** Copies of a clone's files, from which images and new repositories are made. */
const COPIES = ['framework/**', 'create/templates/**'];

/** Fenced code and code spans, in which nothing is a link. */
const CODE = /^ *```[\s\S]*?^ *```|`[^`\n]+`/gm;
/** Matches the targets of links and references in Markdown, and of links in HTML. */
const TARGETS = /\]\(\s*<?([^)\s>]+)|^ *\[[^\]]+\]:\s*(\S+)|\b(?:href|src)\s*=\s*["']?([^"'\s>]+)/gm;

/** Returns a line for each link in the pages of an unpacked package to a file that the package lacks. */
export function listDeadLinks(folder: string): string[] {
  return globSync('**/*.md', { cwd: folder, exclude: COPIES }).flatMap((page) => {
    const text = readFileSync(join(folder, page), 'utf8').replace(CODE, '');
    const targets = [...text.matchAll(TARGETS)].map((match) => match.slice(1).find(Boolean) ?? '');
    return targets
      .filter((target) => !/^(#|[a-z][a-z0-9+.-]*:)/i.test(target))
      .filter((target) => {
        const path = join(dirname(page), target.replace(/#.*/, ''));
        return path.startsWith('..') || !existsSync(join(folder, path));
      })
      .map((target) => `${page} links to ${target}`);
  });
}

interface Pinned {
  readonly manifest: Versioned;
  readonly lock: { readonly packages: Readonly<Record<string, Versioned>> };
}

/** Returns the manifest and the lockfile's entries of a repository that `create-sui-enclave` writes. */
function readNewRepository(folder: string, version: string): Versioned[] {
  const { manifest, lock }: Pinned = JSON.parse(readFileSync(join(folder, 'create/pinned.json'), 'utf8'));
  const locked = Object.entries(lock.packages).filter(([path]) => /^node_modules\/sui-enclave/.test(path));
  expectEqual(locked.length, 4);
  return [
    { ...manifest, version },
    ...locked.map(([path, entry]) => ({ ...entry, name: path.replace('node_modules/', '') })),
  ];
}

/** @param tarballs paths by package, which an earlier step sets */
export function manifestSteps(work: string, tarballs: ReadonlyMap<string, string>): Steps {
  const findFolder = (name: string) => join(work, 'manifests', name, 'package');
  return {
    async 'publint and arethetypeswrong find no mistake in any of the packages'() {
      for (const [name, file] of tarballs) expectEqual([name, await findMistakes(file)], [name, []]);
      return quantity(tarballs.size, 'package');
    },

    async 'the packages have one version, and depend on each other at exactly that version, also in a new repository'() {
      for (const [name, file] of tarballs) await unpack(file, dirname(findFolder(name)));
      const manifests = [...tarballs.keys()].map((name) => readPublished(findFolder(name)));
      const version = manifests[0]?.version ?? '';
      const written = readNewRepository(findFolder('create-sui-enclave'), version);
      expectEqual(listMismatches(version, [...manifests, ...written]), []);
      return version;
    },

    async 'each manifest tells npm to publish for everyone, with provenance, and names the repository'() {
      const { repository }: RepositoryManifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
      for (const name of tarballs.keys()) {
        const { version, publishConfig, ...manifest } = readPublished(findFolder(name));
        const tag = version.includes('-') ? 'experimental' : 'latest';
        expectEqual(publishConfig, { access: 'public', provenance: true, tag });
        expectEqual(manifest.repository?.url, repository?.url);
        const directory = manifest.repository?.directory;
        if (directory !== undefined) expectEqual(existsSync(join(ROOT, directory, 'package.json')), true);
      }
      return (
        repository?.url ?? 'which package.json does not name yet: only an experimental version can be packed'
      );
    },

    async 'each link in their READMEs names a site, or a file in the package'() {
      for (const name of tarballs.keys()) expectEqual([name, listDeadLinks(findFolder(name))], [name, []]);
      return quantity(tarballs.size, 'package');
    },
  };
}
