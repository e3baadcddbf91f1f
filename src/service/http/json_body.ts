import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { parseJsonText, UNREADABLE_NAME } from 'sui-enclave/json_text';
import { append } from '../append.ts';
import { ServerError } from '../errors.ts';
import { type Listed, OrderedList } from '../ordered_list.ts';

/** RFC 8259, section 8.1: JSON is UTF-8, with or without a charset. */
const JSON_TYPE = /^application\/json[ \t]*(;[ \t]*(charset="?utf-8"?[ \t]*)?)?$/i;

/** Time limit of a body in milliseconds. Every MIN_BYTES_PER_SECOND bytes received add one second. */
const BODY_TIMEOUT_MS = 5000;
const MIN_BYTES_PER_SECOND = 16 * 1024;
/** Interval at which deadlines are checked, in milliseconds. */
const SWEEP_MS = 250;
/** Memory limit for all incomplete bodies together; at least four bodies of the maximum size fit. */
const MAX_INCOMPLETE_BYTES = 16 * 1024 ** 2;

/** Returns whether a request has a body (RFC 9112, section 6.3). */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Discards a body that will not be read. Otherwise, Node would keep up to 64 KiB of it until the answer is
 * sent, and drop the rest without counting its pieces.
 */
export function discardBody(request: IncomingMessage): void {
  if (!request.readableEnded && hasBody(request)) request.resume();
}

/** A partially received body. */
interface Reading extends Listed<Reading> {
  readonly start: number;
  bytes: number;
  /** The first `bytes` bytes are the body so far. */
  buffer: Buffer;
  readonly fail: (error: Error) => void;
}

/** Reads bodies, with limits on size, time and the total memory of incomplete bodies. */
export class JsonBodies {
  readonly #limitBytes: number;
  readonly #timeoutMs: number;
  readonly #maxIncompleteBytes: number;
  /** Bodies that are being read, the oldest first. */
  readonly #readings = new OrderedList<Reading>();
  readonly #sweeping: NodeJS.Timeout;
  #held = 0;

