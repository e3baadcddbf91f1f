/**
 * Lists the forms in which bytes may appear in a record of traffic: unchanged, in hexadecimal, and in base64
 * (RFC 4648, sections 4 and 5) at any offset within the encoded bytes. The characters at both ends of
 * the base64 are left out, since they also depend on adjacent bytes.
 */
export function listForms(secret: string | Uint8Array): Buffer[] {
  const bytes = Buffer.from(secret as string);
  const hex = bytes.toString('hex');
  const base64 = [0, 1, 2].flatMap((offset) => {
    const shifted = Buffer.concat([Buffer.alloc(offset), bytes]);
    const groups = shifted.subarray(0, shifted.length - (shifted.length % 3)).subarray(offset === 0 ? 0 : 3);
    return [groups.toString('base64'), groups.toString('base64url')];
  });
  return [bytes, ...[hex, hex.toUpperCase(), ...base64].map((form) => Buffer.from(form))];
}
