/**
 * Records the traffic that the host carries during a call. The host forwards every request, and can read the
 * parts that are not sealed.
 */

export interface ObservedRequest {
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
const MAX_TEXT_LENGTH = 65_536;
/**
 * Maximum size of an answer in bytes. The client accepts no more, and a host must not fill the page's memory.
 */
const MAX_ANSWER_BYTES = 1_048_576;

/** Returns the platform's fetch, extended to record the traffic. */
export function recordTraffic(traffic: ObservedRequest[], base: URL): typeof globalThis.fetch {
  return async (target, init) => {
    const url = new URL(target instanceof Request ? target.url : target);
    const body = init?.body;
    const response = await fetch(target, init);
    const isSealed = url.pathname === `${base.pathname}sealed`;
    const bytes = await readStart(response.clone());
    const toReadableText = (text: string) => (isSealed ? '' : text.slice(0, MAX_TEXT_LENGTH));
    traffic.push({
      path: url.pathname.slice(base.pathname.length - 1),
      isSealed,
      sent: measureSize(body),
      received: bytes.length,
      request: toReadableText(typeof body === 'string' ? body : ''),
      answer: toReadableText(new TextDecoder().decode(bytes)),
      key: /^[0-9a-f]{64}$/.exec(response.headers.get('x-enclave-key') ?? '')?.[0],
    });
    return response;
  };
}

/** Reads the beginning of the body: at most one chunk more than the limit. */
async function readStart(response: Response): Promise<Uint8Array> {
  const reader = response.body?.getReader();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  for (let size = 0; size <= MAX_ANSWER_BYTES; ) {
    const chunk = await reader?.read();
    if (chunk?.value === undefined) break;
    chunks.push(chunk.value);
    size += chunk.value.length;
  }
  // The cancellation is not awaited: it ends only when the client has also cancelled its copy of the body.
  reader?.cancel().catch(() => {});
  return new Uint8Array(await new Blob(chunks).arrayBuffer());
}

function measureSize(body: RequestInit['body']): number {
  if (typeof body === 'string') return new TextEncoder().encode(body).length;
  return body instanceof Uint8Array ? body.length : 0;
}
