/**
 * Reads the record of vsock_host: every packet between parent and enclave, on all ports and in both
 * directions.
 */
import { listForms } from '../../src/library/client/forms.ts';

/** struct virtio_vsock_hdr (virtio 1.2, section 5.10.6), all little-endian. */
const HEADER_SIZE = 44;
const SOURCE_CID = 0;
const SOURCE_PORT = 16;
const TARGET_PORT = 20;
const LENGTH = 24;
const PARENT_CID = 3n;

export interface Traffic {
  /** Transferred bytes, one buffer for each direction of each connection. */
  readonly streams: readonly Buffer[];
  /** Ports of parent and enclave between which bytes were sent, such as 3000. */
  readonly ports: ReadonlySet<number>;
  /** Returns whether the secret was sent in any of its encodings. */
  saw(secret: string | Uint8Array): boolean;
}

export function readTraffic(record: Buffer): Traffic {
  const streams = new Map<string, Buffer[]>();
  const ports = new Set<number>();
  // The last packet may be incomplete: it is still being written.
  for (let offset = 0; offset + HEADER_SIZE <= record.length; ) {
    const header = record.subarray(offset, offset + HEADER_SIZE);
    const length = header.readUInt32LE(LENGTH);
    const [source, target] = [header.readUInt32LE(SOURCE_PORT), header.readUInt32LE(TARGET_PORT)];
    const sender = header.readBigUInt64LE(SOURCE_CID) === PARENT_CID ? 'parent' : 'enclave';
    const data = record.subarray(offset + HEADER_SIZE, offset + HEADER_SIZE + length);
    const key = `${sender} ${source} ${target}`;
    offset += HEADER_SIZE + length;
    if (length === 0) continue;
    ports.add(source).add(target);
    const parts = streams.get(key);
    if (parts) parts.push(data);
    else streams.set(key, [data]);
  }
  const buffers = [...streams.values()].map((parts) => Buffer.concat(parts));
  return {
    streams: buffers,
    ports,
    saw: (secret) => listForms(secret).some((form) => buffers.some((stream) => stream.includes(form))),
  };
}
