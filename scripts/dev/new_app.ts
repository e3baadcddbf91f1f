/**
 * `npm run new_app -- <name>`: writes the price feed of src/apps/README.md under another name. Its files are those
 * of the page, so that the page's tests are theirs.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

const USAGE = `usage: npm run new_app -- <name>

Writes an application with its stand-in, tests and Move package: the price feed of src/apps/README.md under the name,
such as stocks or gas_prices. Nothing that exists is changed.

exit codes: 0 written; 1 something of that name exists; 2 invalid command line`;

/** A folder of src/apps, a Move package and module, and a part of identifiers. */
const NAME = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;
const MAX_NAME_LENGTH = 32;
/** Move's keywords, and the packages and modules that the price feed uses. */
const RESERVED = new Set(
  'abort acquires as break const continue copy else enum false friend fun has if invariant let loop match module move mut native phantom public return script spec struct true type use while address bool signer vector u8 u16 u32 u64 u128 u256 clock enclave std string sui unit_test'.split(
    ' ',
  ),
);

/** Path and content of each file that the page shows. */
export function filesOf(page: string): Map<string, string> {
  const blocks = page.matchAll(/^`([\w./]+)`\n\n```\w+\n(.*?)^```$/gms);
  return new Map([...blocks].map(([, path = '', content = '']) => [path, content]));
}

/** The price feed's path or content under another name; what it says about prices stays. */
export function rename(text: string, name: string): string {
  const pascal = name.replace(/(?:^|_)([a-z0-9])/g, (_, first: string) => first.toUpperCase());
  return text
    .replaceAll('PRICE', name.toUpperCase())
    .replaceAll('Price', pascal)
    .replace(/\bprice(?=_tests\b|::|\.ts\b|\.move\b| = "0x0")/g, name)
    .replace(/(?<=(?:apps|move)\/|::|'|"|`|module )price(?=['"`/;:]|$)/gm, name);
}

/** @throws Error when it can't be the name of an application and of its Move module */
export function checkName(name: string): void {
  if (!NAME.test(name) || name.length > MAX_NAME_LENGTH || RESERVED.has(name)) {
    throw new Error(
      `invalid name: ${name}. Use lower case letters, digits and single underscores, at most ${MAX_NAME_LENGTH}, and no keyword of Move`,
    );
  }
}

function write(name: string): number {
  const files = [...filesOf(readFileSync(join(ROOT, 'src/apps/README.md'), 'utf8'))].map(
    ([path, content]) => [rename(path, name), rename(content, name)] as const,
  );
  const existing = [`src/apps/${name}`, `move/${name}`, ...files.map(([path]) => path)].find((path) =>
    existsSync(join(ROOT, path)),
  );
  if (existing !== undefined) {
    console.error(`${existing} exists already: choose another name`);
    return 1;
  }
  for (const [path, content] of files) {
    mkdirSync(dirname(join(ROOT, path)), { recursive: true });
    writeFileSync(join(ROOT, path), content, { flag: 'wx' });
    console.log(path);
  }
  // Names of another length break lines elsewhere.
  const code = files.map(([path]) => path).filter((path) => path.endsWith('.ts'));
  execFileSync(join(ROOT, 'node_modules/.bin/biome'), ['check', '--write', '--log-level=error', ...code], {
    cwd: ROOT,
    stdio: 'inherit',
  });
  console.log(`
Try:   make dev APP=${name}
Test:  npm test -- test/src/apps/${name} && npm run test:move ${name}
Next:  the host in src/apps/${name}/app.yaml, the type in app.ts and move/${name}. src/apps/README.md explains each file.`);
  return 0;
}

export function main(argv: readonly string[]): number {
  const [name, ...more] = argv;
  if (name === '--help') {
    console.log(USAGE);
    return 0;
  }
  const mistake =
    name === undefined
      ? 'missing argument: <name>'
      : more.length > 0
        ? `unexpected argument: ${more[0]}`
        : '';
  try {
    if (mistake !== '') throw new Error(mistake);
    checkName(name as string);
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`);
    return 2;
  }
  return write(name as string);
}

if (import.meta.main) process.exitCode = main(process.argv.slice(2));
