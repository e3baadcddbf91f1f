/** Installs the server's tarball with its peers, and lets an application answer requests in it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createPublicKey, verify } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { bcs } from '@mysten/bcs';
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

const FIXTURES = join(ROOT, 'test/e2e/package_server');
/** Message that the application of FIXTURES signs. */
const Message = bcs.struct('IntentMessage', {
  intent: bcs.u8(),
  timestamp_ms: bcs.u64(),
  payload: bcs.struct('Stock', { item: bcs.string(), left: bcs.u64() }),
});
/** Beginning of a SubjectPublicKeyInfo before an Ed25519 key's 32 bytes (RFC 8410, section 4). */
const SPKI_PREFIX = '302a300506032b6570032100';

/** @param tarball returns the path of the server's tarball, once it is packed */
export function serverSteps(work: string, tarball: () => string): Steps {
  /** Folder with the files of the tarball. */
  const packageFolder = join(work, 'server/package');
  const project = join(work, 'server_app');
  const readme = () => readFileSync(join(packageFolder, 'README.md'), 'utf8');

  return {
    async 'the server ships compiled JavaScript with declarations, and no source'() {
      await unpack(tarball(), join(work, 'server'));
      const paths = globSync('**/*.*', { cwd: packageFolder });
      const otherFiles = paths.filter((path) => !/\.(c?js|d\.c?ts)$/.test(path));
      expectEqual(otherFiles.sort(), ['README.md', 'package.json', 'server/nsm/addon.cc']);
      return `${quantity(paths.length, 'file')}, ${quantity(statSync(tarball()).size, 'byte')} packed`;
    },

    async "the server's manifest lists what it imports, at the versions pinned here, and exact peers"() {
      const { exports, peerDependencies } = readPublished(packageFolder);
      const peers = ['@mysten/bcs', 'valibot'].map((name) => [name, installedVersion(name)]);
      expectEqual(peerDependencies, Object.fromEntries(peers));
      const count = await checkDependencies(
        packageFolder,
        Object.values(exports).map((conditions) => conditions.default),
      );
      return quantity(count, 'package');
    },

    async "it installs by its README's command, and brings no second copy of its dependencies"() {
      const { version, engines, dependencies, peerDependencies } = readPublished(packageFolder);
      const [, minimum] = /Node ([\d.]+) or newer/.exec(readme()) ?? [];
      expectEqual(engines, { node: `>=${minimum}` });
      const [, file, peers = ''] = /^npm install (\S+) (.*)$/m.exec(readme()) ?? [];
      expectEqual(file, `./sui-enclave-server-${version}.tgz`);
      mkdirSync(project);
      copyFileSync(tarball(), join(project, file ?? ''));
      writeFileSync(join(project, 'package.json'), JSON.stringify({ type: 'module', private: true }));
      const types = [...readme().matchAll(/`(@types\/\w+)`/g)].map(([, name = '']) => name);
      expectEqual(types, ['@types/node', '@types/express']);
      const installedFiles = [
        file ?? '',
        ...peers.split(' '),
        ...types.map((name) => `${name}@${installedVersion(name)}`),
      ];
      await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', ...installedFiles], {
        cwd: project,
      });
      // Only declared packages count, since Express and axios each bring their own table of media types.
      const declaredNames = Object.keys({ ...dependencies, ...peerDependencies });
      expectEqual(
        listDuplicates(project).filter((name) => declaredNames.includes(name)),
        [],
      );
      const { stdout } = await run('du', ['-sm', 'node_modules'], { cwd: project });
      return `${stdout.split('\t')[0]} MB in node_modules`;
    },

    async "TypeScript accepts its types, its README's application and an application with errors, and refuses misuse of the types"() {
      writeReadmeFiles(readme(), project);
      const yaml = readFileSync(join(project, 'apps/greeting/app.yaml'));
      mkdirSync(join(project, 'apps/stock'));
      writeFileSync(join(project, 'apps/stock/app.yaml'), yaml);
      copyFileSync(join(FIXTURES, 'app.ts.txt'), join(project, 'apps/stock/app.ts'));
      copyFileSync(join(FIXTURES, 'forbidden.ts.txt'), join(project, 'forbidden.ts'));
      const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
      const options = ['--strict', '--exactOptionalPropertyTypes', '--noEmit', '--target', 'es2024'];
      const files = ['apps/greeting/app.ts', 'apps/stock/app.ts', 'forbidden.ts', 'main.js'];
      const js = ['--allowJs', '--checkJs', '--types', 'node', '--module', 'nodenext'];
      await run(process.execPath, [tsc, ...options, ...js, ...files], { cwd: project });
      return 'by the rules of Node, libraries checked as well';
    },

    async "its README's main.js starts it: it signs its answer, and an application's error keeps its status"() {
      const { url, publicKey, stop } = await start(project, 'stock');
      try {
        const [status, { response, signature }] = await ask(url, { item: 'tea' });
        expectEqual(status, 200);
        const { intent, timestamp_ms, data } = response;
        expectEqual(
          { intent, timestamp_ms, data },
          { intent: 7, timestamp_ms: 1_700_000_000_000, data: { item: 'tea', left: 3 } },
        );
        const payload = { item: 'tea', left: 3n };
        const bytes = Message.serialize({ intent, timestamp_ms, payload }).toBytes();
        const key = createPublicKey({
          key: Buffer.from(SPKI_PREFIX + publicKey, 'hex'),
          format: 'der',
          type: 'spki',
        });
        expectEqual(verify(null, bytes, key, Buffer.from(signature, 'hex')), true);
        const [errorStatus, { code }] = await ask(url, { item: 'ore' });
        expectEqual([errorStatus, code], [422, 'STOCK_UNKNOWN']);
        // The schema comes from the application's own copy of valibot.
        const [invalidStatus, { code: invalidCode }] = await ask(url, { item: 5 });
        expectEqual([invalidStatus, invalidCode], [400, 'INVALID_INPUT']);
      } finally {
        await stop();
      }
      return 'and ends on SIGTERM';
    },

    async "the README's application answers too"() {
      const { url, stop } = await start(project, 'greeting');
      try {
        const [, body] = /`(\{"payload".*\})`/.exec(readme()) ?? [];
        const [status, { response }] = await ask(url, JSON.parse(body ?? '').payload);
        expectEqual([status, response.data.name], [200, 'Ada']);
        return JSON.stringify(response.data);
      } finally {
        await stop();
      }
    },

    async 'only the public entries of the server can be imported'() {
      const privateEntries = [
        ...['keys/key', 'built_addon', 'server/keys/key.js', 'service/log.js', 'library/errors.js'].map(
          (path) => [`sui-enclave-server/${path}`, 'ERR_PACKAGE_PATH_NOT_EXPORTED'] as const,
        ),
        ['sui-enclave-service/errors', 'ERR_MODULE_NOT_FOUND'],
        ['sui-enclave/errors', 'ERR_MODULE_NOT_FOUND'],
      ] as const;
      const code = `
        const codes = ${JSON.stringify(privateEntries.map(([name]) => name))}.map((name) =>
          import(name).then(() => 'loaded', ({ code }) => code));
        console.log(JSON.stringify(await Promise.all(codes)));`;
      const { stdout } = await run(process.execPath, ['--input-type=module', '-e', code], { cwd: project });
      expectEqual(
        JSON.parse(stdout),
        privateEntries.map(([, code]) => code),
      );
      return quantity(privateEntries.length, 'name');
    },
  };
}

