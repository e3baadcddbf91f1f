import { encode } from 'cborg';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NsmError } from '../../../../src/server/nsm/errors.ts';
import {
  attestation,
  describeNsm,
  describePcr,
  extendPcr,
  getRandom,
  lockPcr,
  lockPcrs,
} from '../../../../src/server/nsm/messages.ts';
import { ascii, description, exchanges, filled, hex, unhex } from './exchanges.ts';

const operations = {
  Attestation: attestation,
  GetRandom: getRandom,
  DescribeNSM: describeNsm,
  DescribePCR: describePcr,
  ExtendPCR: extendPcr,
  LockPCR: lockPcr,
  LockPCRs: lockPcrs,
};

const protocolError = expect.objectContaining({ code: 'NSM_PROTOCOL' });

/** Well-formed answers, one for each operation. */
const goodAnswers: Record<keyof typeof operations, unknown> = {
  Attestation: { Attestation: { document: filled(5) } },
  GetRandom: { GetRandom: { random: filled(256) } },
  DescribeNSM: { DescribeNSM: description },
  DescribePCR: { DescribePCR: { lock: true, data: filled(48) } },
  ExtendPCR: { ExtendPCR: { data: filled(48) } },
  LockPCR: 'LockPCR',
  LockPCRs: 'LockPCRs',
};

const pairs = Object.entries(operations).map(
  ([name, operation]) => [name as keyof typeof operations, operation] as const,
);

