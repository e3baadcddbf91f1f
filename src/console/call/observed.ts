/**
 * Records the traffic that the host carries during a call. The host forwards every request, and can read the
 * parts that are not sealed.
 */

export interface Observed {
  /** Path of the endpoint, without the host's address. */
  readonly path: string;
  readonly isSealed: boolean;
  /** Size of the request body, in bytes. */
  readonly sent: number;
  readonly received: number;
  /** Part of the request that the host could read; empty if the body is sealed or missing. */
  readonly request: string;
  readonly answer: string;
  /** Key in hexadecimal that the answer claims to be signed with. */
  readonly key: string | undefined;
}

/** Maximum length of a recorded text, in characters. */
const MAX_KEPT = 65_536;
/**
 * Maximum size of an answer in bytes. The client accepts no more, and a host must not fill the page's memory.
 */
const MAX_READ = 1_048_576;

/** Returns the platform's fetch, extended to record the traffic. */
export function observing(seen: Observed[], base: URL): typeof globalThis.fetch {
  return async (target, init) => {
    const url = new URL(target instanceof Request ? target.url : target);
    const body = init?.body;
    const response = await fetch(target, init);
    const isSealed = url.pathname === `${base.pathname}sealed`;
    const bytes = await readStart(response.clone());
    const read = (text: string) => (isSealed ? '' : text.slice(0, MAX_KEPT));
    seen.push({
      path: url.pathname.slice(base.pathname.length - 1),
      isSealed,
      sent: measureSize(body),
      received: bytes.length,
      request: read(typeof body === 'string' ? body : ''),
      answer: read(new TextDecoder().decode(bytes)),
      key: /^[0-9a-f]{64}$/.exec(response.headers.get('x-enclave-key') ?? '')?.[0],
    });
    return response;
  };
}

/** Reads the body, up to a little more than the limit. */
async function readStart(response: Response): Promise<Uint8Array> {
  const reader = response.body?.getReader();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for (let size = 0; size <= MAX_READ; ) {
    const chunk = await reader?.read();
    if (chunk?.value === undefined) break;
    chunks.push(chunk.value);
    size += chunk.value.length;
  }
  // This is not awaited, since a copy is cancelled only after the client has cancelled its own copy.
  reader?.cancel().catch(() => {});
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

function measureSize(body: RequestInit['body']): number {
  if (typeof body === 'string') return new TextEncoder().encode(body).length;
  return body instanceof Uint8Array ? body.length : 0;
}
