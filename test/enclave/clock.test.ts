import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decode, encode } from 'cborg';
import { describe, expect, test } from 'vitest';
import { attestation } from '../../src/server/nsm/messages.ts';
import { encodeCose, encodeMap, type MapEntry } from '../../src/testing/attestation_ca.ts';
import { EmulatedNsm } from '../../src/testing/emulated_nsm.ts';
import { canRun, INIT, temporaryFolder } from './init.ts';

function runInit(...args: string[]) {
  return spawnSync(INIT, args, { encoding: 'utf8' });
}

/** Returns the times that init reads from answers to a nonce: milliseconds, or `none`. */
function readTimes(nonce: Uint8Array, answers: readonly Uint8Array[]): string[] {
  const dir = temporaryFolder();
  const file = (name: string, bytes: Uint8Array) => {
    writeFileSync(join(dir, name), bytes);
    return join(dir, name);
  };
  const files = answers.map((answer, index) => file(`${index}`, answer));
  const { status, stdout, stderr } = runInit('nsm-time', file('nonce', nonce), ...files);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout.trimEnd().split('\n');
}

type Fields = Map<string, unknown>;

function wrapDocument(document: Uint8Array): Uint8Array {
  return encode({ Attestation: { document } });
}

/** Returns an answer with a document that has these fields. */
function createAnswer(fields: Fields | object): Uint8Array {
  return wrapPayload(encode(fields));
}

function wrapPayload(payload: Uint8Array): Uint8Array {
  return wrapDocument(encodeCose({ payload, signature: new Uint8Array(96) }));
}

function decodeFields(document: Uint8Array): Fields {
  const cose: unknown[] = decode(document, { tags: { 18: (content) => content() } });
  return decode(cose[2] as Uint8Array, { useMaps: true }) as Fields;
}

const vector = (name: string) =>
  Buffer.from(readFileSync(new URL(`../vectors/${name}.hex`, import.meta.url), 'utf8').trim(), 'hex');
const NONCE = Uint8Array.from({ length: 16 }, (_, index) => index);
const TIME_MS = 1_795_000_000_000;

