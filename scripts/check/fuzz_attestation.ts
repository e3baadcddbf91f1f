/**
 * `npm run fuzz -- [--seconds 60] [--seed N]`: feeds mutated and generated input to decoders for a limited
 * time. They decode attestation documents, the documents' user data, the contents of sealed requests, and
 * sealed secrets. Run it with a small heap (`--max-old-space-size=64`), so that unbounded memory use ends the
 * process.
 *
 * It fails, and prints the input in hexadecimal, if a decoder returns no value and throws no typed error, or
 * takes longer than `MAX_MS`.
 */
import { readFileSync } from 'node:fs';
import { decode, encode } from 'cborg';
import { command, runAsProcess } from '../../src/cli/command.ts';
import { integer } from '../../src/cli/values.ts';
import { decodeAttestation } from '../../src/library/attestation/index.ts';
import { CodedError } from '../../src/library/errors.ts';
import { readCall } from '../../src/library/sealing/request.ts';
import { decodeSealedSecrets, readSecrets } from '../../src/library/sealing/secrets.ts';
import { decodeUserData } from '../../src/library/sealing/user_data.ts';
import { quantity } from '../../src/library/wording.ts';
import { encodeCose, encodeMap, head, type MapEntry } from '../../src/testing/attestation_ca.ts';

/** Every code of a FuzzError, and what it means. */
export const FUZZ_CODES = {
  UNTYPED_ERROR: 'The decoder threw something other than a CodedError.',
  TOO_SLOW: 'One input took longer than `MAX_MS`.',
} as const;

class FuzzError extends CodedError<keyof typeof FUZZ_CODES> {}

/**
 * Maximum time of an input in milliseconds. A document takes well under one; the rest allows for a busy
 * machine.
 */
const MAX_MS = 500;
const VECTORS = new URL('../../test/vectors/', import.meta.url);
const SEEDS = ['nautilus-weather', 'nautilus-twitter', 'evervault-debug', 'qemu-unsigned'].map((name) =>
  Buffer.from(readFileSync(new URL(`${name}.hex`, VECTORS), 'utf8').trim(), 'hex'),
);
const SEALED = JSON.parse(readFileSync(new URL('sealing.json', VECTORS), 'utf8'));
const USER_DATA: readonly Buffer[] = SEALED.user_data.map(({ bytes }: { bytes: string }) =>
  Buffer.from(bytes, 'hex'),
);
const CONTENTS: readonly Buffer[] = SEALED.requests.map(({ content }: { content: string }) =>
  Buffer.from(content),
);
const SECRETS: readonly Buffer[] = SEALED.secrets.map(({ message }: { message: string }) =>
  Buffer.from(message),
);
const SECRETS_CONTENTS: readonly Buffer[] = SEALED.secrets.map(({ content }: { content: string }) =>
  Buffer.from(content),
);
/** The encoded fields of a real document. */
const FIELDS: readonly MapEntry[] = [...decode(decode(SEEDS[0] as Uint8Array)[2], { useMaps: true })].map(
  ([field, value]) => [field, encode(value)],
);

/** Returns a generator of random numbers (Mulberry32). The same seed gives the same numbers. */
export function randomNumbers(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

type Random = ReturnType<typeof randomNumbers>;

function pick<T>(random: Random, list: readonly T[]): T {
  return list[random(list.length)] as T;
}

function randomBytes(random: Random, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => random(256));
}

/**
 * Returns a real input of which a few parts are changed, removed, doubled, or replaced by parts of another.
 */
function mutate(random: Random, seeds: readonly Uint8Array[]): Uint8Array {
  let bytes: Uint8Array = pick(random, seeds).slice();
  for (let changes = 1 + random(8); changes > 0; changes--) {
    const at = random(bytes.length + 1);
    const length = random(random(4) === 0 ? 512 : 4);
    const before = bytes.subarray(0, at);
    switch (random(4)) {
      case 0:
        bytes = Buffer.concat([before, randomBytes(random, length), bytes.subarray(at + length)]);
        break;
      case 1:
        bytes = Buffer.concat([before, bytes.subarray(at + length)]);
        break;
      case 2:
        bytes = Buffer.concat([before, bytes.subarray(at, at + length), bytes.subarray(at)]);
        break;
      default:
        bytes = Buffer.concat([
          before,
          pick(random, seeds).subarray(at, at + length),
          bytes.subarray(at + length),
        ]);
    }
  }
  return bytes;
}

/** Returns CBOR that is mostly well-formed. Heads may announce a wrong length of the content. */
function randomItem(random: Random, depth: number): Uint8Array {
  const count = random(random(8) === 0 ? 300 : 5);
  const lie = random(40) === 0 ? random(0xffff) : count;
  const items = (number: number) => Array.from({ length: number }, () => randomItem(random, depth - 1));
  switch (random(depth > 0 ? 10 : 6)) {
    case 0:
      return head(random(2), random(0xffff));
    case 1:
      return Buffer.concat([head(2, lie), randomBytes(random, pick(random, [count, 32, 48, 64]))]);
    case 2:
      return encode(pick(random, ['SHA384', '', 'x', 'ü'.repeat(count)]));
    case 3:
      return Uint8Array.of(0xe0 | random(32));
    case 4:
      return randomBytes(random, 1 + random(9));
    case 5:
      return encode(randomBytes(random, pick(random, [0, 32, 48, 64, 96])));
    case 6:
      return Buffer.concat([head(4, lie), ...items(Math.min(count, 8))]);
    case 7:
      return Buffer.concat([head(5, lie), ...items(2 * Math.min(count, 8))]);
    case 8:
      return Buffer.concat([
        Uint8Array.of(pick(random, [0x9f, 0xbf, 0x5f, 0x7f])),
        ...items(count % 8),
        Uint8Array.of(0xff),
      ]);
    default:
      return Buffer.concat([head(6, random(30)), randomItem(random, depth - 1)]);
  }
}

