/** gRPC-web over HTTP, as far as a loopback Sui node needs it: requests with one message, and the frames of answers. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { GrpcStatusCode } from '@mysten/sui/grpc';
import { fromBase64 } from '@mysten/sui/utils';

export function isGrpcWeb({ headers }: IncomingMessage): boolean {
  return headers['content-type']?.startsWith('application/grpc-web') ?? false;
}

/** Lets pages of any origin ask. @returns whether that was the question */
export function answersPreflight({ method }: IncomingMessage, response: ServerResponse): boolean {
  response.setHeader('access-control-allow-origin', '*').setHeader('access-control-allow-headers', '*');
  if (method !== 'OPTIONS') return false;
  response.writeHead(204).end();
  return true;
}

/** A length-prefixed message of gRPC-web: a flag byte, four bytes of length, the message. */
export function frame(flag: number, data: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flag);
  head.writeUInt32BE(data.length, 1);
  return Buffer.concat([head, data]);
}

/** The end of an answer. A node leaves out a message that is empty. */
export function trailer(status: GrpcStatusCode, message = ''): Buffer {
  const said = message === '' ? '' : `grpc-message:${encodeURIComponent(message)}\r\n`;
  return frame(0x80, Buffer.from(`grpc-status:${status}\r\n${said}`));
}

/** The message of a request. */
export async function messageOf(request: IncomingMessage): Promise<Uint8Array> {
  const body = await buffer(request);
  const isText = request.headers['content-type']?.includes('-text') ?? false;
  const framed = isText ? fromBase64(body.toString()) : body;
  return framed.subarray(5);
}
