/**
 * Keeps root and registers in the session storage of the tab, for a reload. If the storage is forbidden or
 * full, nothing is kept. Content that this version of the page did not write is ignored.
 */
import { type Image, parsePcrs } from 'sui-enclave/attestation';
import { fromHex, toHex } from '../lib/bytes.ts';
import type { Given } from './files.ts';

const KEY = 'sui-enclave.expected';

type KeptFile = Extract<Given, { kind: 'registers' | 'roots' }>;

export interface Kept {
  /** The address that they are for, as `URL` writes it. */
  readonly address: string;
  readonly files: readonly Given[];
  /** The kinds of files of the page's own server that the person has removed. */
  readonly removed: readonly Given['kind'][];
}

/** Replaces the kept files, or removes them if there are no new ones. A refused file is not kept. */
export function keep({ address, files, removed }: Kept): void {
  const keptFiles = files.filter(
    (file): file is KeptFile => file.kind === 'registers' || file.kind === 'roots',
  );
  if (keptFiles.length === 0 && removed.length === 0) {
    forget();
    return;
  }
  try {
    sessionStorage.setItem(KEY, JSON.stringify({ address, files: keptFiles.map(write), removed }));
  } catch {
    // Older files must not come back in place of these.
    forget();
  }
}

export function forget(): void {
  try {
    sessionStorage.removeItem(KEY);
  } catch {
    // This is harmless: such a storage can't be read either, or its files serve only their own address.
  }
}

/** Returns what is kept for this address; undefined if nothing is. */
export function recall(address: string): Kept | undefined {
  try {
    const { address: keptAddress, files, removed } = JSON.parse(sessionStorage.getItem(KEY) ?? '{}');
    if (keptAddress !== address) return undefined;
    return { address, files: files.map(read), removed: removed.filter(isKind) };
  } catch {
    return undefined;
  }
}

function write(file: KeptFile) {
  const { kind, name } = file;
  const texts = file.kind === 'roots' ? file.roots.map(toHex) : file.images.map(writeRegisters);
  return { kind, name, texts };
}

/** @throws Error if `write` did not make it */
function read({ kind, name, texts }: { kind: unknown; name: unknown; texts: string[] }): KeptFile {
  if (typeof name !== 'string') throw new TypeError('the name is not a text');
  if (kind === 'registers') return { kind, name, images: texts.map(parsePcrs) };
  if (kind === 'roots') return { kind, name, roots: texts.map(readHex) };
  throw new TypeError('files of this kind are not kept');
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

function isKind(kind: unknown): kind is Given['kind'] {
  return kind === 'registers' || kind === 'roots';
}
