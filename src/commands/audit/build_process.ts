/**
 * Builds an image in a process of its own: what builders and bundlers print may have texts of an author, which reach the
 * terminal as printable lines alone. Reads an order from standard input, and writes an answer to standard output.
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import * as v from 'valibot';
import { buildEif, type EifBuild } from '../image/build.ts';
import type { ImageInputs, ImageSource } from '../image/context.ts';
import { IMAGE_CODES, type ImageCode, ImageError } from '../image/errors.ts';
import { printable } from '../printable.ts';

const PROGRAM = `import { buildOrder } from ${JSON.stringify(import.meta.url)}; await buildOrder();`;

/** For a line of a builder. */
const MAX_LINE = 300;

interface Order {
  readonly source: ImageSource;
  readonly needed: ImageInputs['needed'];
  readonly packages: readonly (readonly [
    string,
    ImageInputs['packages'] extends ReadonlyMap<string, infer P> ? P : never,
  ])[];
  readonly build: EifBuild;
}

const Answer = v.pipe(
  v.string(),
  v.parseJson(),
  v.union([
    v.object({ output: v.string() }),
    v.object({
      code: v.picklist(Object.keys(IMAGE_CODES) as [ImageCode, ...ImageCode[]]),
      message: v.string(),
    }),
  ]),
);

/**
 * `buildEif`, without its output as it is.
 *
 * @param log gets what the builder prints, a line at a time
 * @throws ImageError
 */
export async function buildApart(
  { framework, app, appDir, isApart }: ImageSource,
  { needed, packages }: ImageInputs,
  build: EifBuild,
  log: (line: string) => void,
): Promise<string> {
  const order: Order = {
    source: { framework, app, appDir, isApart },
    needed,
    packages: [...packages],
    build,
  };
  const child = spawn(process.execPath, ['--input-type=module', '--eval', PROGRAM], {
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve);
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(JSON.stringify(order));
  createInterface({ input: child.stderr }).on('line', (line) => log(printable(line, MAX_LINE)));
  const [said] = await Promise.all([text(child.stdout), ended]);
  const answer = v.safeParse(Answer, said);
  if (!answer.success) throw new ImageError('COMMAND_FAILED', 'the build ended without a result: see above');
  if ('output' in answer.output) return answer.output.output;
  throw new ImageError(answer.output.code, answer.output.message);
}

/** In the process of its own. */
export async function buildOrder(): Promise<void> {
  const { source, needed, packages, build }: Order = JSON.parse(readFileSync(0, 'utf8'));
  try {
    const output = await buildEif(source, { needed, packages: new Map(packages) }, build);
    console.log(JSON.stringify({ output }));
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    const { code, message } = error;
    console.log(JSON.stringify({ code, message }));
  }
}
