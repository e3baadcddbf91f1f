/**
 * An enclave on loopback. The emulated NSM attests its key, and the project's own code signs. Tests can make
 * it lie.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { decode, encode } from 'cborg';
import { WeatherResponse } from '../../../../src/apps/weather/types.ts';
import { certificatesFromPem, type Image, parsePcrs } from '../../../../src/library/attestation/index.ts';
import { EphemeralKey } from '../../../../src/server/keys/key.ts';
import { Signer } from '../../../../src/server/keys/signer.ts';
import { EmulatedNsm } from '../../../../src/testing/emulated_nsm.ts';

export interface Reply {
  status: number;
  body: string;
}

export class FakeEnclave {
  readonly nsm: EmulatedNsm;
  key = EphemeralKey.create();
  /** Time of the signed data. A real enclave refuses readings that are more than an hour old. */
  timestampMs = BigInt(Date.now());
  /** Modifies the answer of an endpoint. */
  lie: (path: string, reply: Reply) => Reply | Promise<Reply> = (_, reply) => reply;
  /** Requested paths with their queries. */
  readonly requests: string[] = [];
  readonly #server = createServer(async (request, response) => {
    // Pages call it from another origin, which a real enclave allows too.
    if (!request.url?.startsWith('/without_cors/')) {
      response
        .setHeader('access-control-allow-origin', '*')
        .setHeader('access-control-allow-headers', 'content-type');
    }
    if (request.method === 'OPTIONS' || request.url?.startsWith('/without_cors/')) return response.end();
    const { status, body } = await this.#answer(request);
    return response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });

  private constructor(nsm: EmulatedNsm) {
    this.nsm = nsm;
  }

  /** @param nsm may be shared, since its certificate authority takes long to generate */
  static async start(nsm = new EmulatedNsm()): Promise<FakeEnclave> {
    const enclave = new FakeEnclave(nsm);
    await new Promise<void>((resolve) => {
      enclave.#server.listen(0, '127.0.0.1', resolve);
    });
    return enclave;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get image(): Image {
    return parsePcrs(this.nsm.pcrsFile());
  }

  get roots(): Uint8Array[] {
    return certificatesFromPem(this.nsm.rootPem());
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** Simulates a new process, which has a new key. */
  restart(): void {
    this.key = EphemeralKey.create();
  }

  async document(nonce: Uint8Array | null, publicKey: Uint8Array = this.key.publicKey): Promise<string> {
    const answer = await this.nsm.transact(
      encode({ Attestation: { nonce, public_key: publicKey, user_data: null } }),
    );
    return Buffer.from(decode(answer).Attestation.document).toString('hex');
  }

  async #answer(request: IncomingMessage): Promise<Reply> {
    const { pathname, searchParams } = new URL(request.url ?? '', this.url);
    this.requests.push(request.url ?? '');
    if (pathname === '/get_attestation') {
      const nonce = Buffer.from(searchParams.get('nonce') ?? '', 'hex');
      const attestation = await this.document(nonce);
      return await this.lie(pathname, { status: 200, body: JSON.stringify({ attestation }) });
    }
    const { location } = JSON.parse(await text(request)).payload;
    const signer = new Signer(this.key, [WeatherResponse]);
    const { json } = signer.sign(WeatherResponse, this.timestampMs, { location, temperature: 13n });
    return await this.lie(pathname, { status: 200, body: json.toString() });
  }
}
