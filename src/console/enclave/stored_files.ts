/**
 * Keeps root and registers in the session storage of the tab, for a reload. If the browser blocks the storage
 * or it is full, nothing is kept. Content that this version of the page did not write is ignored.
 */
import { type Image, parsePcrs } from 'sui-enclave/attestation';
import { fromHex, toHex } from '../lib/bytes.ts';
import type { RecognizedFile } from './files.ts';

const KEY = 'sui-enclave.expected';

type StorableFile = Extract<RecognizedFile, { kind: 'registers' | 'roots' }>;

export interface StoredFiles {
  /** The address to which the files apply, as `URL` writes it. */
  readonly address: string;
  readonly files: readonly RecognizedFile[];
  /** The kinds of files of the page's own server that the user has removed. */
  readonly removed: readonly RecognizedFile['kind'][];
}

/** Replaces the stored files, or removes them if there are no new files. Refused files are not stored. */
export function storeFiles({ address, files, removed }: StoredFiles): void {
  const storableFiles = files.filter(
    (file): file is StorableFile => file.kind === 'registers' || file.kind === 'roots',
  );
  if (storableFiles.length === 0 && removed.length === 0) {
    removeStoredFiles();
    return;
  }
  try {
    sessionStorage.setItem(
      KEY,
      JSON.stringify({ address, files: storableFiles.map(serializeFile), removed }),
    );
  } catch {
    // Older files must not come back in place of these.
    removeStoredFiles();
  }
}

export function removeStoredFiles(): void {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // This is harmless: such a storage can't be read either, or its files serve only their own address.
  }
}

/** Returns what is stored for this address; undefined if nothing is stored. */
export function readStoredFiles(address: string): StoredFiles | undefined {
  try {
    const { address: storedAddress, files, removed } = JSON.parse(sessionStorage.getItem(KEY) ?? '{}');
    if (storedAddress !== address) return undefined;
    return { address, files: files.map(parseFile), removed: removed.filter(isKind) };
  } catch {
    return undefined;
  }
}

function serializeFile(file: StorableFile) {
  const { kind, name } = file;
  const texts = file.kind === 'roots' ? file.roots.map(toHex) : file.images.map(writeRegisters);
  return { kind, name, texts };
}

/** @throws Error if `serializeFile` did not write it */
function parseFile({ kind, name, texts }: { kind: unknown; name: unknown; texts: string[] }): StorableFile {
  if (typeof name !== 'string') throw new TypeError('the name is not a text');
  if (kind === 'registers') return { kind, name, images: texts.map(parsePcrs) };
  if (kind === 'roots') return { kind, name, roots: texts.map(readHex) };
  throw new TypeError('files of this kind are not stored');
}

/** Writes what `parsePcrs` reads: the library publishes no writer. */
function writeRegisters({ pcr0, pcr1, pcr2 }: Image): string {
  return `${pcr0} PCR0\n${pcr1} PCR1\n${pcr2} PCR2`;
}

function readHex(text: string): Uint8Array {
  const bytes = fromHex(text);
  if (bytes === undefined) throw new TypeError('it is not hexadecimal');
  return bytes;
}

function isKind(kind: unknown): kind is RecognizedFile['kind'] {
  return kind === 'registers' || kind === 'roots';
}
