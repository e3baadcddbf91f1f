/** Watches a folder and everything in it. */
import { existsSync, watch } from 'node:fs';

/** Time in milliseconds in which several events count as one save. */
const SETTLE_MS = 200;

/**
 * @param includes whether a path, relative to the folder, counts
 * @param onChange called once for changes that happen together
 * @returns a function that ends the watch
 */
export function watchFolder(
  folder: string,
  includes: (path: string) => boolean,
  onChange: () => void,
): () => void {
  if (!existsSync(folder)) return () => {};
  let settling: NodeJS.Timeout | undefined;
  const watcher = watch(folder, { recursive: true }, (_event, path) => {
    if (path === null || !includes(path)) return;
    clearTimeout(settling);
    settling = setTimeout(onChange, SETTLE_MS);
  });
  // The watcher of a folder ends when the folder is deleted.
  watcher.on('error', () => watcher.close());
  return () => {
    clearTimeout(settling);
    watcher.close();
  };
}
