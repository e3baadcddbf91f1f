/** DSSE envelopes (Dead Simple Signing Envelope v1), signed by the author's Ed25519 key. */
import { bytesToHex, concatBytes, utf8ToBytes } from '@noble/hashes/utils.js';
import { fromBase64 } from '../attestation/pem.ts';
import { verifyEd25519 } from '../client/ed25519.ts';
import { ReleaseError } from './errors.ts';
import { badForm, requireList, requireObject, requireText } from './json.ts';

export const PAYLOAD_TYPE = 'application/vnd.in-toto+json';
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** A payload and its signature, which is not verified yet. */
export interface Envelope {
  readonly payload: Uint8Array;
  readonly signature: Uint8Array;
}

/** Checks the form of an envelope, and decodes it. @throws ReleaseError: RELEASE_FORM */
export function readEnvelope(value: unknown): Envelope {
  const { payloadType, payload, signatures } = requireObject(value, 'the envelope');
  if (payloadType !== PAYLOAD_TYPE) throw badForm('the envelope', `of the payload type ${PAYLOAD_TYPE}`);
  const [signature, ...moreSignatures] = requireList(signatures, 'signatures');
  if (signature === undefined || moreSignatures.length > 0) throw badForm('signatures', 'one signature');
  const { sig } = requireObject(signature, 'the signature');
  return { payload: decodeBase64(payload, 'payload'), signature: decodeBase64(sig, 'sig') };
}

/** Returns the bytes that DSSE signs: PAEv1. */
export function encodePreAuth(payload: Uint8Array): Uint8Array {
  const head = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} `;
  return concatBytes(utf8ToBytes(head), payload);
}

/**
 * Verifies an envelope, and returns its payload.
 *
 * @param publicKey Ed25519, 32 bytes
 * @returns the payload
 * @throws ReleaseError: RELEASE_FORM, RELEASE_SIGNATURE
 */
export async function openEnvelope(value: unknown, publicKey: Uint8Array): Promise<Uint8Array> {
  const { payload, signature } = readEnvelope(value);
  if (signature.length === 64 && (await verifyEd25519(publicKey, signature, encodePreAuth(payload))))
    return payload;
  throw new ReleaseError(
    'RELEASE_SIGNATURE',
    `a statement is not signed by the key ${bytesToHex(publicKey)}`,
  );
}

function decodeBase64(value: unknown, label: string): Uint8Array {
  return fromBase64(requireText(value, label, BASE64));
}