describe('answers', () => {
  test('decodes complete recorded answers', () => {
    const answerTo = (request: Uint8Array) =>
      exchanges
        .filter((e) => e.request === hex(request) && e.answerComplete)
        .map(({ answer }) => unhex(answer));

    const [pcr0] = answerTo(describePcr.encode(0));
    expect(describePcr.decode(pcr0 as Uint8Array)).toEqual({
      lock: true,
      data: unhex(
        '7923a148c54dcbdce940a1e219178f85efb4b2d5d6402f9940138f6c9b7edebefb60cc6962702172644dee1ec336705d',
      ),
    });
    const [pcr16] = answerTo(describePcr.encode(16));
    expect(describePcr.decode(pcr16 as Uint8Array)).toEqual({ lock: false, data: filled(48, 0) });
    const [pcr17] = answerTo(describePcr.encode(17));
    expect(describePcr.decode(pcr17 as Uint8Array)).toEqual({ lock: true, data: filled(48, 0) });

    const [extended] = answerTo(extendPcr.encode(16, ascii('hello')));
    expect(hex(extendPcr.decode(extended as Uint8Array))).toBe(
      '30e84b2d7eeffe6d90a475797b35e59a11b0da473eee4b3b8edfe73daf0279801bb18730c39db7f27f2f77b7b458cb9e',
    );
    const [locked, lockedAgain] = answerTo(lockPcr.encode(16));
    expect(lockPcr.decode(locked as Uint8Array)).toBeUndefined();
    expect(() => lockPcr.decode(lockedAgain as Uint8Array)).toThrow(
      expect.objectContaining({ code: 'NSM_READ_ONLY_INDEX' }),
    );
    const [lockedRange] = answerTo(lockPcrs.encode(18));
    expect(lockPcrs.decode(lockedRange as Uint8Array)).toBeUndefined();
    const [readOnly] = answerTo(extendPcr.encode(0, ascii('x')));
    expect(() => extendPcr.decode(readOnly as Uint8Array)).toThrow(
      expect.objectContaining({ code: 'NSM_READ_ONLY_INDEX' }),
    );
  });

  test('decodes truncated recorded answers when padded to their recorded length', () => {
    const [nsm, random] = exchanges;
    const answer = encode(
      {
        DescribeNSM: {
          digest: 'SHA384',
          max_pcrs: 32,
          module_id: 'i-0123456789abcdef0-enc0123456789abcdef',
          locked_pcrs: [...Array(16).keys()],
          version_major: 1,
          version_minor: 0,
          version_patch: 0,
        },
      },
      { mapSorter: () => 0 },
    );
    expect(answer).toHaveLength(nsm?.answerLength as number);
    expect(hex(answer)).toMatch(new RegExp(`^${nsm?.answer}`));
    expect(describeNsm.decode(answer)).toEqual({
      versionMajor: 1,
      versionMinor: 0,
      versionPatch: 0,
      moduleId: 'i-0123456789abcdef0-enc0123456789abcdef',
      maxPcrs: 32,
      lockedPcrs: [...Array(16).keys()],
      digest: 'SHA384',
    });

    const start = unhex(random?.answer as string);
    const filledUp = new Uint8Array(random?.answerLength as number);
    filledUp.set(start);
    expect(getRandom.decode(filledUp)).toHaveLength(256);

    for (const recorded of exchanges.filter(({ answer }) => answer.startsWith('a16b417474657374'))) {
      const whole = new Uint8Array(recorded.answerLength);
      whole.set(unhex(recorded.answer));
      // Before the document come map, "Attestation", map, "document", and the length in three bytes.
      expect(attestation.decode(whole)).toHaveLength(recorded.answerLength - 26);
    }
  });

  test.each([
    ['InvalidArgument', 'NSM_INVALID_ARGUMENT'],
    ['InvalidIndex', 'NSM_INVALID_INDEX'],
    ['InvalidResponse', 'NSM_INVALID_RESPONSE'],
    ['ReadOnlyIndex', 'NSM_READ_ONLY_INDEX'],
    ['InvalidOperation', 'NSM_INVALID_OPERATION'],
    ['BufferTooSmall', 'NSM_BUFFER_TOO_SMALL'],
    ['InputTooLarge', 'NSM_INPUT_TOO_LARGE'],
    ['InternalError', 'NSM_INTERNAL_ERROR'],
  ])('the error %s has the code %s in every operation', (name, code) => {
    for (const [operation, { decode }] of pairs) {
      expect(() => decode(encode({ Error: name }))).toThrow(
        expect.objectContaining({ code, message: `The NSM refused ${operation}: ${name}.` }),
      );
    }
  });

  test.each([
    ['an unknown error name', { Error: 'Whatever' }],
    ['success as an error', { Error: 'Success' }],
    ['the name of an inherited property', { Error: 'constructor' }],
    ['an error that is not a string', { Error: 5 }],
    ['an error that is null', { Error: null }],
    ['an error together with another answer', { Error: 'InternalError', LockPCR: null }],
    ['the bare word Error', 'Error'],
    ['an empty map', {}],
    ['a list', ['LockPCR']],
    ['a number', 1],
    ['null', null],
    ['true', true],
    ['bytes', filled(3)],
    ['an empty text', ''],
    ['the key __proto__', JSON.parse('{"__proto__": {"lock": true}}')],
  ])('every operation rejects %s', (_, answer) => {
    for (const [, { decode }] of pairs) {
      expect(() => decode(encode(answer))).toThrow(protocolError);
    }
  });

  test('an unknown error name is not repeated in the message', () => {
    expect(() => lockPcr.decode(encode({ Error: '<script>' }))).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('script') }),
    );
  });

  test('an answer is accepted only by its own operation', () => {
    for (const [requestName, { decode }] of pairs) {
      for (const [answerName, answer] of Object.entries(goodAnswers)) {
        const read = () => decode(encode(answer));
        answerName === requestName ? expect(read).not.toThrow() : expect(read).toThrow(protocolError);
      }
    }
  });

  test('rejects every truncation of a valid answer, and every trailing byte', () => {
    for (const [name, { decode }] of pairs) {
      const answer = encode(goodAnswers[name]);
      for (let length = 0; length < answer.length; length += 1) {
        expect(() => decode(answer.subarray(0, length))).toThrow(protocolError);
      }
      for (const byte of [0x00, 0xf6, 0xff]) {
        expect(() => decode(Uint8Array.of(...answer, byte))).toThrow(protocolError);
      }
    }
  });

  const zeros48 = `5830${'00'.repeat(48)}`;
  test.each([
    ['the same field twice', extendPcr, `a169457874656e64504352a2 6464617461${zeros48} 6464617461${zeros48}`],
    ['the same name twice', extendPcr, `a2${`69457874656e64504352a16464617461${zeros48}`.repeat(2)}`],
    ['a length in more bytes than needed', lockPcr, '78074c6f636b504352'],
    ['undefined as the value of an answer without fields', lockPcr, 'a1674c6f636b504352f7'],
    ['a tag', lockPcr, 'c0674c6f636b504352'],
    ['bytes of indefinite length', extendPcr, `a169457874656e64504352a16464617461 5f${zeros48}ff`],
    ['text of indefinite length', lockPcr, '7f674c6f636b504352ff'],
    ['a key that is not a string', extendPcr, `a101a16464617461${zeros48}`],
    ['a break for an item', lockPcr, 'ff'],
    ['a break for a value', extendPcr, 'a169457874656e64504352bf6464617461ffff'],
    ['a reserved initial byte', lockPcr, '1c'],
  ])('rejects CBOR with %s', (_, { decode }, answer) => {
    expect(() => decode(unhex(answer.replaceAll(' ', '')))).toThrow(protocolError);
  });

  test('rejects a break as the value of an unknown key', () => {
    const answer = hex(encode({ DescribeNSM: { ...description, zzz: 0 } }, { mapSorter: () => 0 }));
    const withBreak = answer
      .replace('a16b44657363726962654e534da8', 'a16b44657363726962654e534dbf')
      .replace(/00$/, 'ff');
    expect(describeNsm.decode(unhex(`${withBreak.slice(0, -10)}ff`))).toMatchObject({ digest: 'SHA384' });
    expect(() => describeNsm.decode(unhex(`${withBreak}ff`))).toThrow(protocolError);
  });

  test.each([
    ['a byte order mark', '6aefbbbf4c6f636b504352'],
    ['bad UTF-8', '68ff4c6f636b504352'],
  ])('a string with %s differs from the string without it', (_, answer) => {
    expect(() => lockPcr.decode(unhex(answer))).toThrow(protocolError);
  });

  test('accepts maps of indefinite length, as newer firmware writes them', () => {
    const answer = unhex(
      `bf6b4465736372696265504352bf646c6f636bf5646461746158 20${'11'.repeat(32)}ffff`.replace(' ', ''),
    );
    expect(describePcr.decode(answer)).toEqual({ lock: true, data: filled(32, 0x11) });
  });

  test('deep nesting and absurd lengths end in an error, not in a crash', () => {
    for (const answer of [
      filled(0x3000, 0x81),
      filled(0x3000, 0xa1),
      unhex('9bffffffffffffffff'),
      unhex('bbffffffffffffffff'),
      unhex('5b001fffffffffffff'),
      unhex('7bffffffffffffffff'),
    ]) {
      expect(() => lockPcr.decode(answer)).toThrow(protocolError);
    }
  });

  test('rejects more bytes than the driver can return', () => {
    expect(() => attestation.decode(encode({ Attestation: { document: filled(0x3000) } }))).toThrow(
      protocolError,
    );
    expect(attestation.decode(encode({ Attestation: { document: filled(0x3000 - 26) } }))).toHaveLength(
      12_262,
    );
  });

  test('rejects values that are not bytes', () => {
    for (const answer of [undefined, null, 'LockPCR', [0x67], new ArrayBuffer(8)]) {
      expect(() => lockPcr.decode(answer as never)).toThrow(protocolError);
    }
  });

  test('arbitrary bytes result in an NsmError or a value, never another error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), fc.constantFrom(...pairs), (answer, [, { decode }]) => {
        try {
          decode(answer);
        } catch (error) {
          expect(error).toBeInstanceOf(NsmError);
        }
      }),
      { numRuns: 3000 },
    );
  });

  test('a valid answer with one byte changed results in an NsmError or a value, never another error', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...pairs),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        ([name, { decode }], at, by) => {
          const answer = encode(goodAnswers[name]);
          answer[at % answer.length] = (answer[at % answer.length] as number) ^ by;
          try {
            decode(answer);
          } catch (error) {
            expect(error).toBeInstanceOf(NsmError);
          }
        },
      ),
      { numRuns: 3000 },
    );
  });
});
