/** Checks of URLs for private requests. Browser-safe. */

/** Returns whether the URL is https, or http on this machine. */
export function isSecureUrl({ protocol, hostname }: URL): boolean {
  const local = hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]';
  return protocol === 'https:' || (protocol === 'http:' && local);
}
