/** Checks that describeSigned gives each byte of a message the meaning that the codec gives it. */
import { toHex } from '@mysten/bcs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { WeatherResponse } from '../../../../src/apps/weather/types.ts';
import { describeSigned, type SchemaField } from '../../../../src/library/client/index.ts';
import { toSchemaType } from '../../../../src/library/wire/schema_type.ts';
import { randomMessages } from '../wire/random_types.ts';

const MESSAGE = WeatherResponse.message
  .serialize({
    intent: 0,
    timestamp_ms: 1744683300000n,
    payload: { location: 'San Francisco', temperature: 13n },
  })
  .toBytes();
const WEATHER = toSchemaType(WeatherResponse);

type Row = readonly [path: string, value: string];

/** Returns the expected entries of a value, computed from the JavaScript value, not from its bytes. */
function listRows(
  path: string,
  { type, fields }: Pick<SchemaField, 'type' | 'fields'>,
  value: unknown,
): Row[] {
  const [, wrapper, inner = ''] = /^(vector|Option)<(.*)>$/.exec(type) ?? [];
  const element = { type: inner, ...(fields && { fields }) };
  if (wrapper === 'Option') {
    return value === null ? [[path, 'none']] : [[path, 'some'], ...listRows(`${path}.some`, element, value)];
  }
  if (value instanceof Uint8Array) return [[path, `0x${toHex(value)}`]];
  if (Array.isArray(value)) {
    const head: Row = [path, value.length === 1 ? '1 item' : `${value.length} items`];
    return [head, ...value.flatMap((member, index) => listRows(`${path}[${index}]`, element, member))];
  }
  if (fields !== undefined) return listStructRows(path, fields, value);
  return [[path, String(value)]];
}

function listStructRows(path: string, fields: readonly SchemaField[], value: unknown): Row[] {
  const values = new Map(Object.entries(Object(value)));
  return fields.flatMap((field) => listRows(`${path}.${field.name}`, field, values.get(field.name)));
}

test('describeSigned explains an answer of weather, byte by byte', () => {
  expect(describeSigned(WEATHER, MESSAGE)).toEqual([
    { path: 'intent', type: 'u8', from: 0, to: 1, value: '0' },
    { path: 'timestamp_ms', type: 'u64', from: 1, to: 9, value: '1744683300000' },
    { path: 'payload.location', type: 'String', from: 9, to: 23, value: 'San Francisco' },
    { path: 'payload.temperature', type: 'u64', from: 23, to: 31, value: '13' },
  ]);
});

describe('messages of any type', () => {
  test('have each byte described once, in order, with the values of the codec', () => {
    fc.assert(
      fc.property(randomMessages, ({ signed, timestampMs, payload, bytes }) => {
        const type = toSchemaType(signed);
        const rows = describeSigned(type, bytes);
        expect(rows.map(({ from }) => from)).toEqual([0, ...rows.slice(0, -1).map(({ to }) => to)]);
        expect(rows.at(-1)?.to).toBe(bytes.length);
        expect(rows.every(({ from, to }) => from < to)).toBe(true);
        expect(rows.map(({ path, value }) => [path, value])).toEqual([
          ['intent', String(signed.intent)],
          ['timestamp_ms', String(timestampMs)],
          ...listStructRows('payload', type.fields, payload),
        ]);
      }),
      { numRuns: 500 },
    );
  });

  test('are refused with a byte more, a byte less, and as another type', () => {
    fc.assert(
      fc.property(randomMessages, fc.nat(), ({ signed, bytes }, cut) => {
        const type = toSchemaType(signed);
        const unreadable = expect.objectContaining({ code: 'CLIENT_SIGNED_BYTES' });
        expect(() => describeSigned(type, Uint8Array.of(...bytes, 0))).toThrow(unreadable);
        expect(() => describeSigned(type, bytes.subarray(0, 1 + (cut % (bytes.length - 1))))).toThrow(
          unreadable,
        );
        const otherType = { ...type, intent: (type.intent + 1) % 256 };
        expect(() => describeSigned(otherType, bytes)).toThrow(
          expect.objectContaining({ code: 'CLIENT_INTENT' }),
        );
      }),
    );
  });

  test('have one encoding: changed bytes are refused, or are exactly what the codec writes', () => {
    const change = fc.record({ at: fc.nat(), byte: fc.nat(255) });
    fc.assert(
      fc.property(randomMessages, change, ({ signed, bytes }, { at, byte }) => {
        const changed = bytes.slice();
        changed[at % changed.length] = byte;
        try {
          describeSigned(toSchemaType(signed), changed);
        } catch (error) {
          expect(error).toMatchObject({ code: expect.stringMatching(/^CLIENT_(SIGNED_BYTES|INTENT)$/) });
          return;
        }
        const { message } = signed;
        expect(message.serialize(message.parse(changed)).toBytes()).toEqual(changed);
      }),
      { numRuns: 1000 },
    );
  });
});

test.each([
  ['a length in more bytes than necessary', [0x82, 0]],
  ['a length over 2^31 - 1', [0xff, 0xff, 0xff, 0xff, 0x08]],
  ['a length without an end', [0xff, 0xff, 0xff, 0xff, 0xff, 0xff]],
  ['text that is not UTF-8', [1, 0xff]],
  ['a message that ends after its time', []],
])('describeSigned refuses %s', (_, tail) => {
  const bytes = Uint8Array.of(
    ...MESSAGE.subarray(0, 9),
    ...tail,
    ...new Uint8Array(tail.length === 0 ? 0 : 8),
  );
  expect(() => describeSigned(WEATHER, bytes)).toThrow(
    expect.objectContaining({ code: 'CLIENT_SIGNED_BYTES' }),
  );
});

test('describeSigned refuses anything but bytes', () => {
  const read = () => describeSigned(WEATHER, [...MESSAGE] as never);
  expect(read).toThrow(expect.objectContaining({ code: 'CLIENT_SIGNED_BYTES' }));
});
