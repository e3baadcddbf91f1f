/**
 * Reads the files of a commit in a process of its own: parsers of YAML and JSON take hours for some files.
 */
import { type Bounds, computeApart } from './apart.ts';
import { type AuditedSource, type OwnFramework, readSource } from './source.ts';
import type { Tree } from './tree.ts';

interface Order {
  readonly tree: Tree;
  readonly folder: string;
  readonly framework: OwnFramework;
}

/** Runs `readSource` within limits. @throws AuditError, with SOURCE_TOO_LARGE at a limit */
export async function readSourceApart(
  tree: Tree,
  folder: string,
  framework: OwnFramework,
  bounds?: Bounds,
): Promise<AuditedSource> {
  const task = { module: import.meta.url, name: 'readOrder' };
  const order: Order = { tree, folder, framework };
  return await computeApart('reading the files of the commit', task, order, { bounds });
}

/** Reads a source; runs in the child process. */
export async function readOrder(order: unknown): Promise<AuditedSource> {
  const { tree, folder, framework } = order as Order;
  return readSource(tree, folder, framework);
}
