/** Limits the pieces of a body for every request, even if no endpoint reads the body. */
import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/**
 * A body may arrive in this many pieces, plus one for every BYTES_PER_PIECE bytes. Each piece costs the same
 * work regardless of its size, which the caller chooses (RFC 9112, section 7.1).
 */
const MAX_PIECES = 256;
const BYTES_PER_PIECE = 16;

/** Key under which a request keeps BYTES_PER_PIECE times the number of its pieces, less their bytes. */
const EXCESS = Symbol('excess');
/** Key under which a request whose parser was stopped keeps the function that restores the parser. */
const RESTORE = Symbol('restore');
type Counted = IncomingMessage & { [EXCESS]?: number; [RESTORE]?: () => void };

/** A request whose connection ends, without an answer, when its body arrives in too many pieces. */
export class BoundedRequest extends IncomingMessage {
  constructor(socket: Socket) {
    super(socket);
    // This can't be a method, since Express replaces the prototype.
    this.push = countPieces;
    (this as Counted)[EXCESS] = 0;
  }
}

/** Called by Node's parser with each piece, and with null at the end of the request. */
function countPieces(this: Counted, piece: Buffer | null): boolean {
  if (piece === null) this[RESTORE]?.();
  else {
    const excess = (this[EXCESS] as number) + BYTES_PER_PIECE - piece.length;
    this[EXCESS] = excess;
    if (excess > MAX_PIECES * BYTES_PER_PIECE) {
      this.socket.destroy();
      stopParser(this);
      return false;
    }
  }
  return IncomingMessage.prototype.push.call(this, piece);
}

/**
 * Makes the parser drop the rest of its current read. Without this, it would hand over up to 11,000 more
 * pieces, although the connection is closed. Node offers no means to stop a parser. However, the parser calls
 * its callback only if this is a function. Since Node reuses parsers for other connections, the callback is
 * restored at the end of this request, or at the latest at the end of this turn of the event loop.
 */
function stopParser(request: Counted): void {
  const { parser } = request.socket as Socket & { parser?: Record<string, unknown> | null };
  const name = Object.keys(parser ?? {}).find((name) => isCallback(parser?.[name]));
  if (!parser || name === undefined) return;
  const callback = parser[name];
  parser[name] = null;
  const restore = () => {
    parser[name] = callback;
  };
  request[RESTORE] = restore;
  setImmediate(restore);
}

/** Returns whether a parser's callback receives pieces of a body. */
function isCallback(value: unknown): boolean {
  return typeof value === 'function' && value.name === 'parserOnBody';
}
