/** Collects a body whose size and pieces are not known in advance. */

/**
 * Copies a piece behind the first `size` bytes. Only the first piece is kept: the peer chooses the size of
 * pieces, and each would cost hundreds of bytes.
 *
 * @param max maximum of `size` and the piece's size together
 * @returns the piece, if it is the first; else the buffer, or a larger buffer of at most `max` bytes, and at
 *   most twice as large as its content
 */
export function append(buffer: Buffer, size: number, piece: Buffer, max: number): Buffer {
  // Most bodies arrive in one piece.
  if (size === 0) return piece;
  const end = size + piece.length;
  const target = end <= buffer.length ? buffer : Buffer.allocUnsafeSlow(Math.min(2 * end, max));
  if (target !== buffer) buffer.copy(target, 0, 0, size);
  piece.copy(target, size);
  return target;
}
