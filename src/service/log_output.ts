/**
 * Writes the log to a file or pipe. A slow, full or closed destination must neither delay nor end the server.
 */
import { write, writeSync } from 'node:fs';

/**
 * Maximum size of the waiting lines, in bytes. Further lines are lost, since callers can cause lines faster
 * than a slow reader takes them. If the process ran out of memory, it would end, and its key would be lost.
 */
const MAX_WAITING_BYTES = 4 * 1024 ** 2;
/** Pause before the next attempt when a non-blocking pipe is full, in milliseconds. */
const RETRY_MS = 10;
/**
 * Pause after a write, in milliseconds. Each write wakes another thread, which costs more than all other work
 * on a refused request. Lines that arrive during the pause are therefore written together.
 */
const PAUSE_MS = 10;

export class LogOutput {
  readonly #fd: number;
  readonly #onLost: (lines: number) => void;
  #lines: string[] = [];
  /** Size of the lines that wait or are being written, in bytes. */
  #bytes = 0;
  #isWriting = false;
  #lostLines = 0;

  /**
   * @param fd file descriptor, which stays open
   * @param onLost called with the number of lost lines once lines can be written again
   */
  constructor(fd: number, onLost: (lines: number) => void) {
    this.#fd = fd;
    this.#onLost = onLost;
    process.on('exit', () => this.#flush());
  }

  /** Bytes of the lines that wait or are being written. */
  get waitingBytes(): number {
    return this.#bytes;
  }

  /** Writes a line. Never throws. */
  write(line: string): void {
    const bytes = Buffer.byteLength(line);
    if (this.#bytes + bytes > MAX_WAITING_BYTES) {
      this.#lostLines += 1;
      return;
    }
    this.#bytes += bytes;
    this.#lines.push(line);
    if (!this.#isWriting) this.#writeAll();
  }

  #writeAll(): void {
    const lines = this.#lines;
    const bytes = Buffer.from(lines.join(''));
    this.#lines = [];
    this.#isWriting = true;
    this.#send(bytes, (error) => {
      this.#bytes -= bytes.length;
      if (error) this.#lostLines += lines.length;
      else this.#reportLost();
      // A process that ends within the pause writes the lines at its end.
      setTimeout(() => this.#resume(), PAUSE_MS).unref();
    });
  }

  #resume(): void {
    this.#isWriting = false;
    if (this.#lines.length > 0) this.#writeAll();
  }

  #send(bytes: Uint8Array, done: (error: Error | null) => void): void {
    write(this.#fd, bytes, (error, written) => {
      if (error?.code === 'EAGAIN') setTimeout(() => this.#send(bytes, done), RETRY_MS);
      else if (error || written === bytes.length) done(error);
      else this.#send(bytes.subarray(written), done);
    });
  }

  #reportLost(): void {
    const lost = this.#lostLines;
    this.#lostLines = 0;
    if (lost > 0) this.#onLost(lost);
  }

  /** Writes the waiting lines. Node completes a write that has begun. */
  #flush(): void {
    let unwritten: Uint8Array = Buffer.from(this.#lines.join(''));
    try {
      while (unwritten.length > 0) unwritten = unwritten.subarray(writeSync(this.#fd, unwritten));
    } catch {
      // The log no longer has a reader.
    }
  }
}
