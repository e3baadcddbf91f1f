/**
 * Watches files for `make dev`. It notices a save in place, and a save that renames a new file over the old
 * one.
 */
import { existsSync, type FSWatcher, watch } from 'node:fs';
import { dirname, join, sep } from 'node:path';

/**
 * Watches the folders of the files instead of the files themselves. The watcher of a file would notice
 * nothing after another file takes over its name, and `sed -i`, git and many editors save in this way.
 */
export class WatchedFiles {
  readonly #onChange: (file: string) => void;
  #files = new Set<string>();
  /** Files that were added in the current round. */
  #added = new Set<string>();
  readonly #folders = new Map<string, { readonly watcher: FSWatcher; readonly round: number }>();
  #round = 0;

  /**
   * @param onChange called with the path of a file that was saved, created or deleted; perhaps several times
   *   for a single save
   */
  constructor(onChange: (file: string) => void) {
    this.#onChange = onChange;
  }

  /**
   * Begins a round. When `finishRound` is called, the files that were added since then replace the current
   * ones.
   */
  beginRound(): void {
    this.#round += 1;
    this.#added = new Set();
  }

  /** @param file absolute path. Neither the file nor its folder need exist */
  add(file: string): void {
    this.#files.add(file);
    this.#added.add(file);
    let folder = dirname(file);
    while (!existsSync(folder)) folder = dirname(folder);
    const watched = this.#folders.get(folder);
    if (watched?.round === this.#round) return;
    // A new watcher is made even if the folder has one, since the folder may have been deleted and created
    // again.
    const watcher = watch(folder, (event, name) => {
      if (name !== null) this.#notice(event, join(folder, name));
    });
    // The watcher of a folder ends when the folder is deleted, with this error or without.
    watcher.on('error', () => watcher.close());
    watched?.watcher.close();
    this.#folders.set(folder, { watcher, round: this.#round });
  }

  finishRound(): void {
    this.#files = this.#added;
    for (const [folder, { watcher, round }] of this.#folders) {
      if (round === this.#round) continue;
      watcher.close();
      this.#folders.delete(folder);
    }
  }

  close(): void {
    for (const { watcher } of this.#folders.values()) watcher.close();
    this.#folders.clear();
  }

  #notice(event: string, path: string): void {
    // A new folder may already contain the file.
    const isWatched =
      this.#files.has(path) ||
      (event === 'rename' && [...this.#files].some((file) => file.startsWith(path + sep)));
    if (isWatched) this.#onChange(path);
  }
}
