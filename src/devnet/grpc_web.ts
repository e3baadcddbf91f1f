/**
 * Implements gRPC-web over HTTP as far as a loopback Sui node needs it: requests with one message, and frames
 * of answers.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GrpcStatusCode } from '@mysten/sui/grpc';
import { fromBase64 } from '@mysten/sui/utils';
import { readBody } from 'sui-enclave-testing/loopback';

export function isGrpcWeb({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.startsWith('application/grpc-web') ?? false;
}

/** Returns a length-prefixed message of gRPC-web: a flag byte, four bytes of length, the message. */
export function frame(flag: number, data: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flag);
  head.writeUInt32BE(data.length, 1);
  return Buffer.concat([head, data]);
}

/** Returns the trailer, which ends an answer. Like a node's trailer, it has no field for an empty message. */
export function trailer(status: GrpcStatusCode, message = ''): Buffer {
  const messageField = message === '' ? '' : `grpc-message:${encodeURIComponent(message)}\r\n`;
  return frame(0x80, Buffer.from(`grpc-status:${status}\r\n${messageField}`));
}

/** Maximum size of a request in bytes. A transaction has at most 128 KiB. */
const MAX_REQUEST = 1_048_576;

/** Returns the message of a request. If it is too large, answers the request and returns null. */
export async function readMessage(
  request: IncomingMessage,
  response: ServerResponse,
): Promise<Uint8Array | null> {
  const body = await readBody(request, response, MAX_REQUEST);
  if (body === null) return null;
  const isText = request.headers['content-type']?.includes('-text') ?? false;
  const frameBytes = isText ? fromBase64(body.toString()) : body;
  return frameBytes.subarray(5);
}
