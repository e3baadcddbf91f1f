export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** Decodes hexadecimal after removing white space. Returns undefined if the text is not hexadecimal. */
export function fromHex(text: string): Uint8Array<ArrayBuffer> | undefined {
  const digits = text.replace(/\s+/g, '').replace(/^0x/, '');
  if (!/^([0-9a-fA-F]{2})+$/.test(digits)) return undefined;
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}
