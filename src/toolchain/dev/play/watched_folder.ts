/** Watches a folder and everything in it. */
import { existsSync, watch } from 'node:fs';

/** Time in milliseconds in which several events count as one save. */
const SETTLE_MS = 200;

/**
 * Calls a function when a path in the folder changes.
 *
 * @param includes returns whether changes of a path count; the path is relative to the folder
 * @param onChange called once for changes that happen together
 * @returns a function that ends the watch
 */
export function watchFolder(
  folder: string,
  includes: (path: string) => boolean,
  onChange: () => void,
): () => void {
  if (!existsSync(folder)) return () => {};
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch(folder, { recursive: true }, (_event, path) => {
    if (path === null || !includes(path)) return;
    clearTimeout(timer);
    timer = setTimeout(onChange, SETTLE_MS);
  });
  // The watcher of a folder ends when the folder is deleted.
  watcher.on('error', () => watcher.close());
  return () => {
    clearTimeout(timer);
    watcher.close();
  };
}
