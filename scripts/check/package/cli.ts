/** Installs only the program `sui-enclave` into an empty project, as an admin does on a machine with keys. */
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { COMMANDS } from '../../../src/cli/commands.ts';
import { quantity } from '../../../src/library/wording.ts';
import { checkDependencies, expectEqual, ROOT, readPublished, run, type Steps, unpack } from './support.ts';

/** Maximum number of packages in the project, including the project itself. */
const MAX_PACKAGES = 50;

/** Packages that no command needs: a compiler of Move, a bundler, fakes, servers. */
const UNWANTED =
  /^(@zktx\.io\/.*|rolldown|vite|vitest|oidc-provider|axios|express|pino|pacote|sui-enclave(-server|-toolchain)?)$/;

const TOOLCHAIN = 'node_modules/sui-enclave-toolchain';

/** @param tarball returns the path of the program's tarball, once it is packed */
export function cliSteps(work: string, tarball: () => string): Steps {
  const packageFolder = join(work, 'cli/package');
  const project = join(work, 'admin');
  const program = join(project, 'node_modules/.bin/sui-enclave');
  const marker = join(work, 'loaded');

  /** Runs a command that must fail. @returns its exit code and its error in JSON */
  async function runFailing(cwd: string, ...argv: string[]): Promise<[number, Record<string, string>]> {
    const { code, stdout } = await run(program, [...argv, '--json'], { cwd }).catch((error) => error);
    return [code, JSON.parse(stdout)];
  }

  /** Writes a fake toolchain, which creates a file when it is loaded. */
  function writeFakeToolchain(folder: string, version: string): void {
    const to = join(folder, TOOLCHAIN);
    mkdirSync(to, { recursive: true });
    const manifest = { name: 'sui-enclave-toolchain', version, type: 'module', exports: './index.js' };
    writeFileSync(join(to, 'package.json'), JSON.stringify(manifest));
    const code = `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(marker)}, '');\n`;
    writeFileSync(join(to, 'index.js'), code);
  }

  async function expectNoToolchain(cwd: string, reason: RegExp): Promise<void> {
    for (const name of ['dev', 'build', 'audit']) {
      const [code, { code: errorCode, error = '' }] = await runFailing(cwd, name);
      expectEqual([code, errorCode, reason.test(error)], [2, 'TOOLCHAIN', true]);
      expectEqual(error.includes('\n'), false);
      expectEqual(error.includes(`sui-enclave-toolchain-${readPublished(packageFolder).version}.tgz`), true);
    }
    expectEqual(globSync(marker), []);
  }

  return {
    async 'the program ships compiled JavaScript, and no source'() {
      await unpack(tarball(), join(work, 'cli'));
      const sources = globSync('**/*.{ts,cts,tsx}', { cwd: packageFolder });
      expectEqual(sources, []);
      const commands = globSync('cli/**/*.ts', { cwd: join(ROOT, 'src') });
      expectEqual(globSync('cli/**/*.js', { cwd: packageFolder }).length, commands.length);
      return `${quantity(statSync(tarball()).size, 'byte')} packed`;
    },

    async "the program's manifest lists what it imports, at the versions pinned here, and no peer"() {
      expectEqual(readPublished(packageFolder).peerDependencies, {});
      const modules = globSync('cli/**/*.js', { cwd: packageFolder });
      return quantity(await checkDependencies(packageFolder, modules), 'package');
    },

    async "it installs alone by its README's command, with few packages and no compiler, bundler, fake or server"() {
      const [, file] =
        /^npm install (\S+)$/m.exec(readFileSync(join(packageFolder, 'README.md'), 'utf8')) ?? [];
      expectEqual(file, `./sui-enclave-cli-${readPublished(packageFolder).version}.tgz`);
      mkdirSync(project);
      cpSync(tarball(), join(project, file ?? ''));
      writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true }));
      const options = ['--no-audit', '--no-fund', '--prefer-offline'];
      await run('npm', ['install', ...options, file ?? ''], { cwd: project });
      const { stdout } = await run('npm', ['ls', '--all', '--parseable'], { cwd: project });
      const names = stdout
        .trim()
        .split('\n')
        .map((path) => path.split('node_modules/').at(-1) ?? '');
      expectEqual(
        names.filter((name) => UNWANTED.test(name)),
        [],
      );
      expectEqual(names.length > 1 && names.length <= MAX_PACKAGES, true);
      const size = await run('du', ['-sm', 'node_modules'], { cwd: project });
      return `${names.length} of at most ${MAX_PACKAGES}, ${size.stdout.split('\t')[0]} MB`;
    },

    async 'each command has a help and refuses an unknown option; the help of the program marks the commands of the toolchain'() {
      const { stdout } = await run(program, ['--help'], { cwd: project });
      const lines = [...stdout.matchAll(/^([ *]) (\w+) {2,}\w/gm)];
      const names = lines.map(([, , name = '']) => name);
      const [packagedNames, cloneNames] = [false, true].map((needsClone) =>
        Object.keys(COMMANDS).filter((name) => (COMMANDS[name]?.inClone === true) === needsClone),
      ) as [string[], string[]];
      expectEqual(names.sort(), packagedNames.sort());
      let count = 0;
      for (const [, mark, name = ''] of lines) {
        const [code, { code: errorCode }] = await runFailing(project, name, '--bogus');
        expectEqual([code, errorCode], [2, mark === '*' ? 'TOOLCHAIN' : 'USAGE']);
        if (mark === '*') continue;
        const help = await run(program, [name, '--help'], { cwd: project });
        expectEqual(help.stdout.startsWith(`usage: sui-enclave ${name}`), true);
        count++;
      }
      for (const name of cloneNames) {
        const [code, { code: errorCode }] = await runFailing(project, name);
        expectEqual([code, errorCode], [2, 'USAGE']);
      }
      expectEqual(count > 25, true);
      return quantity(count, 'command');
    },

    async 'it verifies a saved document, generates a seed and names its release'() {
      const document = join(ROOT, 'test/vectors/nautilus-weather.hex');
      const pcrs = join(work, 'app/weather.pcrs');
      const argv = ['verify', '--file', document, '--pcrs', pcrs];
      const [exitCode, { code }] = await runFailing(project, ...argv);
      expectEqual([exitCode, code], [1, 'CERTIFICATE_EXPIRED']);
      const at = ['--at', '2025-04-15T02:25:23.696Z'];
      const verified = await run(program, [...argv, ...at, '--json'], { cwd: project });
      expectEqual(JSON.parse(verified.stdout).verdict, 'trusted');
      const seed = await run(program, ['salt_seed', 'generate', join(project, 'seed')], { cwd: project });
      expectEqual(/^fingerprint: [0-9a-f]{32}$/m.test(seed.stdout), true);
      const { stdout } = await run(program, ['--version', '--json'], { cwd: project });
      const { version, pcr1 } = JSON.parse(stdout);
      const expected = readFileSync(join(ROOT, 'enclave/pcr1.txt'), 'utf8').trim();
      expectEqual([version, pcr1], [readPublished(packageFolder).version, expected]);
      return version;
    },

    async 'host_install refuses an image that does not exist'() {
      const [code, { code: errorCode }] = await runFailing(
        project,
        'host_install',
        'blue',
        '--eif',
        'none.eif',
      );
      expectEqual([code, errorCode], [2, 'USAGE']);
      return 'unless it refuses a user other than root first';
    },

    async 'it ships the template that configure_enclave applies, and the files of the HTTPS recipes'() {
      const places = join(project, 'node_modules/sui-enclave-cli/cli/places.js');
      const print = `console.log((await import(${JSON.stringify(places)})).STACK_TEMPLATE)`;
      const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', print], {
        cwd: project,
      });
      const [template, original] = [stdout.trim(), join(ROOT, 'deploy/aws/stack.yaml')].map((path) =>
        readFileSync(path, 'utf8'),
      );
      expectEqual(template, original);
      const folder = join(project, 'node_modules/sui-enclave-cli');
      const recipes = globSync('deploy/{aws/*.yaml,https/*}', { cwd: ROOT }).sort();
      expectEqual(globSync('deploy/{aws/*.yaml,https/*}', { cwd: folder }).sort(), recipes);
      for (const file of recipes.filter((name) => !name.endsWith('.md'))) {
        const [packed, source] = [folder, ROOT].map((place) => join(place, file)) as [string, string];
        expectEqual([file, readFileSync(packed, 'utf8')], [file, readFileSync(source, 'utf8')]);
      }
      return quantity(recipes.length, 'file');
    },

    async 'without the toolchain, its commands say in one line what to install'() {
      await expectNoToolchain(project, /is not installed beside this program/);
      return 'with exit code 2';
    },

    async 'a toolchain in the current folder is not loaded, even in the right version'() {
      const hostile = join(work, 'hostile');
      writeFakeToolchain(hostile, readPublished(packageFolder).version);
      await expectNoToolchain(hostile, /is not installed beside this program/);
      return 'none of its code ran';
    },

    async 'a toolchain of another version beside the program is refused, and not loaded'() {
      writeFakeToolchain(project, '9.9.9');
      await expectNoToolchain(project, /has version 9\.9\.9/);
      // A toolchain of the right version is loaded.
      writeFakeToolchain(project, readPublished(packageFolder).version);
      await run(program, ['dev'], { cwd: project }).catch(() => undefined);
      expectEqual(globSync(marker), [marker]);
      rmSync(join(project, TOOLCHAIN), { recursive: true });
      return 'by its package.json';
    },
  };
}
