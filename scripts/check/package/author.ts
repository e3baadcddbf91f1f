/**
 * Tests an application that has its own repository and comes from the tarballs alone. It is created in an
 * empty folder, tested, and registered on a model of Sui, where a contract accepts its answer.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { quantity } from '../../../src/library/wording.ts';
import {
  expectEqual,
  installedVersion,
  launchBrowser,
  listDuplicates,
  ROOT,
  run,
  type Steps,
} from './support.ts';

const NAME = 'my_oracle';
const READY = /Ctrl-C ends it/;
const BODY = '{"payload":{"pair":"SUI-USD"}}';
/** Folder for the same application in this clone, which git ignores. */
const CLONED = join(ROOT, 'build/author');
const WEATHER = join(ROOT, 'src/apps/weather');
const IMAGE = join(ROOT, 'out/nitro.pcrs');

/** Returns the reason why this clone has no image to compare with; undefined if it has one. */
function findMissingImageReason(): string | undefined {
  if (!existsSync(IMAGE)) return 'run make first, which builds the image of this clone';
  const { commit, unchanged_tree, application } = JSON.parse(
    readFileSync(join(ROOT, 'out/measurements.json'), 'utf8'),
  );
  const head = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: ROOT, encoding: 'utf8' }).trim();
  const isCurrent = commit === head && unchanged_tree === true && application === 'weather';
  return isCurrent ? undefined : 'the image of this clone is of another commit or application';
}

/**
 * Variables that must not reach the steps: this project's tests set them, or an admin sets them for other
 * networks.
 */
const HIDDEN = /^(npm_|SUI_|DEPLOYMENTS$|OUT$|APP$|PORT$|FRAMEWORK$|VITEST)/;

interface Program {
  readonly child: ChildProcess;
  readonly printed: () => string;
  /** Waits until the program has printed a match. @throws Error if the program ends before */
  until(pattern: RegExp): Promise<RegExpExecArray>;
}

interface RunOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly exit?: number;
  /** Whether only standard output matters. */
  readonly quiet?: boolean;
}

const TARGETS = [...readFileSync(join(ROOT, 'Makefile'), 'utf8').matchAll(/^([a-z][\w-]*):/gm)];
/** Matches a command of this repository's Makefile, which no other repository has. */
const MAKE_COMMAND = new RegExp(
  `\\bmake (${TARGETS.map(([, target]) => target).join('|')})\\b|\\b(by|run|with) make\\b`,
);

/** @throws Error if a message tells the author to run a command that the author's repository lacks */
function expectNoMake(printed: string): void {
  const [command] = MAKE_COMMAND.exec(printed) ?? [];
  if (command !== undefined) throw new Error(`an author is told to run "${command}":\n${printed}`);
}

