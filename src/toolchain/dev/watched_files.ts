/**
 * Watches files for `make dev`, however a program saves them: in place, or by renaming a new file over the
 * old one.
 */
import { existsSync, type FSWatcher, watch } from 'node:fs';
import { dirname, join, sep } from 'node:path';

/**
 * Watches the folders of the files, not the files: a watcher of a file goes deaf when another file takes its
 * name, which is how `sed -i`, git and many editors save.
 */
export class WatchedFiles {
  readonly #onChange: (file: string) => void;
  #files = new Set<string>();
  /** Files that were added in the present round. */
  #added = new Set<string>();
  readonly #folders = new Map<string, { readonly watcher: FSWatcher; readonly round: number }>();
  #round = 0;

  /**
   * @param onChange called with the path of a file that was saved, created or deleted; several times for one
   *   save
   */
  constructor(onChange: (file: string) => void) {
    this.#onChange = onChange;
  }

  /**
   * Begins a round: files that are added from now on replace the present ones as soon as `finishRound` is
   * called.
   */
  beginRound(): void {
    this.#round += 1;
    this.#added = new Set();
  }

  /** @param file absolute path; the file, and even its folder, need not exist */
  add(file: string): void {
    this.#files.add(file);
    this.#added.add(file);
    let folder = dirname(file);
    while (!existsSync(folder)) folder = dirname(folder);
    const watched = this.#folders.get(folder);
    if (watched?.round === this.#round) return;
    // A new watcher is made even if the folder has one: the folder may have been deleted and created again.
    const watcher = watch(folder, (event, name) => {
      if (name !== null) this.#notice(event, join(folder, name));
    });
    // A folder that is deleted ends its watcher, here or without an error.
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
    // A folder that appears may bring a file along.
    const isMeant =
      this.#files.has(path) ||
      (event === 'rename' && [...this.#files].some((file) => file.startsWith(path + sep)));
    if (isMeant) this.#onChange(path);
  }
}
