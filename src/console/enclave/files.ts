/** Recognizes a dropped file by its content. No content leaves the page. */
import { certificatesFromPem, type Image, parsePcrs } from 'sui-enclave/attestation';
import { fromHex } from '../lib/bytes.ts';
import type { Expectation } from './examine.ts';

/** A file by its content, or the reason why it is refused. */
export type RecognizedFile =
  | { readonly kind: 'document'; readonly name: string; readonly bytes: Uint8Array }
  | { readonly kind: 'registers'; readonly name: string; readonly images: readonly Image[] }
  | { readonly kind: 'roots'; readonly name: string; readonly roots: readonly Uint8Array[] }
  | { readonly kind: 'refused'; readonly name: string; readonly why: string };

/** Maximum size of a file in bytes. A document in hexadecimal has at most 66 KB. */
const MAX_SIZE = 262_144;

export async function readFile(file: File): Promise<RecognizedFile> {
  const { name } = file;
  if (file.size > MAX_SIZE) return { kind: 'refused', name, why: 'it has more than 256 KB' };
  const bytes = new Uint8Array(await file.arrayBuffer());
  return recognizeFile(name, bytes);
}

export function recognizeFile(name: string, bytes: Uint8Array): RecognizedFile {
  const text = decodeText(bytes);
  // The bytes of a document in CBOR are never valid UTF-8.
  if (text === undefined) return { kind: 'document', name, bytes };
  try {
    if (/^-----BEGIN CERTIFICATE-----/m.test(text)) {
      return { kind: 'roots', name, roots: certificatesFromPem(text) };
    }
    if (/\bPCR[0-9]/.test(text)) return { kind: 'registers', name, images: [parsePcrs(text)] };
  } catch (error) {
    return { kind: 'refused', name, why: error instanceof Error ? error.message : 'it is malformed' };
  }
  const document = fromHex(extractHex(text));
  if (document) return { kind: 'document', name, bytes: document };
  return { kind: 'refused', name, why: 'it is not a document, a file of registers or a certificate' };
}

/** Adds new files, which replace the files of the same kind, and removes refused files. */
export function replaceFiles(
  files: readonly RecognizedFile[],
  newFiles: readonly RecognizedFile[],
): readonly RecognizedFile[] {
  const kinds = new Set(newFiles.map(({ kind }) => kind));
  return [...files.filter(({ kind }) => kind !== 'refused' && !kinds.has(kind)), ...newFiles];
}

export function collectExpectation(files: readonly RecognizedFile[]): Expectation {
  return {
    images: files.flatMap((file) => (file.kind === 'registers' ? file.images : [])),
    roots: files.flatMap((file) => (file.kind === 'roots' ? file.roots : [])),
  };
}

/**
 * Returns the hexadecimal digits in an answer of `/get_attestation`. Returns any other text unchanged.
 */
function extractHex(text: string): string {
  return /^\s*\{\s*"attestation"\s*:\s*"([0-9a-fA-F]*)"\s*\}\s*$/.exec(text)?.[1] ?? text;
}

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
