import { createPublicKey, verify } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { WeatherResponse } from '../../src/apps/weather/types.ts';
import { type Values, VECTORS } from './vectors.ts';

function serialize({ intent, timestamp_ms, location, temperature }: Values): Uint8Array {
  return WeatherResponse.message
    .serialize({ intent, timestamp_ms, payload: { location, temperature } })
    .toBytes();
}

/** Pure ed25519 as the chain verifies it. */
function verifies(message: Uint8Array, signature: string): boolean {
  const x = Buffer.from(VECTORS.signed.public_key, 'hex').toString('base64url');
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  return verify(null, message, key, Buffer.from(signature, 'hex'));
}

describe('the vectors that the Move packages are tested with, in TypeScript', () => {
  test.each(VECTORS.messages)('$name has the same bytes', ({ bytes, ...values }) => {
    expect(Buffer.from(serialize(values)).toString('hex')).toBe(bytes);
  });

  test.each(VECTORS.messages)('$name reads back from its bytes', ({ bytes, ...values }) => {
    const message = WeatherResponse.message.parse(Buffer.from(bytes, 'hex'));
    expect(message).toEqual({
      intent: values.intent,
      timestamp_ms: BigInt(values.timestamp_ms),
      payload: { location: values.location, temperature: BigInt(values.temperature) },
    });
  });

  test('what a production enclave signed verifies, and nothing near it', () => {
    const { signed } = VECTORS;
    expect(verifies(serialize(signed), signed.signature)).toBe(true);
    expect(verifies(serialize({ ...signed, temperature: '14' }), signed.signature)).toBe(false);
    expect(verifies(serialize({ ...signed, intent: 1 }), signed.signature)).toBe(false);
    expect(verifies(serialize({ ...signed, timestamp_ms: '1744683300001' }), signed.signature)).toBe(false);
  });
});