describe.runIf(canRun)("the enclave's clock", () => {
  test.each([
    ['ptp0', '0', 'none'],
    ['ptp0', '999999', 'none'],
    ['ptp0', '-999999', 'none'],
    ['ptp0', '1000000', 'slew'],
    ['ptp0', '-499999999', 'slew'],
    ['ptp0', '500000000', 'step'],
    ['ptp0', '-86400000000000', 'step'],
    // Documents may have the time in whole seconds.
    ['nsm', '0', 'none'],
    ['nsm', '999999999', 'none'],
    ['nsm', '-999999999', 'none'],
    ['nsm', '1000000000', 'step'],
    ['nsm', '-86400000000000', 'step'],
  ])('that differs from %s by %s ns is corrected by: %s', (reference, difference, correction) => {
    expect(runInit('correction', reference, difference).stdout).toBe(`${correction}\n`);
  });

  test.runIf(process.getuid?.() === 0)('is set by a process that has no other right', () => {
    const { status, stdout, stderr } = runInit('timekeeper', '1004');
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const field = (name: string) => new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*$`, 'm').exec(stdout)?.[1];
    expect(field('Uid')?.split('\t')).toEqual(['1004', '1004', '1004', '1004']);
    expect(field('Gid')?.split('\t')).toEqual(['1004', '1004', '1004', '1004']);
    expect(field('Groups')).toBe('');
    // The mask is that of CAP_SYS_TIME, 25 in linux/capability.h.
    for (const set of ['CapPrm', 'CapEff']) expect(field(set)).toBe('0000000002000000');
    for (const set of ['CapInh', 'CapBnd', 'CapAmb']) expect(field(set)).toBe('0000000000000000');
    expect(field('NoNewPrivs')).toBe('1');
  });
});

describe.runIf(canRun)("the time of the NSM's documents", () => {
  test('is read from an answer to the request that the server makes', async () => {
    const request = { publicKey: null, nonce: NONCE, userData: null };
    const answer = await new EmulatedNsm(() => TIME_MS).transact(attestation.encode(request));
    expect(readTimes(NONCE, [answer])).toEqual([`${TIME_MS}`]);
  });

  test.each([
    ['qemu-unsigned', '1795154233000'],
    ['evervault-debug', '1695049410860'],
  ])('is read from %s only for the nonce in the document', (name, ms) => {
    const nonce = decodeFields(vector(name)).get('nonce') as Uint8Array;
    expect(readTimes(nonce, [wrapDocument(vector(name))])).toEqual([ms]);
    expect(readTimes(NONCE, [wrapDocument(vector(name))])).toEqual(['none']);
  });

  test.each([
    ['nautilus-weather', '1744683923696'],
    ['nautilus-twitter', '1744731537935'],
  ])('is read from %s only if the document has a nonce', (name, ms) => {
    expect(readTimes(NONCE, [wrapDocument(vector(name))])).toEqual(['none']);
    expect(readTimes(NONCE, [createAnswer(decodeFields(vector(name)).set('nonce', NONCE))])).toEqual([ms]);
  });

  test('may be from 2020 to 2099, in milliseconds', () => {
    const first = Date.UTC(2020, 0);
    const end = Date.UTC(2100, 0);
    const stamps = [
      0,
      0xffff_ffff,
      Math.trunc(TIME_MS / 1000),
      first - 1,
      first,
      end - 1,
      end,
      TIME_MS * 1000,
    ];
    const answers = stamps.map((timestamp) => createAnswer({ timestamp, nonce: NONCE }));
    const good = [first, end - 1].map(String);
    expect(readTimes(NONCE, answers)).toEqual(['none', 'none', 'none', 'none', ...good, 'none', 'none']);
  });

  test('must be at its place, once, in a document for this nonce', () => {
    const valid = { timestamp: TIME_MS, nonce: NONCE };
    const twice = (key: string, value: unknown) => {
      const entries = [...Object.entries(valid), [key, value] as const];
      return wrapPayload(encodeMap(entries.map(([name, value]) => [name, encode(value)])));
    };
    const forged = Buffer.concat([encode('timestamp'), encode(TIME_MS)]);
    const refused: Uint8Array[] = [
      createAnswer({ nonce: NONCE }),
      createAnswer({ timestamp: TIME_MS }),
      createAnswer({ timestamp: TIME_MS, nonce: null }),
      createAnswer({ timestamp: TIME_MS, nonce: NONCE.subarray(1) }),
      createAnswer({ timestamp: TIME_MS, nonce: Uint8Array.from([...NONCE, 0]) }),
      createAnswer({ timestamp: TIME_MS, nonce: Buffer.from(NONCE).toString('latin1') }),
      createAnswer({ timestamp: `${TIME_MS}`, nonce: NONCE }),
      createAnswer({ timestamp: -TIME_MS, nonce: NONCE }),
      createAnswer({ timestamp: TIME_MS + 0.5, nonce: NONCE }),
      createAnswer({ timestamp: [TIME_MS], nonce: NONCE }),
      // The bytes that look like the time are part of another field.
      createAnswer({ user_data: forged, nonce: NONCE }),
      createAnswer({ pcrs: { timestamp: TIME_MS }, nonce: NONCE }),
      twice('timestamp', TIME_MS),
      twice('nonce', NONCE),
      encode({ Error: 'InternalError' }),
      encode({ GetRandom: { random: NONCE } }),
      encode({ Attestation: { document: createAnswer(valid), more: 1 } }),
      encode({ Attestation: { document: 'text' } }),
      Buffer.concat([createAnswer(valid), Buffer.of(0)]),
      wrapDocument(encode([new Uint8Array(4), new Map(), encode(valid)])),
      wrapDocument(encode(valid)),
    ];
    expect(readTimes(NONCE, [createAnswer(valid), ...refused])).toEqual([
      `${TIME_MS}`,
      ...refused.map(() => 'none'),
    ]);
  });

  test('is read with any content of the other fields', () => {
    const before = {
      text: 'nonce',
      bytes: randomBytes(70_000).subarray(0, 5000),
      list: [1, [-1, [0.5, null, true]], {}],
      deep: Array.from({ length: 5 }).reduce<unknown[]>((inner) => [inner], []),
    };
    const fields = { ...before, timestamp: TIME_MS, nonce: NONCE };
    expect(readTimes(NONCE, [createAnswer(fields)])).toEqual([`${TIME_MS}`]);
    const open = Object.entries({ ...fields, pcrs: {} }).map(([name, value]): MapEntry => {
      const pcrs = encodeMap([[0, encode(new Uint8Array(48))]], 'indefinite');
      return [name, name === 'pcrs' ? pcrs : encode(value)];
    });
    expect(readTimes(NONCE, [wrapPayload(encodeMap(open, 'indefinite'))])).toEqual([`${TIME_MS}`]);
    const tagged = Buffer.concat([
      Buffer.of(0xd2),
      encode([new Uint8Array(), new Map(), encode({ timestamp: TIME_MS, nonce: NONCE }), new Uint8Array()]),
    ]);
    expect(readTimes(NONCE, [wrapDocument(tagged)])).toEqual([`${TIME_MS}`]);
  });

  test('is not read from a truncated answer, and not misread from an answer with a wrong byte', () => {
    const document = vector('qemu-unsigned');
    const nonce = decodeFields(document).get('nonce') as Uint8Array;
    const answer = wrapDocument(document);
    const cut = Array.from(answer, (_, index) => answer.subarray(0, index));
    expect(new Set(readTimes(nonce, cut))).toEqual(new Set(['none']));
    const time = answer.length - document.length + document.indexOf('timestamp') + 'timestamp'.length;
    const wrong = Array.from(answer, (_, index) => {
      const bytes = Buffer.from(answer);
      bytes[index] = (bytes[index] ?? 0) ^ (1 + ((randomBytes(1)[0] ?? 0) % 255));
      return bytes;
    });
    const read = readTimes(nonce, wrong);
    // If the time itself was changed, another time is read.
    const otherTimes = read.filter((_, index) => index < time || index > time + 8);
    expect(otherTimes.filter((value) => value !== 'none' && value !== '1795154233000')).toEqual([]);
    const garbage = Array.from({ length: 500 }, (_, index) =>
      Buffer.concat([answer.subarray(0, index), randomBytes(100)]),
    );
    expect(new Set(readTimes(nonce, garbage))).toEqual(new Set(['none']));
  });

  test('is not read from a payload with lengths beyond its end or with deep nesting', () => {
    const heads = [0x5b, 0x7b, 0x9b, 0xbb, 0xdb].map((head) =>
      Buffer.from([head, ...new Array(8).fill(0xff)]),
    );
    const payloads = [
      ...heads.map((head) => Buffer.concat([Buffer.of(0xa2), encode('x'), head])),
      ...heads,
      // These are indefinite lengths without an end, or with an end after a key, and values that RFC 8949
      // reserves.
      Buffer.of(0xbf),
      Buffer.of(0xbf, 0xff),
      Buffer.of(0xbf, 0x61, 0x78, 0xff),
      Buffer.of(0xff),
      Buffer.of(0xa1, 0x61, 0x78, 0x1c),
      Buffer.of(0xa1, 0x61, 0x78, 0x5f, 0x41, 0x78, 0xff),
      ...[0x81, 0x9f, 0xbf, 0xc1].map((deeper) =>
        Buffer.concat([Buffer.of(0xa1), encode('x'), Buffer.alloc(8000, deeper)]),
      ),
    ];
    expect(
      new Set(readTimes(NONCE, [...payloads.map(wrapPayload), Buffer.alloc(12288, 0x81), ...heads])),
    ).toEqual(new Set(['none']));
  });
});
