/**
 * Writes the files of a commit to a folder, from git's objects alone. So no filter, attribute, link or hook
 * of the repository has an effect. The hash of each object is checked.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { quantity } from 'sui-enclave/wording';
import { printable } from 'sui-enclave-cli/printable';
import { AuditError } from './errors.ts';
import { LIMITS, type Limits, type Repository, startGit, stopGit } from './git.ts';

/** An entry that was not written, because it is neither a file nor a folder. */
export interface Omitted {
  readonly path: string;
  readonly kind: 'a link' | 'a submodule' | 'of an unknown kind';
}

export interface Tree {
  readonly folder: string;
  readonly files: number;
  readonly bytes: number;
  readonly omitted: readonly Omitted[];
}

const MAX_DEPTH = 40;
const MAX_PATH = 1000;

/**
 * Writes the files of a commit.
 *
 * @param folder path of a folder that does not exist yet
 * @throws AuditError: COMMIT_MISSING, SOURCE_TOO_LARGE, SOURCE_UNSAFE
 */
export async function writeTree(
  repository: Repository,
  commit: string,
  folder: string,
  limits: Limits = LIMITS,
): Promise<Tree> {
  const objects = new Objects(repository, limits);
  const omitted: Omitted[] = [];
  const folders: string[] = [''];
  const files: [path: string, id: string][] = [];

  async function walk(tree: string, path: string, depth: number): Promise<void> {
    if (depth > MAX_DEPTH) throw tooLarge(`more than ${MAX_DEPTH} levels of folders`);
    for (const { name, mode, id } of readEntries(await objects.read(tree, 'tree'), commit.length / 2)) {
      if (folders.length + files.length + omitted.length > limits.files) {
        throw tooLarge(`more than ${quantity(limits.files, 'file')}`);
      }
      const entryPath = joinPath(path, name);
      if (mode === '40000') {
        folders.push(entryPath);
        await walk(id, entryPath, depth + 1);
      } else if (FILES.includes(mode)) files.push([entryPath, id]);
      else omitted.push({ path: entryPath, kind: KINDS[mode] ?? 'of an unknown kind' });
    }
  }

  try {
    const text = (await objects.read(commit, 'commit')).toString('latin1');
    const [, tree] = /^tree ([0-9a-f]{40,64})\n/.exec(text) ?? [];
    if (tree === undefined) throw unsafe(`the commit ${commit} does not name a tree`);
    await walk(tree, '', 0);
    for (const path of folders) mkdirSync(join(folder, path));
    for (const [path, id] of files) {
      // If the file system treats two names as the same file, the second write fails.
      writeFileSync(join(folder, path), await objects.read(id, 'blob'), { flag: 'wx', mode: 0o644 });
    }
    return { folder, files: files.length, bytes: objects.bytes, omitted };
  } catch (error) {
    throw toAuditError(error);
  } finally {
    objects.close();
  }
}

function joinPath(folder: string, name: string): string {
  const path = folder === '' ? name : `${folder}/${name}`;
  if (path.length > MAX_PATH) throw tooLarge(`paths of more than ${MAX_PATH} characters`);
  return path;
}

/**
 * Returns the error for a commit with names that this file system can't hold, such as two names that differ
 * only in case. Returns other errors unchanged.
 */
function toAuditError(error: unknown): unknown {
  if (error instanceof AuditError) return error;
  const { code = '' } = error as NodeJS.ErrnoException;
  if (!['EEXIST', 'ENAMETOOLONG', 'EINVAL', 'EILSEQ'].includes(code)) return error;
  return unsafe(`a file of the commit can't be written: ${code}`);
}

const FILES: readonly string[] = ['100644', '100755', '100664'];
const KINDS: Readonly<Record<string, Omitted['kind']>> = { 120000: 'a link', 160000: 'a submodule' };

const unsafe = (why: string) => new AuditError('SOURCE_UNSAFE', why);
const tooLarge = (excess: string) => new AuditError('SOURCE_TOO_LARGE', `the commit has ${excess}`);

interface Entry {
  readonly name: string;
  readonly mode: string;
  readonly id: string;
}

