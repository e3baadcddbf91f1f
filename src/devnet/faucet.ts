/**
 * Answers `POST /v2/gas` like the faucet of `sui start --with-faucet`. `@mysten/sui/faucet` sends such
 * requests.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isValidSuiAddress, normalizeSuiAddress } from '@mysten/sui/utils';
import { answersPreflight, readBody } from 'sui-enclave-testing/loopback';

/** Amount of a gift in MIST: 10 SUI. */
export const GIFT = 10_000_000_000n;
/** Maximum size in bytes of a request's body, which has an address in JSON. */
const MAX_BYTES = 1024;

/** Credits an address with an amount in MIST, and returns the coin's id. */
type Give = (address: string, mist: bigint) => string;

export function createFaucet(give: Give): Server {
  return createServer((request, response) => {
    answerFaucet(request, response, give).catch(() => response.destroy());
  });
}

export async function answerFaucet(
  request: IncomingMessage,
  response: ServerResponse,
  give: Give,
): Promise<void> {
  if (answersPreflight(request, response)) return;
  if (request.method !== 'POST' || request.url !== '/v2/gas') {
    return refuse(response, 404, 'send POST /v2/gas {"FixedAmountRequest":{"recipient":"0x…"}}');
  }
  const body = await readBody(request, response, MAX_BYTES);
  if (body === null) return;
  const recipient = parseRecipient(body.toString());
  if (recipient === undefined) {
    return refuse(
      response,
      400,
      'the body must be {"FixedAmountRequest":{"recipient":"<an address of Sui>"}}',
    );
  }
  const coin = { amount: Number(GIFT), id: give(recipient, GIFT), transferTxDigest: '' };
  send(response, 200, { status: 'Success', coins_sent: [coin] });
}

function parseRecipient(body: string): string | undefined {
  try {
    const { FixedAmountRequest: amountRequest } = JSON.parse(body) as {
      FixedAmountRequest?: { recipient?: unknown };
    };
    const recipient = amountRequest?.recipient;
    if (typeof recipient !== 'string' || !recipient.startsWith('0x')) return undefined;
    return isValidSuiAddress(normalizeSuiAddress(recipient)) ? normalizeSuiAddress(recipient) : undefined;
  } catch {
    return undefined;
  }
}

function refuse(response: ServerResponse, status: number, internal: string): void {
  send(response, status, { status: { Failure: { internal } } });
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
