/** Checks URLs to which private requests are sent. Browser-safe. */

/** Returns whether the URL is https, or http on this machine. */
export function isSecureUrl({ protocol, hostname }: URL): boolean {
  const isLocal = hostname === 'localhost' || hostname === '127.0.0.1' || hostname === '[::1]';
  return protocol === 'https:' || (protocol === 'http:' && isLocal);
}