/** Writes each block of code in a page to the file whose path stands before the block. */
function writeReadmeFiles(readme: string, project: string): void {
  for (const [, path = '', code = ''] of readme.matchAll(/^`([\w./]+)`[^\n]*\n\n```\w+\n(.*?)^```$/gms)) {
    mkdirSync(join(project, path, '..'), { recursive: true });
    writeFileSync(join(project, path), code);
  }
}

interface RunningServer {
  readonly url: string;
  /** Public key of the server in hexadecimal. */
  readonly publicKey: string;
  /** Stops the server's process by SIGTERM. @throws Error if it does not end by itself */
  stop(): Promise<void>;
}

/** Starts main.js. @throws Error with the server's output, if it ends before it listens */
async function start(project: string, app: string): Promise<RunningServer> {
  const env = { PATH: process.env['PATH'], APP: app, PORT: '0' };
  const child = spawn(process.execPath, ['main.js'], {
    cwd: project,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    lines.push(line);
    const { msg, url, public_key: publicKey } = JSON.parse(line);
    if (msg === 'listening') return { url, publicKey, stop: () => end(child) };
  }
  throw new Error(`the server ended before it listened:\n${lines.join('\n')}`);
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  expectEqual(await ended, [0, null]);
}

interface Answer {
  readonly response: {
    readonly intent: number;
    readonly timestamp_ms: number;
    readonly data: Readonly<Record<string, unknown>>;
  };
  readonly signature: string;
  readonly code: string;
}

async function ask(url: string, payload: unknown): Promise<[number, Answer]> {
  const response = await fetch(`${url}/process_data`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ payload }),
  });
  return [response.status, JSON.parse(await response.text())];
}