/** @param tarball returns the path of a package's tarball, once it is packed */
export function authorSteps(work: string, tarball: (name: string) => string): Steps {
  const project = join(work, 'author/my-oracle');
  const emptyFolder = join(work, 'empty');
  const programs: Program[] = [];
  /** Time of this project's own steps in seconds, without npm's. */
  let ownSeconds = 0;
  let devUrl = '';
  let nodeUrl = '';
  const environment = (variables: Readonly<Record<string, string>> = {}) => ({
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !HIDDEN.test(name))),
    ...variables,
  });
  const program = join(project, 'node_modules/.bin/sui-enclave');
  const readKey = (folder: string) => readFileSync(join(folder, 'out/dev-sui.key'), 'utf8').trim();
  const sui = () => ({
    SUI_ENCLAVE_NETWORK: 'localnet',
    SUI_ENCLAVE_ROOT: join(project, 'out/dev-root.pem'),
    SUI_PRIVATE_KEY: readKey(project),
    DEPLOYMENTS: join(project, 'deployments'),
  });

  async function timed<T>(action: () => Promise<T>): Promise<T> {
    const begin = performance.now();
    try {
      return await action();
    } finally {
      ownSeconds += (performance.now() - begin) / 1000;
    }
  }

  /** Runs the program `sui-enclave`, which must end with the exit code `exit`. @returns its output */
  async function enclave(
    argv: readonly string[],
    { cwd = project, env = {}, exit = 0, quiet = false }: RunOptions = {},
  ): Promise<string> {
    const options = { cwd, env: environment(env), maxBuffer: 16 << 20 };
    const {
      code = 0,
      stdout,
      stderr,
    } = await timed(() => run(program, [...argv], options).catch((error) => error));
    if (code !== exit)
      throw new Error(`sui-enclave ${argv.join(' ')}: exit code ${code}\n${stdout}${stderr}`);
    expectNoMake(stdout + stderr);
    return quiet ? stdout : stdout + stderr;
  }

  function start(argv: readonly string[], env: Record<string, string>, cwd = project): Program {
    const child = spawn(program, argv, { cwd, env: environment(env), stdio: 'pipe' });
    let printed = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        printed += chunk;
      });
    }
    const started = {
      child,
      printed: () => printed,
      async until(pattern: RegExp) {
        for (;;) {
          const match = pattern.exec(printed);
          if (match !== null) return match;
          if (child.exitCode !== null) throw new Error(`sui-enclave ${argv.join(' ')} ended:\n${printed}`);
          await sleep(50);
        }
      },
    };
    programs.push(started);
    return started;
  }

  /** Starts `play`, and checks that its enclaves are registered as it prints. */
  async function startPlay(cwd: string, deployments: string) {
    const PORT = String(20_000 + 14 * Math.floor(800 * Math.random()));
    const env = { PORT, DEPLOYMENTS: deployments };
    const play = start(['play'], env, cwd);
    await timed(() => play.until(READY));
    const [, argv = ''] = /^ +npx --offline sui-enclave (status .*)$/m.exec(play.printed()) ?? [];
    const status = async () => {
      const printed = await enclave(argv.split(' '), { cwd, env });
      expectEqual([printed.split('registered').length, printed.startsWith('OK: ')], [3, true]);
    };
    await status();
    return { program: play, status };
  }

  /**
   * Uses the page of the template `dapp`: asks, mints, and expects that a lying host's answers are refused.
   */
  async function walkPage(url: string): Promise<void> {
    const browser = await launchBrowser();
    try {
      const page = await browser.newPage();
      await page.goto(url);
      await page.click('#ask:enabled');
      await page.getByText('−0.4 °C').waitFor();
      await page.click('#mint');
      await page.waitForSelector('#minted:not([hidden])');
      expectEqual(/^0x[0-9a-f]{64}$/.test((await page.textContent('#object')) ?? ''), true);
      await page.goto(`${url}broken/changed/`);
      await page.click('#ask:enabled');
      await page.getByText('This page refuses the answer:').waitFor();
      expectEqual(await page.isVisible('#reading'), false);
    } finally {
      await browser.close();
    }
  }

  /** Opens a feed, posts a value, and expects it on the page of the template `feed`. */
  async function walkFeed(cwd: string, { printed }: Program, url: string): Promise<void> {
    const [, enclaves = ''] = /^ +Enclaves +(.*)$/m.exec(printed()) ?? [];
    const [, node = ''] = /^ +Sui node +(.*)$/m.exec(printed()) ?? [];
    const file = join(cwd, 'poster.yaml');
    const urls = enclaves.split(', ').map((enclave) => `  - ${enclave}`);
    const poster = readFileSync(file, 'utf8');
    const moved = poster.replace(/(?<=^enclaves:\n)( {2}- .*\n)+/m, `${urls.join('\n')}\nnode: ${node}\n`);
    writeFileSync(file, moved);
    const env = { ...sui(), DEPLOYMENTS: join(cwd, 'deployments'), SUI_PRIVATE_KEY: readKey(cwd) };
    const target = `${basename(cwd).replaceAll('-', '_')}::open`;
    const opened = await enclave(['call', target, '--rpc-url', node, '--json'], { cwd, env, quiet: true });
    const [feed] = JSON.parse(opened).created;
    await enclave(['post', 'poster.yaml', '--once'], { cwd, env });
    const browser = await launchBrowser();
    try {
      const page = await browser.newPage();
      await page.goto(`${url}?feed=${feed.id}`);
      await page.getByText('1.234500 SUI/USD').first().waitFor();
    } finally {
      await browser.close();
    }
  }

  async function stop({ child, printed }: Program): Promise<void> {
    expectNoMake(printed());
    if (child.exitCode === null) child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'close');
    expectEqual(child.exitCode, 0);
  }

  async function change(path: string, edit: (text: string) => string): Promise<() => void> {
    const file = join(project, path);
    const before = readFileSync(file, 'utf8');
    expectEqual(edit(before) === before, false);
    writeFileSync(file, edit(before));
    return () => writeFileSync(file, before);
  }

  /** Runs `create-sui-enclave` as npm does. */
  async function create(folder: string, ...options: string[]): Promise<{ name: string; files: string[] }> {
    mkdirSync(dirname(folder), { recursive: true });
    const packed = tarball('create-sui-enclave');
    const argv = [folder, '--from', dirname(packed), '--json', ...options];
    const { stdout } = await run(
      'npm',
      ['exec', '--yes', `--package=${packed}`, '--', 'create-sui-enclave', ...argv],
      { cwd: dirname(folder), env: environment() },
    );
    return JSON.parse(stdout);
  }

  const steps: Steps = {
    async 'create-sui-enclave writes a repository, from a folder of tarballs'() {
      const { name, files } = await create(project);
      expectEqual(name, NAME);
      return quantity(files.length, 'file');
    },

    async 'npm ci installs the packages of its lockfile, and no second copy of a package that this project publishes or shares with applications'() {
      const packages = globSync('packages/*.tgz', { cwd: project }).map((file) => `./${file}`);
      await run('npm', ['cache', 'add', ...packages], { cwd: project, env: environment() });
      const npm = (...args: string[]) => run('npm', args, { cwd: project, env: environment() });
      const { stderr } = await npm('ci', '--prefer-offline');
      expectEqual(stderr, '');
      await npm('ls', '--all');
      const shared = [
        'sui-enclave',
        'sui-enclave-cli',
        'sui-enclave-server',
        'sui-enclave-toolchain',
        'valibot',
        '@mysten/bcs',
      ];
      expectEqual(
        listDuplicates(project).filter((name) => shared.includes(name)),
        [],
      );
      const { stdout } = await run('du', ['-sm', 'node_modules'], { cwd: project });
      return `${stdout.split('\t')[0]} MB in node_modules`;
    },

    async 'sui-enclave test passes: types, tests, and the contract with an answer that the application signs'() {
      const printed = await enclave(['test']);
      const [, tests] = /Tests.*?(\d+ passed)/.exec(printed) ?? [];
      const [, move] = /Total tests: \d+; (passed: \d+)/.exec(printed) ?? [];
      return `${tests}; in Move ${move}`;
    },

    async 'sui-enclave schema and gen have nothing to change, until a signed type changes'() {
      await enclave(['schema', '--check']);
      expectEqual((await enclave(['gen', '--check'])).trim(), 'nothing changed');
      const restore = await change('types.ts', (text) =>
        text.replace('cents: u64', 'cents: u64, digits: u64'),
      );
      for (const name of ['schema', 'gen']) await enclave([name, '--check'], { exit: 1 });
      const refused = await enclave(['test', 'generated'], { exit: 1 });
      expectEqual(refused.includes('SCHEMA_OUTDATED: '), true);
      const { files, written } = JSON.parse(await enclave(['gen', '--json']));
      expectEqual([files.length, written], [6, files]);
      await enclave(['schema']);
      await enclave(['test', 'generated']);
      const contract = readFileSync(join(project, `move/${NAME}/sources/signed.move`), 'utf8');
      expectEqual(contract.includes('    digits: u64,\n}'), true);
      restore();
      await enclave(['gen']);
      await enclave(['schema']);
      await enclave(['gen', '--check']);
      await enclave(['schema', '--check']);
      return quantity(files.length + 1, 'file');
    },

    async 'sui-enclave test names the step that fails, and overwrites no file that it did not write'() {
      const mistakes: [step: string, path: string, edit: (text: string) => string][] = [
        ['types', 'types.ts', (text) => `${text}export const wrong: string = 5;\n`],
        ['tests', 'stand_in.ts', (text) => text.replace('cents: 123', 'cents: 124')],
        ['generated', 'types.ts', (text) => text.replace('a pair such as', 'a pair like')],
        ['move', 'types.ts', (text) => text.replaceAll('u64', 'u32')],
        ['move', `move/${NAME}/sources/${NAME}.move`, (text) => text.replace('60 * 1000', '59 * 1000')],
      ];
      for (const [step, path, edit] of mistakes) {
        const restore = await change(path, edit);
        const printed = await enclave(['test', step], { exit: 1 });
        // The application reports its own error for a value that it can't sign.
        expectEqual(/^(Failed: \w+\.|CONFIG: .*)$/m.test(printed), true);
        restore();
      }
      const restore = await change(`move/${NAME}/tests/signed_answer.move`, (text) => `// Mine.\n${text}`);
      expectEqual((await enclave(['test', 'move'], { exit: 1 })).startsWith('CONFIG: '), true);
      restore();
      return quantity(mistakes.length + 1, 'mistake');
    },

    async 'sui-enclave dev answers, with a console, restarts when a file is saved, and keeps the key of the emulated enclave'() {
      const dev = start(['dev'], { PORT: '0', ATTEST: 'emulated' });
      await timed(() => dev.until(READY));
      const [, url = ''] = /curl -s (\S+)\/process_data/.exec(dev.printed()) ?? [];
      devUrl = url;
      const [, page = ''] = await timed(() => dev.until(/Console: {2}(\S+)\/#/));
      const response = await fetch(page);
      expectEqual([response.status, response.headers.get('x-frame-options')], [200, 'DENY']);
      const key = async () =>
        (JSON.parse(await (await fetch(`${url}/health_check`)).text()) as { pk: string }).pk;
      const before = await key();
      const restore = await change('app.ts', (text) => text.replace("'/latest'", "'/newest'"));
      await timed(() => dev.until(/app\.ts has changed: restarting\.[\s\S]*Ctrl-C ends it/));
      expectEqual((await fetch(`${url}/newest?pair=SUI-USD`)).status, 200);
      restore();
      await timed(() => dev.until(/(app\.ts has changed: restarting\.[\s\S]*?Ctrl-C ends it[\s\S]*?){2}/));
      expectEqual((await fetch(`${url}/latest?pair=SUI-USD`)).status, 200);
      expectEqual(await key(), before);
      return 'twice, on the same port';
    },

    async 'on sui-enclave dev-sui the application is published and registered, and a contract accepts its answer'() {
      const node = start(['dev-sui'], { PORT: '0', FAUCET_PORT: '0' });
      await timed(() => node.until(READY));
      [nodeUrl = ''] = /http:\/\/127\.0\.0\.1:\d+/.exec(node.printed()) ?? [];
      // The requests are those of the author's handbook, with other ports.
      const book = readFileSync(join(ROOT, 'src/apps/README.md'), 'utf8');
      const [, section = ''] = /^## In a repository of your own\n([\s\S]*?)^## /m.exec(book) ?? [];
      const lines = [
        ...section.matchAll(
          /^npx --offline sui-enclave ((?:publish|create_config|register_enclave|status|submit) .*|status)$/gm,
        ),
      ];
      for (const [, line = ''] of lines) {
        const words = [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, word = '']) => quoted ?? word);
        const argv = words.map((word) => word.replace('http://127.0.0.1:3000', devUrl));
        await enclave([...argv, '--rpc-url', nodeUrl], { env: sui() });
      }
      const commands = lines.map(([, line = '']) => line.split(' ')[0]);
      expectEqual(commands, ['publish', 'create_config', 'register_enclave', 'status', 'submit']);
      return commands.join(', ');
    },

    async 'sui-enclave play does all of this in one terminal, and publishes again when a signed type changes'() {
      // `play` gets a folder of its own, since the steps after this one use the deployment on dev-sui.
      const { program: play, status } = await startPlay(project, join(work, 'played'));
      const restores = await Promise.all([
        change('types.ts', (text) => text.replace('cents: u64', 'amount: u64')),
        change('app.ts', (text) => text.replace('cents: BigInt', 'amount: BigInt')),
      ]);
      await timed(() => play.until(/The signed types have changed[\s\S]*Published as 0x/));
      await status();
      await enclave(['gen', '--check']);
      for (const restore of restores) restore();
      await timed(() => play.until(/(The signed types have changed[\s\S]*?Published as 0x[\s\S]*){2}/));
      await enclave(['gen', '--check']);
      await stop(play);
      return 'and two enclaves are registered each time';
    },

    async 'sui-enclave audit knows the packages of the framework, and compares a commit with what is on chain'() {
      const folder = join(work, 'audited/my-oracle');
      await create(folder);
      const git = async (...args: string[]) => {
        const { stdout } = await run('git', ['-c', 'user.name=a', '-c', 'user.email=a@a.example', ...args], {
          cwd: folder,
        });
        return stdout.trim();
      };
      await git('init', '-q');
      await git('add', '-A');
      await git('commit', '-q', '-m', 'all');
      const pcrs = join(project, `out/dev-${NAME}.pcrs`);
      const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
      // `dev` writes the same record for a repository that has commits.
      const recordPath = pcrs.replace(/pcrs$/, 'measurements.json');
      const record = {
        ...JSON.parse(readFileSync(recordPath, 'utf8')),
        framework_integrity: lock.packages['node_modules/sui-enclave-toolchain'].integrity,
        commit: await git('rev-parse', 'HEAD'),
        unchanged_tree: true,
      };
      writeFileSync(recordPath, `${JSON.stringify(record, null, 2)}\n`);
      const nodeOptions = ['--rpc-url', nodeUrl, '--json'];
      const source = ['--source-url', 'https://code.example/my-oracle', '--pcrs', pcrs];
      // The new config gets a folder of its own, since the steps after this one use the first config.
      const deployments = join(work, 'audited/deployments');
      cpSync(sui().DEPLOYMENTS, deployments, { recursive: true });
      const created = await enclave(['create_config', 'audited', '--again', ...source, ...nodeOptions], {
        env: { ...sui(), DEPLOYMENTS: deployments },
        quiet: true,
      });
      const { config } = JSON.parse(created);
      const audited = await enclave(['audit', config, '--source', folder, '--quick', ...nodeOptions], {
        env: sui(),
        exit: 3,
        quiet: true,
      });
      const { checks } = JSON.parse(audited) as { checks: { what: string; result: string }[] };
      const same = checks.filter((check) => check.result === 'same').map(({ what: subject }) => subject);
      expectEqual(same.filter((subject) => /^the (framework|package)/.test(subject)).length, 3);
      return same.map((subject) => subject.replace(/0x(\w{6})\w+/, '0x$1…')).join(', ');
    },

    async 'verify, status and submit work outside of a repository, and dev refuses to'() {
      mkdirSync(emptyFolder);
      const options = { cwd: emptyFolder, env: sui() };
      const nodeOptions = ['--rpc-url', nodeUrl];
      const pcrs = join(project, `out/dev-${NAME}.pcrs`);
      await enclave(['verify', devUrl, '--pcrs', pcrs, '--root', sui().SUI_ENCLAVE_ROOT], options);
      expectEqual(
        (await enclave(['status', ...nodeOptions], options)).includes('OK: contracts accept'),
        true,
      );
      await enclave(['submit', `${NAME}::new`, '--url', devUrl, '--body', BODY, ...nodeOptions], options);
      const refused = await enclave(['dev'], { cwd: emptyFolder, exit: 1 });
      expectEqual(refused.startsWith('CONFIG: there is no application here'), true);
      return 'from another folder';
    },

    async 'after these steps, git add adds no key, secret, output or local deployment'() {
      for (const started of programs) await stop(started);
      writeFileSync(join(project, '.env'), 'MY_ORACLE_API_KEY=secret\n');
      await run('git', ['init', '-q'], { cwd: project });
      await run('git', ['add', '-A'], { cwd: project });
      const { stdout } = await run('git', ['ls-files'], { cwd: project });
      const files = stdout.trim().split('\n');
      const { files: written } = await create(join(work, 'again/my-oracle'));
      expectEqual(files.sort(), written.sort());
      const { stdout: filesWithKeys } = await run(
        'git',
        ['grep', '--cached', '-lE', 'suiprivkey|PRIVATE KEY|=secret'],
        {
          cwd: project,
        },
      ).catch((error) => error);
      expectEqual(filesWithKeys, '');
      return `${quantity(files.length, 'file')}, exactly those that create-sui-enclave wrote`;
    },

    async 'its bundle is the same that a clone makes from these files'() {
      const copy = join(CLONED, NAME);
      rmSync(copy, { recursive: true, force: true });
      mkdirSync(copy, { recursive: true });
      for (const file of globSync('{app.yaml,package.json,*.ts,generated/*.ts}', { cwd: project })) {
        cpSync(join(project, file), join(copy, file));
      }
      const cache = ['--cache', join(ROOT, 'build/packages'), '--json'];
      const digest = JSON.parse(await enclave(['bundle_digest', ...cache], { quiet: true }));
      const argv = ['src/cli/main.ts', 'bundle_digest', '--app-dir', copy.slice(ROOT.length), ...cache];
      const { stdout } = await run(process.execPath, argv, { cwd: ROOT });
      expectEqual(digest, JSON.parse(stdout));
      rmSync(copy, { recursive: true });
      return String(digest[NAME]).slice(0, 16);
    },

    async 'weather in a repository of its own has the same registers as in this clone'() {
      const skipped = findMissingImageReason();
      if (skipped !== undefined) return `skipped: ${skipped}`;
      const folder = join(work, 'image/weather');
      await create(folder);
      for (const file of globSync('{app.yaml,schema.json,*.ts}', { cwd: WEATHER })) {
        cpSync(join(WEATHER, file), join(folder, file));
      }
      // Unlike the template, weather has no server.env and depends on axios.
      rmSync(join(folder, 'server.env'));
      for (const file of ['package.json', 'package-lock.json']) {
        const json = JSON.parse(readFileSync(join(folder, file), 'utf8'));
        (json.packages?.[''] ?? json).dependencies['axios'] = installedVersion('axios');
        writeFileSync(join(folder, file), JSON.stringify(json));
      }
      symlinkSync(resolve(project, 'node_modules'), join(folder, 'node_modules'));
      const cache = join(ROOT, 'build/packages');
      // The build is not timed, since most of its minutes pass in the container.
      const options = { cwd: folder, env: environment(), maxBuffer: 16 << 20 };
      await run(program, ['build', '--cache', cache], options);
      const registers = readFileSync(join(folder, 'out/nitro.pcrs'), 'utf8');
      expectEqual(registers, readFileSync(IMAGE, 'utf8'));
      expectEqual(
        readFileSync(join(folder, 'out/nitro.eif')).equals(readFileSync(join(ROOT, 'out/nitro.eif'))),
        true,
      );
      return 'and the same bytes';
    },

    async 'an application of every other template passes its test, and runs in sui-enclave play'() {
      for (const template of ['empty', 'feed', 'weather', 'llm', 'dapp']) {
        const folder = join(work, `author/one-of-${template}`);
        await create(folder, '--template', template);
        symlinkSync(resolve(project, 'node_modules'), join(folder, 'node_modules'));
        const printed = await enclave(['test'], { cwd: folder });
        expectEqual(/^Passed: types, tests, generated, move\.$/m.test(printed), true);
        const { program: play } = await startPlay(folder, join(folder, 'deployments'));
        const [, page] = /^Dapp: {2,}(\S+)$/m.exec(play.printed()) ?? [];
        expectEqual(page !== undefined, ['dapp', 'feed'].includes(template));
        if (page !== undefined) await (template === 'dapp' ? walkPage(page) : walkFeed(folder, play, page));
        await stop(play);
      }
      return `all of this took ${ownSeconds.toFixed(0)} s without npm`;
    },
  };
  // Programs of a failed step must not outlive this process.
  process.once('exit', () => {
    for (const { child } of programs) child.kill('SIGKILL');
  });
  return steps;
}
