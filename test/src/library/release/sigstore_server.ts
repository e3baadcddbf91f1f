/**
 * Fakes, on loopback, the services that a GitHub workflow uses to sign: the issuer of its tokens, Fulcio and
 * Rekor. Certificates and entries are those of `sigstore.ts`.
 */
import { createPublicKey, verify } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { RUN, type Run, type Sigstore } from './sigstore.ts';

/** Secret with which the run requests its tokens. */
export const REQUEST_TOKEN = 'request-token-of-the-run';

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
const toPem = (der: Buffer) =>
  `-----BEGIN CERTIFICATE-----\n${der.toString('base64')}\n-----END CERTIFICATE-----\n`;

interface SigningRequest {
  readonly credentials: { readonly oidcIdentityToken: string };
  readonly publicKeyRequest: {
    readonly publicKey: { readonly content: string };
    readonly proofOfPossession: string;
  };
}

interface ProposedEntry {
  readonly kind: string;
  readonly spec: { readonly proposedContent: { readonly envelope: string; readonly verifiers: [string] } };
}

/** The services at `url`, and the run that signs with them. A test may change the run. */
export interface SigstoreServer extends AsyncDisposable {
  readonly url: string;
  run: Run;
  /** HTTP statuses with which Fulcio and Rekor refuse every request; 0 if they refuse none. */
  refusals: { fulcio: number; rekor: number };
  /** Environment of a step of the run. */
  env(): Readonly<Record<string, string>>;
}

export async function serveSigstore(sigstore: Sigstore): Promise<SigstoreServer> {
  const certify = async (request: SigningRequest) => {
    const token = request.credentials.oidcIdentityToken;
    const claims = JSON.parse(String(Buffer.from(token.split('.')[1] ?? '', 'base64url')));
    const { publicKey, proofOfPossession } = request.publicKeyRequest;
    const key = createPublicKey(publicKey.content);
    if (!verify('sha256', Buffer.from(claims.sub), key, Buffer.from(proofOfPossession, 'base64'))) {
      return { status: 400, answer: { message: `no possession of the key, by ${token}` } };
    }
    const chain = await sigstore.certify(key.export({ format: 'der', type: 'spki' }), claims.run);
    return {
      status: 201,
      answer: { signedCertificateEmbeddedSct: { chain: { certificates: chain.map(toPem) } } },
    };
  };
  const log = async ({ kind, spec: { proposedContent } }: ProposedEntry) => {
    if (kind !== 'dsse') return { status: 400, answer: { message: 'not an entry of the kind dsse' } };
    const { payload, signatures } = JSON.parse(proposedContent.envelope);
    const [verifier] = proposedContent.verifiers;
    const answer = await sigstore.log(Buffer.from(payload, 'base64'), signatures[0].sig, verifier);
    return { status: 201, answer };
  };
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    const respond = (status: number, answer: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    const { authorization } = request.headers;
    if (pathname === '/token') {
      if (authorization !== `Bearer ${REQUEST_TOKEN}` || searchParams.get('audience') !== 'sigstore') {
        return respond(401, { message: 'not a run' });
      }
      const { repository, ref } = service.run;
      const claims = { sub: `repo:${repository}:ref:${ref}`, run: service.run };
      return respond(200, { value: `${encode({ alg: 'none' })}.${encode(claims)}.secret-signature` });
    }
    const isFulcio = pathname === '/api/v2/signingCert';
    if (!isFulcio && pathname !== '/api/v1/log/entries') return respond(404, {});
    const refusal = isFulcio ? service.refusals.fulcio : service.refusals.rekor;
    const body = await json(request);
    if (refusal !== 0) return respond(refusal, { message: `refused: ${JSON.stringify(body)}` });
    const { status, answer } = isFulcio
      ? await certify(body as SigningRequest)
      : await log(body as ProposedEntry);
    return respond(status, answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const service: SigstoreServer = {
    url,
    run: RUN,
    refusals: { fulcio: 0, rekor: 0 },
    env() {
      const { repository, repositoryId, ownerId, workflow, ref, event } = this.run;
      const name = new URL(repository).pathname.slice(1);
      return {
        GITHUB_SERVER_URL: new URL(repository).origin,
        GITHUB_REPOSITORY: name,
        GITHUB_REPOSITORY_ID: repositoryId,
        GITHUB_REPOSITORY_OWNER_ID: ownerId,
        GITHUB_WORKFLOW_REF: `${name}/${workflow}@${ref}`,
        GITHUB_REF: ref,
        GITHUB_EVENT_NAME: event,
        GITHUB_RUN_ID: '1234567890',
        GITHUB_RUN_ATTEMPT: '1',
        ACTIONS_ID_TOKEN_REQUEST_URL: `${url}/token?api-version=2.0`,
        ACTIONS_ID_TOKEN_REQUEST_TOKEN: REQUEST_TOKEN,
      };
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return service;
}
