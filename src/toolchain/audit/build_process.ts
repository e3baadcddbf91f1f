/**
 * Builds an image in a process of its own. Builders and bundlers may print an author's texts, which reach the
 * terminal only as printable lines.
 */

import { IMAGE_CODES, type ImageCode, ImageError } from 'sui-enclave-cli/image/errors';
import { buildEif, type EifBuild } from '../image/build.ts';
import type { ImageInputs, ImageSource } from '../image/context.ts';
import { runApart } from './apart.ts';

interface Order {
  readonly source: ImageSource;
  readonly inputs: ImageInputs;
  readonly build: EifBuild;
}

/**
 * Runs `buildEif` in a process of its own.
 *
 * @param log gets each line that the builder prints
 * @throws ImageError
 */
export async function buildApart(
  { framework, app, appDir, isApart }: ImageSource,
  { needed, packages }: ImageInputs,
  build: EifBuild,
  log: (line: string) => void,
): Promise<string> {
  const source = { framework, app, appDir, isApart };
  const order: Order = { source, inputs: { needed, packages }, build };
  const task = { module: import.meta.url, name: 'buildOrder' };
  const outcome = await runApart('the build', task, order, { log }).catch((cause: Error) => {
    throw new ImageError('COMMAND_FAILED', 'the build ended without a result: see above', { cause });
  });
  if ('value' in outcome) return outcome.value as string;
  const { code, message } = outcome;
  throw new ImageError(Object.hasOwn(IMAGE_CODES, code) ? (code as ImageCode) : 'COMMAND_FAILED', message);
}

/** Builds an image; runs in the child process. */
export async function buildOrder(order: unknown): Promise<string> {
  const { source, inputs, build } = order as Order;
  return await buildEif(source, inputs, build);
}
