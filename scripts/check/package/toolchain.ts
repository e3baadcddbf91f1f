/** Installs the toolchain in the project of the server's steps, beside the program and the server. */
import { copyFileSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { quantity } from '../../../src/library/wording.ts';
import {
  checkDependencies,
  expectEqual,
  installedVersion,
  listDuplicates,
  ROOT,
  readPublished,
  run,
  type Steps,
  unpack,
} from './support.ts';

/** Source of an application's fakes, the file `stand_in.ts` in its folder. */
const FAKE = `import { type Fakes, listenOnLoopback } from 'sui-enclave-toolchain/testing/fakes';

export async function start(): Promise<Fakes> {
  const { origin, close } = await listenOnLoopback((_request, response) => response.end('{}'));
  // @ts-expect-error: an origin is a string
  const wrong: number = origin;
  return {
    origins: { 'api.example': origin },
    secrets: {},
    example: { path: '/process_data', body: { payload: { item: 'tea' } } },
    close,
  };
}
`;

/** Source of a test, as the package's page shows it. */
const TEST = `import { startServer } from 'sui-enclave-toolchain/testing/start_server';
import { expect, test } from 'vitest';

test('answers signed', async () => {
  const server = await startServer({ apps: new URL('../', import.meta.url), env: { APP: 'stock' } });
  const answer = await server.post('/process_data', { payload: { item: 'tea' } });
  expect(answer.status).toBe(200);
  expect((await answer.json()).response.data).toEqual({ item: 'tea', left: 3 });
  expect((await server.post('/process_data', { payload: { item: 'ore' } })).status).toBe(422);
  expect(server.printed()).toContain('STOCK_UNKNOWN');
});
`;

/** @param tarball returns the path of a package's tarball, once it is packed */
export function toolchainSteps(work: string, tarball: (name: string) => string): Steps {
  const packageFolder = join(work, 'toolchain/package');
  const [server, cli] = [join(work, 'server/package'), join(work, 'cli/package')];
  const project = join(work, 'server_app');
  const program = join(project, 'node_modules/.bin/sui-enclave');

  return {
    async 'the toolchain ships as compiled JavaScript, without source or a module of the server or the program'() {
      await unpack(tarball('sui-enclave-toolchain'), join(work, 'toolchain'));
      // Files that images are built from do not count.
      const exclude = ['framework/**', 'console/**'];
      const sources = globSync('**/*.{ts,cts,tsx}', { cwd: packageFolder, exclude });
      expectEqual(
        sources.filter((path) => !path.endsWith('.d.ts')),
        [],
      );
      const modules = globSync('**/*.{js,cjs}', { cwd: packageFolder, exclude });
      const otherModules = new Set([server, cli].flatMap((cwd) => globSync('**/*.{js,cjs}', { cwd })));
      expectEqual(
        modules.filter((path) => otherModules.has(path)),
        [],
      );
      const code = [...modules, ...globSync('**/*.d.ts', { cwd: packageFolder, exclude })].map((path) =>
        readFileSync(join(packageFolder, path), 'utf8'),
      );
      for (const [name, folder] of Object.entries({ 'sui-enclave-server': server, 'sui-enclave-cli': cli })) {
        const imports = new RegExp(`["']${name}/(internal/[\\w/]+)["']`, 'g');
        const imported = code.flatMap((text) => [...text.matchAll(imports)].map(([, path]) => `./${path}`));
        const exported = Object.keys(readPublished(folder).exports).filter((entry) => /internal/.test(entry));
        expectEqual(exported, [...new Set(imported)].sort());
      }
      return `${quantity(modules.length, 'module')}, ${quantity(statSync(tarball('sui-enclave-toolchain')).size, 'byte')} packed`;
    },

    async "the toolchain's manifest lists what it imports, at the versions pinned here, and exact peers"() {
      const { version, peerDependencies } = readPublished(packageFolder);
      const peers = ['valibot', 'vitest'].map((name) => [name, installedVersion(name)]);
      const ownPeers = ['sui-enclave-cli', 'sui-enclave-server'].map((name) => [name, version]);
      expectEqual(Object.entries(peerDependencies).sort(), [...peers, ...ownPeers].sort());
      const modules = globSync(['toolchain/**/*.js', 'testing/{fakes,start_server}.js'], {
        cwd: packageFolder,
      });
      return quantity(await checkDependencies(packageFolder, modules), 'package');
    },

    async "it installs beside the server by its README's command, and brings no second copy of the server or of a peer"() {
      const readme = readFileSync(join(packageFolder, 'README.md'), 'utf8');
      const [, words = ''] = /^npm install (.*)$/m.exec(readme) ?? [];
      const files = words.split(' ').filter((word) => word.startsWith('./'));
      const { version, peerDependencies } = readPublished(packageFolder);
      const names = ['sui-enclave-toolchain', 'sui-enclave-cli', 'sui-enclave-server'];
      expectEqual(
        files,
        names.map((name) => `./${name}-${version}.tgz`),
      );
      for (const name of names) copyFileSync(tarball(name), join(project, `${name}-${version}.tgz`));
      await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', ...words.split(' ')], {
        cwd: project,
      });
      const duplicates = listDuplicates(project);
      expectEqual(
        duplicates.filter((name) => Object.hasOwn(peerDependencies, name)),
        [],
      );
      const { stdout } = await run('du', ['-sm', 'node_modules'], { cwd: project });
      return `${stdout.split('\t')[0]} MB in node_modules with the server`;
    },

    async 'the program finds it: each command has a help and refuses an unknown option'() {
      const { stdout } = await run(program, ['--help'], { cwd: project });
      const names = [...stdout.matchAll(/^ {2}(\w+) {2,}\w/gm)].map(([, name = '']) => name);
      for (const name of names) {
        const help = await run(program, [name, '--help'], { cwd: project });
        expectEqual(help.stdout.startsWith(`usage: sui-enclave ${name}`), true);
        const refused = await run(program, [name, '--bogus', '--json'], { cwd: project }).catch(
          (error) => error,
        );
        expectEqual([refused.code, JSON.parse(refused.stdout).code], [2, 'USAGE']);
      }
      return quantity(names.length, 'command');
    },

    async 'an error has its exit code, no matter which package throws it'() {
      const folder = join(work, 'errors');
      mkdirSync(join(folder, 'move/price/sources'), { recursive: true });
      writeFileSync(join(folder, 'package.json'), '{}');
      writeFileSync(join(folder, 'app.ts'), 'export default {};\n');
      writeFileSync(join(folder, 'app.yaml'), 'endpoints: 5\n');
      writeFileSync(join(folder, 'move/price/Move.toml'), '[package]\nname = "price"\n');
      const cases: [argv: string[], exit: number, code: string][] = [
        // The toolchain throws an error of the server's copy of the class. The program catches it, and has
        // another copy.
        [['gen'], 1, 'CONFIG'],
        [['publish', 'price'], 2, 'CONFIG'],
        [['publish', 'nope'], 2, 'USAGE'],
      ];
      const env = { ...process.env, FRAMEWORK: 'other' };
      for (const [argv, exit, code] of cases) {
        const options = { cwd: folder, env };
        const refused = await run(program, [...argv, '--json'], options).catch((error) => error);
        expectEqual([argv, refused.code, JSON.parse(refused.stdout).code], [argv, exit, code]);
      }
      return quantity(cases.length, 'error');
    },

    async "an author's test starts the server of an application by startServer"() {
      writeFileSync(join(project, 'apps/stock/app.test.js'), TEST);
      const vitest = join(project, 'node_modules/vitest/vitest.mjs');
      const { stdout } = await run(process.execPath, [vitest, 'run', 'apps/stock'], { cwd: project });
      return /Tests.*(\d+ passed)/.exec(stdout)?.[1] ?? '';
    },

    async "TypeScript accepts an application's fake that uses the toolchain's types, and refuses misuse of them"() {
      writeFileSync(join(project, 'apps/stock/stand_in.ts'), FAKE);
      const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
      const options = ['--strict', '--exactOptionalPropertyTypes', '--noEmit', '--target', 'es2024'];
      const moreOptions = ['--types', 'node', '--module', 'nodenext', 'apps/stock/stand_in.ts'];
      await run(process.execPath, [tsc, ...options, ...moreOptions], { cwd: project });
      return 'libraries checked as well';
    },
  };
}
