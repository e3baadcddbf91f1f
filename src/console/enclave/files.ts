/** Recognizes a dropped file by its content. No content leaves the page. */
import { certificatesFromPem, type Image, parsePcrs } from 'sui-enclave/attestation';
import { fromHex } from '../lib/bytes.ts';
import type { Expectation } from './examine.ts';

export type Given =
  | { readonly kind: 'document'; readonly name: string; readonly bytes: Uint8Array }
  | { readonly kind: 'registers'; readonly name: string; readonly images: readonly Image[] }
  | { readonly kind: 'roots'; readonly name: string; readonly roots: readonly Uint8Array[] }
  | { readonly kind: 'refused'; readonly name: string; readonly why: string };

/** Maximum size of a file in bytes. A document in hexadecimal has at most 66 KB. */
const MAX_SIZE = 262_144;

export async function readGiven(file: File): Promise<Given> {
  const { name } = file;
  if (file.size > MAX_SIZE) return { kind: 'refused', name, why: 'it has more than 256 KB' };
  const bytes = new Uint8Array(await file.arrayBuffer());
  return recognizeFile(name, bytes);
}

export function recognizeFile(name: string, bytes: Uint8Array): Given {
  const text = decodeText(bytes);
  // A document is CBOR, whose bytes are never such a text.
  if (text === undefined) return { kind: 'document', name, bytes };
  try {
    if (/^-----BEGIN CERTIFICATE-----/m.test(text)) {
      return { kind: 'roots', name, roots: certificatesFromPem(text) };
    }
    if (/\bPCR[0-9]/.test(text)) return { kind: 'registers', name, images: [parsePcrs(text)] };
  } catch (error) {
    return { kind: 'refused', name, why: error instanceof Error ? error.message : 'it is malformed' };
  }
  const document = fromHex(hexIn(text));
  if (document) return { kind: 'document', name, bytes: document };
  return { kind: 'refused', name, why: 'it is not a document, a file of registers or a certificate' };
}

/** Replaces files by added files of the same kind. */
export function replaced(before: readonly Given[], added: readonly Given[]): readonly Given[] {
  const kinds = new Set(added.map(({ kind }) => kind));
  return [...before.filter(({ kind }) => kind !== 'refused' && !kinds.has(kind)), ...added];
}

export function collectExpectation(files: readonly Given[]): Expectation {
  return {
    images: files.flatMap((file) => (file.kind === 'registers' ? file.images : [])),
    roots: files.flatMap((file) => (file.kind === 'roots' ? file.roots : [])),
  };
}

/**
 * Returns the hexadecimal text in an answer of `/get_attestation`. A text that is hexadecimal stays
 * unchanged.
 */
function hexIn(text: string): string {
  return /^\s*\{\s*"attestation"\s*:\s*"([0-9a-fA-F]*)"\s*\}\s*$/.exec(text)?.[1] ?? text;
}

function decodeText(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
