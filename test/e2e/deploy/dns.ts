/** A DNS server (RFC 1035) on loopback that resolves every name to its current addresses. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

const HEADER = 12;
const TYPE_A = 1;

export interface Dns {
  /** Address and port of the server. */
  readonly address: string;
  /** IPv4 addresses, which a test changes. */
  addresses: readonly string[];
  close(): void;
}

export async function startDns(addresses: readonly string[]): Promise<Dns> {
  const socket = createSocket('udp4');
  const dns: Dns = { address: '', addresses, close: () => socket.close() };
  socket.on('message', (query, { port, address }) => {
    socket.send(createAnswer(query, dns.addresses), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return Object.assign(dns, { address: `127.0.0.1:${(socket.address() as AddressInfo).port}` });
}

/** Creates an answer with the question, and with a record for each address if the question is for IPv4. */
function createAnswer(query: Buffer, addresses: readonly string[]): Buffer {
  let end = HEADER;
  while (query[end] !== 0) end += 1 + (query[end] ?? 0);
  const question = query.subarray(HEADER, end + 5);
  const records = query.readUInt16BE(end + 1) === TYPE_A ? addresses.map(encodeRecord) : [];
  const header = Buffer.alloc(HEADER);
  query.copy(header, 0, 0, 2);
  // The header is that of an authoritative answer without error, to one question.
  header.writeUInt16BE(0x8400, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(records.length, 6);
  return Buffer.concat([header, question, ...records]);
}

/** Encodes a record of class IN with a time to live of 0, whose name is a pointer to the question's. */
function encodeRecord(address: string): Buffer {
  const record = Buffer.from([0xc0, HEADER, 0, TYPE_A, 0, 1, 0, 0, 0, 0, 0, 4]);
  return Buffer.concat([record, Buffer.from(address.split('.').map(Number))]);
}
