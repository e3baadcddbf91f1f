/**
 * Checks the packages as users get them from a registry, which is a fake on loopback. npm publishes
 * them there, a repository is created from them, and they are installed by name.
 */
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { quantity } from '../../../src/library/wording.ts';
import { type FakeRegistry, startFakeRegistry } from './fake_registry.ts';
import { expectEqual, run, type Steps } from './support.ts';

const TOKEN = 'a-token-of-the-fake-registry';
const CREATE = 'create-sui-enclave';

/** Variables that configure npm, or by which it finds a CI's identity for a provenance. */
const HIDDEN = /^(npm_|CI$|CONTINUOUS_INTEGRATION$|BUILD_|RUN_ID$|GITHUB_|GITLAB_|ACTIONS_|SIGSTORE_)/i;

interface Lock {
  readonly packages: Readonly<Record<string, { readonly resolved?: string; readonly version?: string }>>;
}

const readLock = (file: string): Lock => JSON.parse(readFileSync(file, 'utf8'));

/** @param tarballs paths by package, which an earlier step sets */
export function registrySteps(work: string, tarballs: ReadonlyMap<string, string>): Steps {
  const folder = join(work, 'registry');
  const project = join(folder, 'my-app');
  const environment = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !HIDDEN.test(name))),
    npm_config_userconfig: join(folder, 'npmrc'),
    npm_config_prefer_offline: 'true',
  };
  let registry: FakeRegistry | undefined;
  let tag = '';

  const npm = (args: readonly string[], cwd = folder) => run('npm', [...args], { cwd, env: environment });

  /** Starts the fake, and lets npm use it with a cache of its own that shares only the downloads. */
  async function start(): Promise<FakeRegistry> {
    const npmFolder = join(folder, 'npm');
    mkdirSync(npmFolder, { recursive: true });
    const [fallback, cache] = await Promise.all(
      ['registry', 'cache'].map(async (name) => (await run('npm', ['config', 'get', name])).stdout.trim()),
    );
    const downloads = join(cache ?? '', '_cacache');
    mkdirSync(downloads, { recursive: true });
    symlinkSync(downloads, join(npmFolder, '_cacache'));
    const names = new Set(tarballs.keys());
    const started = await startFakeRegistry({ names, fallback: fallback ?? '', token: TOKEN });
    const lines = [
      `registry=${started.url}`,
      `${started.url.replace('http:', '')}:_authToken=${TOKEN}`,
      `cache=${npmFolder}`,
    ];
    writeFileSync(join(folder, 'npmrc'), `${lines.join('\n')}\n`);
    return started;
  }

  /** Checks that the installed packages of this project came from the fake. @returns their number */
  function checkSources(installed: string): number {
    const { packages } = readLock(join(installed, 'node_modules/.package-lock.json'));
    const sources = Object.entries(packages).filter(([path]) =>
      tarballs.has(path.replace('node_modules/', '')),
    );
    for (const [path, { resolved, version }] of sources) {
      const name = path.replace('node_modules/', '');
      const file = `/${name}/-/${name}-${version}.tgz`;
      if (resolved !== undefined) expectEqual(resolved, new URL(file, registry?.url).href);
      expectEqual(registry?.requests.includes(`GET ${file}`), true);
    }
    return sources.length;
  }

  return {
    async 'npm refuses to publish without a provenance, which it is unable to make on this machine'() {
      registry = await start();
      const { stderr } = await npm(['publish', tarballs.get(CREATE) ?? '']).catch((error) => error);
      expectEqual(/EUSAGE|provenance/.test(stderr), true);
      expectEqual(registry.packuments.size, 0);
      return /^npm error (.*provenance.*)$/m.exec(stderr)?.[1] ?? stderr;
    },

    async 'npm publishes them to a fake registry on loopback, each version once'() {
      const files = [...tarballs.values()];
      const publish = (file: string) => npm(['publish', file, '--provenance=false']);
      await Promise.all(files.map(publish));
      for (const { 'dist-tags': tags, versions } of registry?.packuments.values() ?? []) {
        const [published] = Object.values(versions);
        const { publishConfig } = published as unknown as { publishConfig: { tag: string } };
        tag = publishConfig.tag;
        expectEqual([Object.keys(versions).length, tags[tag]], [1, published?.version]);
      }
      expectEqual([...(registry?.packuments.keys() ?? [])].sort(), [...tarballs.keys()].sort());
      const again = await publish(tarballs.get(CREATE) ?? '').catch((error) => error);
      // npm requests only a part of the document. If it finds the version there, it refuses by itself.
      expectEqual(/^npm error (code E403$|You cannot publish over)/m.test(again.stderr), true);
      return `${quantity(files.length, 'package')}, tag ${tag}`;
    },

    async 'npm create sui-enclave writes a repository whose lockfile names no file and no host'() {
      const { stdout } = await npm(['create', '--yes', `sui-enclave@${tag}`, 'my-app']);
      expectEqual(/^my-app has the application my_app\.$/m.test(stdout), true);
      const { packages } = readLock(join(project, 'package-lock.json'));
      expectEqual(
        Object.values(packages).filter(({ resolved }) => resolved !== undefined),
        [],
      );
      return quantity(Object.keys(packages).length, 'locked package');
    },

    async 'create-sui-enclave from a file refuses to write a repository that needs a registry'() {
      const file = `--package=${tarballs.get(CREATE)}`;
      const { stderr } = await npm(['exec', '--yes', file, '--', CREATE, 'my-other-app']).catch(
        (error) => error,
      );
      expectEqual([/^UNPUBLISHED: /m.test(stderr), existsSync(join(folder, 'my-other-app'))], [true, false]);
      return 'UNPUBLISHED';
    },

    async 'npm ci installs it from the registry, and its program runs'() {
      const { stderr } = await npm(['ci'], project);
      expectEqual(stderr, '');
      const count = checkSources(project);
      await run('npx', ['--offline', 'sui-enclave', 'schema', '--check'], { cwd: project, env: environment });
      return `${count} packages of this project`;
    },

    async 'npm install installs the library by its name'() {
      const dapp = join(folder, 'dapp');
      mkdirSync(dapp);
      writeFileSync(join(dapp, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
      await npm(['install', `sui-enclave@${tag}`, '--no-audit', '--no-fund'], dapp);
      checkSources(dapp);
      const code = `import('sui-enclave/client').then(({ EnclaveClient }) => console.log(typeof EnclaveClient))`;
      const { stdout } = await run(process.execPath, ['-e', code], { cwd: dapp });
      expectEqual(stdout, 'function\n');
      registry?.close();
      return 'and its peers';
    },
  };
}
