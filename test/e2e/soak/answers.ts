/** Sends requests to the server under load, counts its answers by code, and checks the signed ones. */
import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import { type IncomingHttpHeaders, request as send } from 'node:http';
import { WeatherResponse } from '../../../src/apps/weather/types.ts';
import { readAnswer } from '../../../src/library/client/answer.ts';
import { computeTemperature } from '../../../src/testing/weather_api.ts';

/** DER of an ed25519 key before its 32 bytes (RFC 8410). */
const ED25519_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

export interface Answer {
  readonly status: number;
  /** Code of the error; `SIGNED` for a signed answer, and `UNTYPED` for an error without a code. */
  readonly code: string;
  readonly headers: IncomingHttpHeaders;
}

/** Sends a request on a connection of its own. @throws the errors of the connection */
export async function ask(
  url: string,
  body?: object,
): Promise<{ status: number; text: string; headers: IncomingHttpHeaders }> {
  return await new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' };
    const request = send(url, { agent: false, ...(body && { method: 'POST', headers }) }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text, headers: response.headers }),
      );
      response.on('error', reject);
    });
    request.setTimeout(40_000, () => request.destroy(new Error('no answer within 40 s')));
    request.on('error', reject);
    request.end(body && JSON.stringify(body));
  });
}

export function readCode(text: string): string {
  try {
    const { code } = JSON.parse(text);
    return typeof code === 'string' && /^[A-Z][A-Z0-9_]*$/.test(code) ? code : 'UNTYPED';
  } catch {
    return 'UNTYPED';
  }
}

/** Counts answers by code, and collects the signed answers that are wrong. */
export class Judge {
  /** Number of the server's answers, by code. */
  readonly codes = new Map<string, number>();
  /** Description of each signed answer that is wrong. */
  readonly wrong: string[] = [];
  /** Number of requests that ended without an answer, by the code of the connection's error. */
  readonly broken = new Map<string, number>();
  #key: KeyObject | undefined;

  /** Sets the key that must have signed answers. @param key the attested key, 32 bytes */
  trust(key: Uint8Array): void {
    const der = Buffer.concat([ED25519_PREFIX, key]);
    this.#key = createPublicKey({ key: der, format: 'der', type: 'spki' });
  }

  /** Counts an answer about a place, checks it if it is signed, and returns its code. */
  judge(place: string, status: number, text: string): string {
    const code = status === 200 ? 'SIGNED' : readCode(text);
    this.count(code);
    if (status === 200) this.#check(place, text);
    return code;
  }

  count(code: string): void {
    add(this.codes, code);
  }

  #check(place: string, text: string): void {
    try {
      const { data, signature, signedBytes } = readAnswer('/process_data', JSON.parse(text), WeatherResponse);
      const isSigned = this.#key !== undefined && verify(null, signedBytes, this.#key, signature);
      const isTrue =
        data.location === place && Number(data.temperature) === Math.floor(computeTemperature(place));
      if (isSigned && isTrue) return;
      this.wrong.push(
        `${isSigned ? 'a wrong reading' : 'a wrong signature'} about ${place}: ${text.slice(0, 200)}`,
      );
    } catch (error) {
      this.wrong.push(`${(error as Error).message}: ${text.slice(0, 200)}`);
    }
  }
}

export function add(counts: Map<string, number>, name: string, more = 1): void {
  counts.set(name, (counts.get(name) ?? 0) + more);
}

/** Returns by how much each count has grown since `before`. Counts that have not grown are left out. */
export function since(
  counts: ReadonlyMap<string, number>,
  before: ReadonlyMap<string, number>,
): Map<string, number> {
  const grown = [...counts].map(([name, count]) => [name, count - (before.get(name) ?? 0)] as const);
  return new Map(grown.filter(([, count]) => count > 0));
}

/** Formats counts as "3 OVERLOADED, 1 SIGNED". */
export function formatCounts(counts: ReadonlyMap<string, number>): string {
  const sorted = [...counts].sort(([, a], [, b]) => b - a);
  return sorted.map(([name, count]) => `${count} ${name}`).join(', ') || 'none';
}
