/** Calls an endpoint of an attested enclave. The library verifies the answer. */
import {
  describeSigned,
  EnclaveClient,
  type SchemaEndpoint,
  type SchemaType,
  type SignedField,
  type VerifiedAnswer,
} from 'sui-enclave/client';
import { type Expectation, fetchDocument, readClaimedImage } from '../enclave/examine.ts';
import { fromHex } from '../lib/bytes.ts';
import { type ObservedRequest, recordTraffic } from './observed.ts';
import { createSignedType } from './signed_type.ts';

export interface CallRequest {
  readonly base: URL;
  readonly endpoint: SchemaEndpoint;
  readonly type: SchemaType;
  readonly body: unknown;
  readonly isSealed: boolean;
  readonly expectation: Expectation;
}

export interface CallOutcome {
  readonly request: CallRequest;
  readonly traffic: readonly ObservedRequest[];
  readonly verification:
    | {
        readonly answer: VerifiedAnswer<unknown>;
        /** Signed message in BCS. */
        readonly bytes: Uint8Array;
        readonly fields: readonly SignedField[];
      }
    | {
        readonly error: unknown;
        /**
         * Key that signed the answer although no enclave has attested it; undefined if no such key is known.
         */
        readonly otherKey: string | undefined;
      };
}

/** Maximum age of data: unlimited, since the page shows the signed time. */
const ANY_AGE = Number.POSITIVE_INFINITY;

/** Attests and calls an enclave. An error becomes part of the outcome. @throws the signal's reason */
export async function callEnclave(request: CallRequest, signal: AbortSignal): Promise<CallOutcome> {
  const { base, endpoint, type, body, isSealed, expectation } = request;
  const { images, roots } = expectation;
  const traffic: ObservedRequest[] = [];
  const schema = createSignedType(type);
  try {
    const acceptedImages =
      images.length > 0 ? images : [readClaimedImage((await fetchDocument(base, signal)).bytes)];
    const client = new EnclaveClient(base, {
      policy: { images: acceptedImages },
      ...(roots.length > 0 && { roots }),
      sealed: isSealed,
      maxAnswerAgeMs: ANY_AGE,
      fetch: recordTraffic(traffic, base),
    });
    const answer = await client.call(endpoint.path, body, schema, {
      idempotent: endpoint.idempotent,
      signal,
    });
    const { intent, timestampMs, data } = answer;
    const bytes = schema.message.serialize({ intent, timestamp_ms: timestampMs, payload: data }).toBytes();
    return { request, traffic, verification: { answer, bytes, fields: describeSigned(type, bytes) } };
  } catch (error) {
    signal.throwIfAborted();
    return { request, traffic, verification: { error, otherKey: await findOtherKey(traffic, type) } };
  }
}

/** Returns the key that an answer names, if this key has signed the answer. */
async function findOtherKey(
  traffic: readonly ObservedRequest[],
  type: SchemaType,
): Promise<string | undefined> {
  const lastRequest = traffic.findLast(({ key }) => key !== undefined);
  if (lastRequest?.key === undefined) return undefined;
  try {
    const { response, signature } = JSON.parse(lastRequest.answer);
    const { intent, timestamp_ms, data } = response;
    const message = createSignedType(type)
      .message.serialize({ intent, timestamp_ms, payload: data })
      .toBytes();
    const key = await crypto.subtle.importKey(
      'raw',
      fromHex(lastRequest.key) ?? new Uint8Array(),
      'Ed25519',
      false,
      ['verify'],
    );
    const isSigned = await crypto.subtle.verify(
      'Ed25519',
      key,
      fromHex(String(signature)) ?? new Uint8Array(),
      new Uint8Array(message),
    );
    return isSigned ? lastRequest.key : undefined;
  } catch {
    // The answer is not of this type, or the browser has no Ed25519. In both cases, nothing is known about a
    // key.
    return undefined;
  }
}
