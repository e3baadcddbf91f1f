/** Installs the tarball of the commands in the project of the server's steps, beside the server. */
import { copyFileSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMANDS } from '../../../src/cli/commands.ts';
import { quantity } from '../../../src/library/wording.ts';
import {
  checkDependencies,
  expectEqual,
  installedTwice,
  ROOT,
  readPublished,
  run,
  type Steps,
  versionHere,
} from './support.ts';

/** In an application's folder it is `stand_in.ts`. */
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

/** As the page of the package has it. */
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

/** @param tarball its path, once it is packed */
export function commandsSteps(work: string, tarball: () => string): Steps {
  const shipped = join(work, 'commands/package');
  const [server, project] = [join(work, 'server/package'), join(work, 'server_app')];

  return {
    async 'the commands ship as compiled JavaScript with declarations, without source or a module of the server'() {
      mkdirSync(join(work, 'commands'));
      await run('tar', ['-xzf', tarball(), '-C', join(work, 'commands')]);
      // The page of the console is bundled.
      const modules = globSync('**/*.js', { cwd: shipped, exclude: ['console/**'] });
      const declarations = globSync('**/*.d.ts', { cwd: shipped });
      expectEqual(declarations.sort(), modules.map((path) => path.replace(/\.js$/, '.d.ts')).sort());
      // But for what images are built from.
      const sources = globSync('**/*.{ts,cts}', { cwd: shipped }).filter(
        (path) => !path.endsWith('.d.ts') && !path.startsWith('framework/'),
      );
      expectEqual(sources, []);
      const inServer = new Set(globSync('**/*.{js,cjs}', { cwd: server }));
      expectEqual(
        modules.filter((path) => inServer.has(path)),
        [],
      );
      const code = globSync('**/*.{js,d.ts}', { cwd: shipped }).map((path) =>
        readFileSync(join(shipped, path), 'utf8'),
      );
      const internal = code.flatMap(
        (text) => text.match(/(?<=["']sui-enclave-server\/)internal\/[\w/]+/g) ?? [],
      );
      const exported = Object.keys(readPublished(server).exports).filter((entry) => /internal/.test(entry));
      expectEqual(
        exported,
        [...new Set(internal)].sort().map((path) => `./${path}`),
      );
      const commands = globSync('commands/**/*.ts', { cwd: join(ROOT, 'src') });
      expectEqual(modules.filter((path) => path.startsWith('commands/')).length, commands.length);
      return `${quantity(modules.length, 'module')}, ${quantity(statSync(tarball()).size, 'byte')} packed`;
    },

    async "the commands' manifest lists what they import, at the versions pinned here, and exact peers"() {
      const { version, peerDependencies } = readPublished(shipped);
      const peers = ['@mysten/bcs', 'valibot', 'vitest'].map((name) => [name, versionHere(name)]);
      const expected = Object.fromEntries([...peers, ['sui-enclave-server', version]]);
      expectEqual(Object.entries(peerDependencies).sort(), Object.entries(expected).sort());
      const modules = globSync(['commands/**/*.js', 'testing/{fakes,start_server}.js'], { cwd: shipped });
      return quantity(await checkDependencies(shipped, modules), 'package');
    },

    async "they install beside the server by their README's command, and bring no second copy of it or of a peer"() {
      const readme = readFileSync(join(shipped, 'README.md'), 'utf8');
      const [, wanted = ''] = /^npm install (.*)$/m.exec(readme) ?? [];
      const files = wanted.split(' ').filter((word) => word.startsWith('./'));
      const { version, peerDependencies } = readPublished(shipped);
      expectEqual(files, [`./sui-enclave-cli-${version}.tgz`, `./sui-enclave-server-${version}.tgz`]);
      copyFileSync(tarball(), join(project, files[0] ?? ''));
      await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', ...wanted.split(' ')], {
        cwd: project,
      });
      const twice = installedTwice(project);
      expectEqual(
        twice.filter((name) => Object.hasOwn(peerDependencies, name)),
        [],
      );
      const { stdout } = await run('du', ['-sm', 'node_modules'], { cwd: project });
      return `${stdout.split('\t')[0]} MB in node_modules with the server`;
    },

    async 'the program lists its commands and runs them, each by its name'() {
      const program = join(project, 'node_modules/.bin/sui-enclave');
      const { stdout } = await run(program, ['--help'], { cwd: project });
      const names = [...stdout.matchAll(/^ {2}(\w+) {2,}\w/gm)].map(([, name = '']) => name);
      const [here, inClone] = [false, true].map((needsClone) =>
        Object.keys(COMMANDS).filter((name) => (COMMANDS[name]?.inClone === true) === needsClone),
      ) as [string[], string[]];
      expectEqual(names.sort(), here.sort());
      for (const name of inClone) {
        const refused = await run(program, [name, '--json'], { cwd: project }).catch((error) => error);
        expectEqual([refused.code, JSON.parse(refused.stdout).code], [2, 'USAGE']);
      }
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

    async "an author's test starts the server of an application by startServer"() {
      writeFileSync(join(project, 'apps/stock/app.test.js'), TEST);
      const vitest = join(project, 'node_modules/vitest/vitest.mjs');
      const { stdout } = await run(process.execPath, [vitest, 'run', 'apps/stock'], { cwd: project });
      return /Tests.*(\d+ passed)/.exec(stdout)?.[1] ?? '';
    },

    async "TypeScript accepts an application's fake on their types, and refuses what they forbid"() {
      writeFileSync(join(project, 'apps/stock/stand_in.ts'), FAKE);
      const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
      const options = ['--strict', '--exactOptionalPropertyTypes', '--noEmit', '--target', 'es2024'];
      const rest = ['--types', 'node', '--module', 'nodenext', 'apps/stock/stand_in.ts'];
      await run(process.execPath, [tsc, ...options, ...rest], { cwd: project });
      return 'libraries checked as well';
    },
  };
}
