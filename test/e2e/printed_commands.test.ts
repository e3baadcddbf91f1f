/**
 * The names of the packages are not reserved in the public registry. No command that a page, a help text or a
 * template prints may ask for them there: anyone who claimed a name would run code beside an admin's keys.
 */
import { execFile } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PRINTING_FILES = [
  '*.md',
  '{src,scripts,deploy,enclave,move}/**/*.md',
  '{src/cli,src/toolchain,src/create,scripts/check/pack}/**/*.{ts,txt}',
  'src/create/templates/repository/.ci/run',
];
/** Matches commands that may ask a registry for a package that is not installed. */
const REGISTRY_COMMAND =
  /\b(?:npx|bunx|(?:pnpm|yarn) dlx|npm (?:exec|x|init|create|install|i|add)\b)[^`'"\n#]*/g;

/**
 * Returns the commands that pages, help texts and templates print, with a version and a folder in place of
 * their placeholders.
 */
function listPrintedCommands(): string[] {
  const files = globSync(PRINTING_FILES, { cwd: ROOT, exclude: ['**/node_modules/**'] });
  const texts = files.map((file) => readFileSync(join(ROOT, file), 'utf8'));
  const commands = texts.flatMap((text) => text.match(REGISTRY_COMMAND) ?? []);
  const filled = commands.map((command) =>
    command
      .replace(/<version>|\$\{version\}/g, '0.1.0')
      .replace(/\$\{[^}]*\}/g, ' ')
      .replace(/<(?:clone|folder|module|function)>/g, './none'),
  );
  return [...new Set(filled.map((command) => command.trim()))];
}

/** Runs a command in an empty folder. @returns the paths that it requests from a registry */
async function listRequests(command: string): Promise<string[]> {
  const requestedPaths: string[] = [];
  const registry = createServer((request, response) => {
    requestedPaths.push(decodeURIComponent(request.url ?? ''));
    response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
  });
  await new Promise<void>((resolve) => {
    registry.listen(0, '127.0.0.1', resolve);
  });
  const folder = mkdtempSync(join(tmpdir(), 'printed-'));
  onTestFinished(() => {
    registry.close();
    rmSync(folder, { recursive: true });
  });
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    npm_config_registry: `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`,
    npm_config_cache: join(folder, 'cache'),
    npm_config_yes: 'true',
    npm_config_fetch_retries: '0',
    npm_config_audit: 'false',
  };
  // The command may fail, since there is nothing to install.
  await new Promise<void>((resolve) => {
    execFile('sh', ['-c', command], { cwd: folder, env, timeout: 60_000 }, () => resolve());
  });
  return requestedPaths;
}

test('listRequests detects a command that asks for a package of this project', {
  timeout: 60_000,
}, async () => {
  expect(await listRequests('npx sui-enclave --help')).toContainEqual(expect.stringContaining('sui-enclave'));
});

test.each(listPrintedCommands())(
  '%s asks for no package of this project',
  { timeout: 60_000 },
  async (command) => {
    expect((await listRequests(command)).filter((path) => path.includes('sui-enclave'))).toEqual([]);
  },
);