  /**
   * @param limitBytes maximum size of one body
   * @param timeoutMs time limit for a whole request; applies if it is shorter than the limit for a body
   */
  constructor(limitBytes: number, timeoutMs: number) {
    this.#limitBytes = limitBytes;
    this.#timeoutMs = Math.min(timeoutMs, BODY_TIMEOUT_MS);
    this.#maxIncompleteBytes = Math.max(MAX_INCOMPLETE_BYTES, 4 * limitBytes);
    this.#sweeping = setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  stop(): void {
    clearInterval(this.#sweeping);
  }

  /** Memory in use by incomplete bodies, in bytes. */
  get held(): number {
    return this.#held;
  }

  /**
   * Reads and parses a body. Rejects invalid UTF-8 instead of replacing it, since an application must
   * sign exactly what was sent. (Express' parser replaces it silently, and is half as fast.)
   *
   * @throws UNSUPPORTED_MEDIA_TYPE, BODY_TOO_LARGE, MALFORMED_JSON; REQUEST_TIMEOUT if the body arrives too
   *   slowly; OVERLOADED if incomplete bodies use too much memory and this is the oldest of them; BODY_TAKEN
   *   if the body was read before
   */
  async read(request: IncomingMessage): Promise<unknown> {
    if (!JSON_TYPE.test(request.headers['content-type'] ?? '')) {
      throw new ServerError(
        'UNSUPPORTED_MEDIA_TYPE',
        'send the body as Content-Type: application/json, in UTF-8',
      );
    }
    const body = await this.#read(request);
    if (!isUtf8(body)) throw new ServerError('MALFORMED_JSON', 'the body is not UTF-8');
    try {
      return parseJsonText(body.toString());
    } catch (error) {
      const { message } = error as SyntaxError;
      throw new ServerError('MALFORMED_JSON', message === UNREADABLE_NAME ? message : 'the body is not JSON');
    }
  }

  /**
   * Reads a body of one media type.
   *
   * @param mediaType in lower case
   * @param label the expected content of the body, for the error
   * @throws as `read`, without MALFORMED_JSON
   */
  async readOfType(request: IncomingMessage, mediaType: string, label: string): Promise<Buffer> {
    if (request.headers['content-type']?.toLowerCase() !== mediaType) {
      throw new ServerError('UNSUPPORTED_MEDIA_TYPE', `send ${label} as Content-Type: ${mediaType}`);
    }
    return await this.#read(request);
  }

  /**
   * Reads a body of any media type; empty if the request has no body. @throws as `read`, without
   * MALFORMED_JSON
   */
  async readAny(request: IncomingMessage): Promise<Buffer> {
    return await this.#read(request);
  }

  /**
   * Discards a body that no endpoint reads. The same size limit applies: if the body exceeds it, the
   * connection ends without an answer.
   *
   * @throws BODY_TOO_LARGE if the Content-Length exceeds the limit
   */
  discard(request: IncomingMessage): void {
    if (!hasBody(request)) return;
    this.#requireSize(request);
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > this.#limitBytes) request.socket.destroy();
    });
  }

  #read(request: IncomingMessage): Promise<Buffer> {
    // A stream that was read before would never end again.
    if (request.readableDidRead || request.readableEnded) {
      throw new ServerError('BODY_TAKEN', 'a handler of the application has read the body before');
    }
    const { 'content-encoding': encoding } = request.headers;
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
      throw new ServerError(
        'UNSUPPORTED_MEDIA_TYPE',
        'the body is compressed: send it without Content-Encoding',
      );
    }
    this.#requireSize(request);
    return this.#readBytes(request);
  }

  #requireSize({ headers }: IncomingMessage): void {
    if (Number(headers['content-length']) > this.#limitBytes) throw this.#tooLarge();
  }

  #readBytes(request: IncomingMessage): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      const fail = (error: Error) => {
        this.#release(reading);
        reject(error);
      };
      const reading: Reading = {
        start: performance.now(),
        bytes: 0,
        buffer: Buffer.alloc(0),
        fail,
        list: undefined,
        before: undefined,
        after: undefined,
      };
      this.#readings.add(reading);
      request.on('data', (chunk: Buffer) => {
        if (this.#readings.has(reading)) this.#append(reading, chunk);
      });
      request.on('end', () => {
        const { buffer, bytes } = reading;
        this.#release(reading);
        resolve(buffer.subarray(0, bytes));
      });
      // The caller has disconnected, and will not receive this answer.
      request.on('error', () => fail(new ServerError('MALFORMED_JSON', 'the body is incomplete')));
    });
  }

  #append(reading: Reading, chunk: Buffer): void {
    const { buffer, bytes } = reading;
    reading.bytes += chunk.length;
    if (reading.bytes > this.#limitBytes) reading.fail(this.#tooLarge());
    else this.#hold(reading, append(buffer, bytes, chunk, this.#limitBytes));
  }

  /** Replaces the reading's buffer. Beyond the memory limit, the oldest other readings fail. */
  #hold(reading: Reading, buffer: Buffer): void {
    this.#held += buffer.length - reading.buffer.length;
    reading.buffer = buffer;
    if (this.#held <= this.#maxIncompleteBytes) return;
    for (const oldest of this.#readings) {
      if (this.#held <= this.#maxIncompleteBytes) return;
      if (oldest !== reading)
        oldest.fail(
          new ServerError('OVERLOADED', 'the server is busy with other requests: try again', {
            retryAfterSeconds: 1,
          }),
        );
    }
  }

  #release(reading: Reading): void {
    if (!this.#readings.delete(reading)) return;
    this.#held -= reading.buffer.length;
    reading.buffer = Buffer.alloc(0);
  }

  #sweep(): void {
    const now = performance.now();
    for (const { start, bytes, fail } of this.#readings) {
      if (now - start <= this.#timeoutMs) return;
      const moreMs = (bytes / MIN_BYTES_PER_SECOND) * 1000;
      if (now - start > this.#timeoutMs + moreMs) {
        fail(new ServerError('REQUEST_TIMEOUT', 'the body arrived too slowly, or not at all'));
      }
    }
  }

  #tooLarge(): ServerError {
    return new ServerError('BODY_TOO_LARGE', `the body is larger than ${this.#limitBytes} bytes`);
  }
}
