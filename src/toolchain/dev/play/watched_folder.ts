/** Watches a folder with all that is in it. */
import { existsSync, watch } from 'node:fs';

/** One save may be several events. */
const SETTLE_MS = 200;

/**
 * @param includes whether a path, from the folder, counts
 * @param onChange called once for changes that come together
 * @returns a function that ends it
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
  // A folder that is deleted ends its watcher.
  watcher.on('error', () => watcher.close());
  return () => {
    clearTimeout(settling);
    watcher.close();
  };
}