/** Reads the entries of a tree, each `<mode> <name> NUL <id>`. @throws AuditError: SOURCE_UNSAFE */
function* readEntries(tree: Buffer, idBytes: number): Generator<Entry> {
  for (let at = 0; at < tree.length; ) {
    const space = tree.indexOf(0x20, at);
    const end = tree.indexOf(0, at);
    if (space < at || end < space || end + 1 + idBytes > tree.length) throw unsafe('a tree is malformed');
    const bytes = tree.subarray(space + 1, end);
    const name = bytes.toString('utf8');
    if (!isPlainName(name) || !Buffer.from(name).equals(bytes)) {
      throw unsafe(`the commit has the name ${JSON.stringify(printable(name))}`);
    }
    const mode = tree.toString('latin1', at, space);
    at = end + 1 + idBytes;
    yield { name, mode, id: tree.toString('hex', at - idBytes, at) };
  }
}

/** Returns whether a name is a single component of a path, and means the same to every program. */
function isPlainName(name: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a name must not have these characters
  return !['', '.', '..'].includes(name) && !/[\x00-\x1f\x7f/]/.test(name) && !/^\.git$/i.test(name);
}

/** Reads objects one after the other from `git cat-file`. */
class Objects {
  /** Size of all objects that were read, in bytes. */
  bytes = 0;
  readonly #child;
  readonly #limits: Limits;
  readonly #chunks: AsyncIterator<Buffer>;
  #buffered: Buffer = Buffer.alloc(0);
  #timedOut = false;
  readonly #timer: NodeJS.Timeout;

  constructor(repository: Repository, limits: Limits) {
    this.#limits = limits;
    this.#child = startGit(repository, ['cat-file', '--batch'], { bytes: 0 });
    this.#child.stderr.resume();
    this.#child.stdin.on('error', () => undefined);
    this.#chunks = this.#child.stdout[Symbol.asyncIterator]();
    this.#timer = setTimeout(() => {
      this.#timedOut = true;
      stopGit(this.#child);
    }, limits.ms);
  }

  close(): void {
    clearTimeout(this.#timer);
    stopGit(this.#child);
  }

  async read(id: string, kind: 'commit' | 'tree' | 'blob'): Promise<Buffer> {
    if (!this.#child.stdin.write(`${id}\n`)) await once(this.#child.stdin, 'drain');
    const header = await this.#readLine();
    const [, type, length = ''] = /^[0-9a-f]+ (\w+) (\d+)$/.exec(header) ?? [];
    if (type === undefined) {
      throw kind === 'commit'
        ? new AuditError('COMMIT_MISSING', `the repository does not have the commit ${id}`)
        : unsafe(`the commit lacks the ${kind} ${id}`);
    }
    if (type !== kind) {
      throw kind === 'commit'
        ? new AuditError('COMMIT_MISSING', `${id} is not a commit, but a ${type}`)
        : unsafe(`${id} is not a ${kind}, but a ${type}`);
    }
    this.bytes += Number(length);
    if (this.bytes > this.#limits.bytes) throw tooLarge(`more than ${this.#limits.bytes / 1e6} MB`);
    const content = await this.#readBytes(Number(length));
    await this.#readBytes(1);
    const hash = createHash(id.length === 64 ? 'sha256' : 'sha1');
    if (hash.update(`${type} ${length}\0`).update(content).digest('hex') !== id) {
      throw unsafe(`the ${kind} ${id} does not match its hash`);
    }
    return content;
  }

  async #readLine(): Promise<string> {
    for (;;) {
      const end = this.#buffered.indexOf(0x0a);
      if (end >= 0) {
        const line = this.#buffered.toString('latin1', 0, end);
        this.#buffered = this.#buffered.subarray(end + 1);
        return line;
      }
      this.#buffered = Buffer.concat([this.#buffered, await this.#readChunk()]);
    }
  }

  async #readBytes(length: number): Promise<Buffer> {
    const chunks = [this.#buffered];
    for (let received = this.#buffered.length; received < length; ) {
      const chunk = await this.#readChunk();
      chunks.push(chunk);
      received += chunk.length;
    }
    const buffer = Buffer.concat(chunks);
    this.#buffered = buffer.subarray(length);
    return buffer.subarray(0, length);
  }

  async #readChunk(): Promise<Buffer> {
    const { value, done } = await this.#chunks.next();
    if (done !== true) return value;
    if (this.#timedOut) throw tooLarge(`more than can be read in ${this.#limits.ms / 1000} s`);
    throw unsafe("git can't read an object of the commit");
  }
}
