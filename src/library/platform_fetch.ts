/**
 * The default way to send a request outside Node: the platform's own fetch. See `imports` in
 * package.json.
 */

/** The platform's current `fetch`, which decodes answers by `Content-Encoding`. */
export const platformFetch: typeof globalThis.fetch = (input, init) => globalThis.fetch(input, init);
