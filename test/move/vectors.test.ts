import { createPublicKey, verify } from 'node:crypto';
import { bcs } from '@mysten/sui/bcs';
import { ed25519 } from '@noble/curves/ed25519.js';
import { describe, expect, test } from 'vitest';
import { toCelsius } from '../../src/apps/weather/calls.ts';
import { Temperature, WeatherResponse } from '../../src/apps/weather/types.ts';
import { u64 } from '../../src/library/wire/bcs.ts';
import { signedType } from '../../src/library/wire/intent.ts';
import { type Values, VECTORS } from './vectors.ts';

function serialize({ intent, timestamp_ms, location, temperature }: Values): Uint8Array {
  return WeatherResponse.message
    .serialize({ intent, timestamp_ms, payload: { location, temperature } })
    .toBytes();
}

/** Verifies pure ed25519 as the chain does. */
function verifies(message: Uint8Array, signature: string, publicKey = VECTORS.signed.public_key): boolean {
  const x = Buffer.from(publicKey, 'hex').toString('base64url');
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  return verify(null, message, key, Buffer.from(signature, 'hex'));
}

describe('the vectors of the Move packages, in TypeScript', () => {
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

  test('the signature of a production enclave verifies for its message, and not for a changed message', () => {
    const { signed } = VECTORS;
    expect(verifies(serialize(signed), signed.signature)).toBe(true);
    expect(verifies(serialize({ ...signed, temperature: '14' }), signed.signature)).toBe(false);
    expect(verifies(serialize({ ...signed, intent: 1 }), signed.signature)).toBe(false);
    expect(verifies(serialize({ ...signed, timestamp_ms: '1744683300001' }), signed.signature)).toBe(false);
  });
});

describe('a reading in tenths of a degree', () => {
  const { public_key, readings } = VECTORS.temperatures;

  test.each(readings)('$name has the same bytes, and a valid signature', (reading) => {
    const { timestamp_ms, location, tenths_plus_100000, bytes, signature, celsius } = reading;
    const payload = { location, tenths_plus_100000 };
    const message = Temperature.message.serialize({ intent: 1, timestamp_ms, payload }).toBytes();
    expect(Buffer.from(message).toString('hex')).toBe(bytes);
    expect(verifies(message, signature, public_key)).toBe(true);
    expect(toCelsius(tenths_plus_100000)).toBe(celsius);
  });
});

test('the award that counts once has the same bytes, and both keys signed it', () => {
  const { once } = VECTORS;
  const Award = bcs.struct('Award', { nonce: bcs.byteVector(), recipient: bcs.Address, points: u64 });
  const payload = {
    nonce: Buffer.from(once.nonce, 'hex'),
    recipient: `0x${once.recipient}`,
    points: BigInt(once.points),
  };
  const message = signedType(once.intent, Award).message.serialize({
    intent: once.intent,
    timestamp_ms: BigInt(once.timestamp_ms),
    payload,
  });
  expect(Buffer.from(message.toBytes()).toString('hex')).toBe(once.bytes);
  for (const { public_key, signature } of once.keys) {
    const [bytes, sig, key] = [once.bytes, signature, public_key].map((text) => Buffer.from(text, 'hex'));
    expect(ed25519.verify(sig as Buffer, bytes as Buffer, key as Buffer)).toBe(true);
  }
});
