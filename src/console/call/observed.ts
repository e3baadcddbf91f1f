/** What the host carried during a call: it forwards every request, and reads what is not sealed. */

export interface Observed {
  /** Of the endpoint, without the address. */
  readonly path: string;
  readonly isSealed: boolean;
  /** In bytes, of the body. */
  readonly sent: number;
  readonly received: number;
  /** What the host could read of it: empty where it is sealed, and where there is none. */
  readonly request: string;
  readonly answer: string;
  /** The key that the answer says it is signed with, in hexadecimal: a claim. */
  readonly key: string | undefined;
}

/** In characters. */
const MAX_KEPT = 65_536;

/** The platform's fetch, which notes what it carries. */
export function observing(seen: Observed[], base: URL): typeof globalThis.fetch {
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const body = init?.body;
    const response = await fetch(input, init);
    const isSealed = url.pathname === `${base.pathname}sealed`;
    const bytes = new Uint8Array(await response.clone().arrayBuffer());
    const read = (text: string) => (isSealed ? '' : text.slice(0, MAX_KEPT));
    seen.push({
      path: url.pathname.slice(base.pathname.length - 1),
      isSealed,
      sent: sizeOf(body),
      received: bytes.length,
      request: read(typeof body === 'string' ? body : ''),
      answer: read(new TextDecoder().decode(bytes)),
      key: /^[0-9a-f]{64}$/.exec(response.headers.get('x-enclave-key') ?? '')?.[0],
    });
    return response;
  };
}

function sizeOf(body: RequestInit['body']): number {
  if (typeof body === 'string') return new TextEncoder().encode(body).length;
  return body instanceof Uint8Array ? body.length : 0;
}
