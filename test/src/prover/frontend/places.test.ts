/**
 * Tests how many requests get a place: as many as can be answered in time, estimated from the last proofs.
 */
import { expect, test } from 'vitest';
import { type Place, Places } from '../../../../src/prover/frontend/places.ts';

const busy = (retryAfterSeconds: number) =>
  expect.objectContaining({ code: 'PROVER_BUSY', status: 503, retryAfterSeconds });

function createPlaces(answerSeconds: number, proofSeconds: number) {
  let now = 0;
  const places = new Places({ answerSeconds, proofSeconds, now: () => now });
  const take = () => {
    const place = places.offer();
    place.take();
    return place;
  };
  /** Takes all free places. */
  const fill = () => {
    const taken: Place[] = [];
    for (;;) {
      try {
        taken.push(take());
      } catch (error) {
        expect(error).toMatchObject({ code: 'PROVER_BUSY' });
        return taken;
      }
    }
  };
  const passSeconds = (seconds: number) => {
    now += seconds * 1000;
  };
  return { places, take, fill, passSeconds };
}

test('at first there are as many places as PROOF_SECONDS allows, and further callers get Retry-After', () => {
  const { places, take, fill } = createPlaces(12, 2);
  expect(fill()).toHaveLength(5);
  expect(places.taken).toBe(5);
  expect(take).toThrow(busy(2));
  expect(() => places.requireRoom()).toThrow(busy(2));
});

test('a place that is left twice can be taken once by another request', () => {
  const { places, take, fill } = createPlaces(12, 2);
  const [first] = fill();
  first?.leave();
  first?.leave();
  take();
  expect(take).toThrow(busy(2));
  first?.recordProof();
  expect(places.taken).toBe(5);
});

test('the time that a request has waited for keys counts as part of its wait', () => {
  const { places, take, fill, passSeconds } = createPlaces(12, 2);
  const late = places.offer();
  passSeconds(5);
  const earlierPlaces = [take(), take()];
  expect(late.take).toThrow(busy(2));
  earlierPlaces[0]?.leave();
  late.take();
  expect(fill()).toHaveLength(3);
});

test('leaving a place that was never taken has no effect', () => {
  const { places } = createPlaces(12, 2);
  const place = places.offer();
  place.leave();
  place.recordProof();
  expect([places.taken, places.proofSeconds]).toEqual([0, 2]);
});

test('a second try has time if its proof and those of all other requests fit into ANSWER_SECONDS', () => {
  const { take, passSeconds } = createPlaces(12, 2);
  const first = take();
  const earlierPlaces = [take(), take(), take()];
  passSeconds(4);
  expect(first.hasTime()).toBe(true);
  passSeconds(1);
  expect(first.hasTime()).toBe(false);
  earlierPlaces[0]?.leave();
  expect(first.hasTime()).toBe(true);
});

test('a request gets a place if no other request waits, no matter how long a proof takes', () => {
  const { take, fill } = createPlaces(1, 30);
  expect(fill()).toHaveLength(1);
  expect(take).toThrow(busy(30));
});

test.each([
  ['one backend, one request after the other', 1],
  ['one backend, under load', 5],
])('%s: after ten proofs of 1 s, where 2 s were expected, there are twice as many places', (_, load) => {
  const { places, take, fill, passSeconds } = createPlaces(12, 2);
  const waiting = Array.from({ length: load }, take);
  for (let proof = 0; proof < 10; proof++) {
    passSeconds(1);
    waiting.shift()?.recordProof();
    waiting.push(take());
  }
  expect(places.proofSeconds).toBeCloseTo(1);
  for (const place of waiting) place.leave();
  expect(fill()).toHaveLength(10);
});

test('two backends that take 2 s for a proof count as one backend that takes 1 s', () => {
  const { places, take, fill, passSeconds } = createPlaces(12, 2);
  const waiting = Array.from({ length: 4 }, take);
  for (let pair = 0; pair < 5; pair++) {
    passSeconds(2);
    for (let backend = 0; backend < 2; backend++) {
      waiting.shift()?.recordProof();
      waiting.push(take());
    }
  }
  expect(places.proofSeconds).toBeCloseTo(1);
  for (const place of waiting) place.leave();
  expect(fill()).toHaveLength(10);
});

test('a slower backend has fewer places, and idle time does not count as slowness', () => {
  const { places, take, fill, passSeconds } = createPlaces(12, 2);
  for (let proof = 0; proof < 10; proof++) {
    passSeconds(3600);
    const place = take();
    passSeconds(5);
    place.recordProof();
  }
  expect(places.proofSeconds).toBeCloseTo(5);
  expect(fill()).toHaveLength(2);
});

test('requests that end without a proof do not change the expected duration', () => {
  const { places, take, passSeconds } = createPlaces(12, 2);
  for (let request = 0; request < 10; request++) {
    const place = take();
    passSeconds(0.01);
    place.leave();
  }
  expect(places.proofSeconds).toBe(2);
});

test('a backend of constant speed answers every caller with a place in time', () => {
  // The arrivals are a deterministic sequence.
  let state = 1;
  const random = () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  const { places, passSeconds } = createPlaces(12, 2);
  const queue: { place: Place; arrivedAt: number }[] = [];
  const waits: number[] = [];
  let [time, freeAt, refused] = [0, 0, 0];
  const advance = (until: number) => {
    while (queue[0] && freeAt <= until) {
      passSeconds(freeAt - time);
      time = freeAt;
      const { place, arrivedAt } = queue.shift() as (typeof queue)[number];
      waits.push(time - arrivedAt);
      place.recordProof();
      freeAt += 2;
    }
    passSeconds(until - time);
    time = until;
  };
  for (let caller = 0; caller < 2000; caller++) {
    // Bursts alternate with calm.
    advance(time + (random() < 0.1 ? 30 * random() : 0.5 * random()));
    const place = places.offer();
    try {
      place.take();
    } catch {
      refused++;
      continue;
    }
    if (queue.length === 0) freeAt = time + 2;
    queue.push({ place, arrivedAt: time });
  }
  expect(refused).toBeGreaterThan(100);
  expect(Math.max(...waits)).toBeLessThanOrEqual(12);
});
