/** Collects a body whose size and pieces are not known in advance. */

/**
 * Copies a piece behind the first `size` bytes: the peer chooses the size of pieces, and each one kept would
 * cost hundreds of bytes.
 *
 * @param max `size` and the piece together must not exceed it
 * @returns the buffer, or a larger one of `max` bytes at most, and of at most twice the bytes that are in it
 */
export function append(buffer: Buffer, size: number, piece: Buffer, max: number): Buffer {
  // Most bodies are one piece.
  if (size === 0) return piece;
  const end = size + piece.length;
  const target = end <= buffer.length ? buffer : Buffer.allocUnsafeSlow(Math.min(2 * end, max));
  if (target !== buffer) buffer.copy(target, 0, 0, size);
  piece.copy(target, size);
  return target;
}