/** Returns nested items. There are up to 4,000 levels, far more than a decoder allows. */
function randomNesting(random: Random): Uint8Array {
  const openings = Array.from({ length: random(4000) }, () =>
    pick(random, [0x81, 0x9f, 0xbf, 0xc6, 0x5f, 0x7f]),
  );
  return Buffer.concat([Uint8Array.from(openings), randomItem(random, 2)]);
}

/** Returns an envelope around a payload in which about every sixth field is arbitrary. */
function randomDocument(random: Random): Uint8Array {
  const entries = FIELDS.filter(() => random(30) !== 0).map(
    ([field, value]): MapEntry => [field, random(6) === 0 ? randomItem(random, 4) : value],
  );
  if (random(20) === 0) entries.push([pick(random, ['nonce', 'x', 1]), randomItem(random, 4)]);
  const payload =
    random(10) === 0 ? randomNesting(random) : encodeMap(entries, pick(random, ['definite', 'indefinite']));
  return encodeCose({ payload, signature: randomBytes(random, random(20) === 0 ? 95 : 96) });
}

type Decoder = (bytes: Uint8Array) => unknown;

/** Returns bytes that resemble an attestation document, and a few that don't. */
export function randomDocumentBytes(random: Random): Uint8Array {
  switch (random(6)) {
    case 0:
      return randomItem(random, 6);
    case 1:
      return randomDocument(random);
    default:
      return mutate(random, SEEDS);
  }
}

/** Returns an input, and the decoder that reads it. */
function nextInput(random: Random): { decode: Decoder; input: Uint8Array } {
  switch (random(8)) {
    case 6:
      return { decode: readSealedSecrets, input: mutate(random, SECRETS) };
    case 7:
      return { decode: readSecrets, input: mutate(random, SECRETS_CONTENTS) };
    case 0:
      return { decode: decodeUserData, input: mutate(random, USER_DATA) };
    case 1:
      return { decode: readCall, input: mutate(random, CONTENTS) };
    default:
      return { decode: decodeAttestation, input: randomDocumentBytes(random) };
  }
}

/** Decodes sealed secrets. The decoder takes JSON, so bytes that are not JSON become a JSON string. */
function readSealedSecrets(bytes: Uint8Array): unknown {
  const text = new TextDecoder().decode(bytes);
  let json: unknown = text;
  try {
    json = JSON.parse(text);
  } catch {}
  return decodeSealedSecrets(json);
}

/** Returns `decoded`, or the code of the decoder's error. @throws any error that is not a CodedError */
function describeOutcome(read: Decoder, input: Uint8Array): string {
  try {
    read(new Uint8Array(input));
    return 'decoded';
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
    return String(error.code);
  }
}

/** Decodes inputs until the time is over. @throws FuzzError at the first input that breaks its decoder */
function fuzz(seconds: number, seed: number) {
  const random = randomNumbers(seed);
  const end = performance.now() + seconds * 1000;
  const outcomes = new Map<string, number>();
  let inputs = 0;
  for (; performance.now() < end; inputs++) {
    const { decode: read, input } = nextInput(random);
    const describe = (problem: string) =>
      `seed ${seed}, input ${inputs}: ${problem}\n${Buffer.from(input).toString('hex')}`;
    const start = performance.now();
    let outcome: string;
    try {
      outcome = describeOutcome(read, input);
    } catch (cause) {
      throw new FuzzError(
        'UNTYPED_ERROR',
        describe(cause instanceof Error ? (cause.stack ?? '') : String(cause)),
        { cause },
      );
    }
    const elapsedMs = performance.now() - start;
    if (elapsedMs > MAX_MS) throw new FuzzError('TOO_SLOW', describe(`took ${elapsedMs.toFixed(0)} ms`));
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }
  return { inputs, outcomes: [...outcomes].sort(([, a], [, b]) => b - a) };
}

export const main = command({
  name: 'fuzz_attestation',
  program: 'npm run fuzz --',
  purpose: 'Feeds changed and generated attestation documents and sealed content to their decoders.',
  arguments: {},
  options: {
    seconds: { value: '<number>', help: 'duration of the run', schema: integer(1, 86_400), default: '60' },
    seed: {
      value: '<number>',
      help: 'a run with the same seed makes the same inputs',
      schema: integer(0, 999_999_999),
    },
  },
  notes: `exit codes: 0 each input was decoded or refused with a typed error; 1 an input was neither, or took too long; 2 invalid
command line`,
  run({ options: { seconds, seed = Date.now() % 1e9 } }) {
    const { inputs, outcomes } = fuzz(seconds, seed);
    const lines = outcomes.map(([outcome, count]) => `${String(count).padStart(10)}  ${outcome}`);
    return {
      json: { seed, seconds, inputs, outcomes: Object.fromEntries(outcomes) },
      text: [
        `seed ${seed}: ${quantity(inputs, 'input')} in ${seconds} s, each decoded or refused with a typed error`,
        ...lines,
      ].join('\n'),
    };
  },
});

if (import.meta.main) await runAsProcess(main);
