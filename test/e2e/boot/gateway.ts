/** Forwards HTTP from a URL to an enclave's vsock, as expose_enclave does. */
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { decode } from 'cborg';
import {
  caBundle,
  createRoot,
  type DocumentFields,
  encodePayload,
  type Identity,
  issueChain,
  signDocument,
  toPem,
} from '../../../src/testing/attestation_ca.ts';
import { listen } from '../../../src/toolchain/dev/wallet/servers.ts';
import type { Machine } from './machine.ts';

export interface Payload extends Omit<DocumentFields, 'pcrs'> {
  readonly pcrs: Map<number, Uint8Array>;
}

/** Reads the payload of a document of the emulator, whose NSM measures the image itself but does not sign. */
export function decodePayload(document: Uint8Array): Payload {
  const payload = decode(decode(document)[2], { useMaps: true }) as Map<string, unknown>;
  return Object.fromEntries(payload) as unknown as Payload;
}

/** Returns a document with the same content, signed by a test authority in place of the hardware. */
export function signAgain(document: Uint8Array, root: Identity): Uint8Array {
  const chain = issueChain(root, new Date());
  const fields = {
    ...decodePayload(document),
    certificate: chain.leaf.certificate,
    cabundle: caBundle(chain),
  };
  return signDocument(encodePayload(fields), chain.leaf);
}

type Alter = (path: string, direction: 'request' | 'answer', body: Buffer) => Buffer;

export interface Gateway {
  readonly url: string;
  /** PEM of the authority that signs the enclave's attestation documents. */
  readonly rootPem: string;
  /** Changes the forwarded body of a request or of its answer. By default, it changes nothing. */
  alter: Alter;
  close(): void;
}

/** Forwards every request, and signs the attestation documents by a test authority. */
export async function startGateway(machine: Machine): Promise<Gateway> {
  const root = createRoot(new Date());
  const server = createServer((incoming, response) => {
    const fail = () => response.destroy();
    forward(machine, incoming, response, { root, alter: gateway.alter }).catch(fail);
  });
  const gateway: Gateway = {
    url: await listen(server),
    rootPem: toPem(root.certificate),
    alter: (_path, _direction, body) => body,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
  return gateway;
}

async function forward(
  machine: Machine,
  incoming: IncomingMessage,
  response: ServerResponse,
  { root, alter }: { root: Identity; alter: Alter },
): Promise<void> {
  const { url: path = '/' } = incoming;
  const body = alter(path, 'request', await buffer(incoming));
  const answer = await sendToEnclave(machine, incoming, body);
  const answerBody = alter(path, 'answer', await buffer(answer));
  const isDocument = path.startsWith('/get_attestation') && answer.statusCode === 200;
  const forwardedBody = isDocument ? signAttestation(answerBody, root) : answerBody;
  const type = answer.headers['content-type'] ?? 'application/octet-stream';
  response.writeHead(answer.statusCode ?? 502, { 'content-type': type }).end(forwardedBody);
}

function sendToEnclave(machine: Machine, { method, url, headers }: IncomingMessage, body: Buffer) {
  const type = headers['content-type'];
  return new Promise<IncomingMessage>((resolve, reject) => {
    const request = httpRequest({
      createConnection: () => machine.connect(3000),
      method,
      path: url,
      headers: {
        host: 'enclave',
        connection: 'close',
        'content-length': body.length,
        ...(type !== undefined && { 'content-type': type }),
      },
    });
    request.on('error', reject);
    request.on('response', resolve);
    request.end(body);
  });
}

function signAttestation(answer: Buffer, root: Identity): string {
  const { attestation } = JSON.parse(answer.toString()) as { attestation: string };
  const document = signAgain(Buffer.from(attestation, 'hex'), root);
  return JSON.stringify({ attestation: Buffer.from(document).toString('hex') });
}
