/**
 * `sui-enclave new_app <name>`: writes the price feed of src/apps/README.md under another name. Its files are those
 * of the page, so that the page's tests are theirs.
 */
import { type ExecFileSyncOptions, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EnclaveError } from 'sui-enclave/errors';
import * as v from 'valibot';
import { command, runAsProcess } from '../command.ts';
import { SCHEMA_FILE, schemaFileOf } from '../schema/app_schema.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** A folder of src/apps, a Move package and module, and a part of identifiers. */
const NAME = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;
const MAX_NAME_LENGTH = 32;
/** Move's keywords, and the packages and modules that the price feed uses. */
const RESERVED_IN_MOVE =
  'abort acquires as break const continue copy else enum false friend fun has if invariant let loop match module move mut native phantom public return script spec struct true type use while address bool signer vector u8 u16 u32 u64 u128 u256 clock enclave std string sui unit_test self tx_context';
/** The price feed's files declare or use these, as constants in Move and as types in TypeScript. */
const TAKEN =
  'public_key signature signed_at_ms minute_ms max_age_ms request answer date buffer big_int uint8_array';
const RESERVED = new Set(`${RESERVED_IN_MOVE} ${TAKEN}`.split(' '));

/** Path and content of each file that the page shows. */
export function filesOf(page: string): Map<string, string> {
  const blocks = page.matchAll(/^`([\w./]+)`\n\n```\w+\n(.*?)^```$/gms);
  return new Map([...blocks].map(([, path = '', content = '']) => [path, content]));
}

const pascalCase = (name: string) =>
  name.replace(/(?:^|_)([a-z0-9])/g, (_, first: string) => first.toUpperCase());

/**
 * The price feed's path or content under another name. The page says "price" only where it means the application, and
 * never in the plural, so that every name fits.
 */
export function rename(text: string, name: string): string {
  const forms: Record<string, string> = { price: name, Price: pascalCase(name), PRICE: name.toUpperCase() };
  return text.replace(/price/gi, (form) => forms[form] ?? form);
}

/** The name of an application and of its Move module. */
export const applicationName = v.pipe(
  v.string(),
  v.check(
    (name) => NAME.test(name) && name.length <= MAX_NAME_LENGTH && !RESERVED.has(name),
    `must be lower case letters, digits and single underscores, at most ${MAX_NAME_LENGTH}, and no keyword of Move or name that the files use`,
  ),
  // X would be the one-time witness of the Move module and the signed struct.
  v.check((name) => pascalCase(name) !== name.toUpperCase(), 'must have two letters or more in a row'),
);

/** A file of the application exists already. */
class ExistsError extends EnclaveError {
  readonly code = 'EXISTS';
}

/** @returns the paths that it wrote */
async function write(name: string): Promise<string[]> {
  const files = [...filesOf(readFileSync(join(ROOT, 'src/apps/README.md'), 'utf8'))].map(
    ([path, content]) => [rename(path, name), rename(content, name)] as const,
  );
  const existing = [`src/apps/${name}`, `move/${name}`, ...files.map(([path]) => path)].find((path) =>
    existsSync(join(ROOT, path)),
  );
  if (existing !== undefined) throw new ExistsError(`${existing} exists already: choose another name`);
  for (const [path, content] of files) {
    mkdirSync(dirname(join(ROOT, path)), { recursive: true });
    writeFileSync(join(ROOT, path), content, { flag: 'wx' });
  }
  // Names of another length break lines elsewhere.
  const paths = files.map(([path]) => path);
  const code = paths.filter((path) => path.endsWith('.ts'));
  const options: ExecFileSyncOptions = { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] };
  execFileSync(
    join(ROOT, 'node_modules/.bin/biome'),
    ['check', '--write', '--log-level=error', ...code],
    options,
  );
  const folder = `src/apps/${name}`;
  const schema = join(folder, SCHEMA_FILE);
  writeFileSync(join(ROOT, schema), await schemaFileOf(join(ROOT, folder)), { flag: 'wx' });
  return [...paths, schema];
}

export const main = command({
  name: 'new_app',
  purpose: `Writes an application with its fake upstream, tests and Move package: the price feed of src/apps/README.md under another
name, such as stocks or gas_prices. Existing files are not changed.`,
  arguments: { name: { schema: applicationName } },
  options: {},
  notes: 'exit codes: 0 written; 1 an application or package of that name exists; 2 invalid command line',
  async run({ args: { name } }) {
    const files = await write(name);
    const text = `${files.join('\n')}

Try:   make dev APP=${name}
Test:  npm test -- src/apps/${name} && npm run test:move ${name}
Next:  the host in src/apps/${name}/app.yaml, the type in types.ts and move/${name}. src/apps/README.md explains each file.`;
    return { json: { files }, text };
  },
});

if (import.meta.main) await runAsProcess(main);
