/** The number of requests that get a place: as many as can be answered in time, judged by the last proofs. */
import { expect, test } from 'vitest';
import { type Place, Places } from '../../../../src/prover/frontend/places.ts';

const busy = (retryAfterSeconds: number) =>
  expect.objectContaining({ code: 'PROVER_BUSY', status: 503, retryAfterSeconds });

function placesFor(answerSeconds: number, proofSeconds: number) {
  let now = 0;
  const places = new Places({ answerSeconds, proofSeconds, now: () => now });
  const take = () => {
    const place = places.place();
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
  const pass = (seconds: number) => {
    now += seconds * 1000;
  };
  return { places, take, fill, pass };
}

test('at first there are as many places as PROOF_SECONDS allows, and other callers learn when to come again', () => {
  const { places, take, fill } = placesFor(12, 2);
  expect(fill()).toHaveLength(5);
  expect(places.taken).toBe(5);
  expect(take).toThrow(busy(2));
  expect(() => places.requireRoom()).toThrow(busy(2));
});

test('a place that is left can be taken by another, once, even if it is left again', () => {
  const { places, take, fill } = placesFor(12, 2);
  const [first] = fill();
  first?.leave();
  first?.leave();
  take();
  expect(take).toThrow(busy(2));
  first?.proved();
  expect(places.taken).toBe(5);
});

test('the time that a request has waited for keys counts against it', () => {
  const { places, take, fill, pass } = placesFor(12, 2);
  const late = places.place();
  pass(5);
  const earlierPlaces = [take(), take()];
  expect(late.take).toThrow(busy(2));
  earlierPlaces[0]?.leave();
  late.take();
  expect(fill()).toHaveLength(3);
});

test('leaving a place that was never taken has no effect', () => {
  const { places } = placesFor(12, 2);
  const place = places.place();
  place.leave();
  place.proved();
  expect([places.taken, places.proofSeconds]).toEqual([0, 2]);
});

test('a second try makes sense if its proof fits in time behind all others, also if earlier requests end early', () => {
  const { take, pass } = placesFor(12, 2);
  const first = take();
  const earlierPlaces = [take(), take(), take()];
  pass(4);
  expect(first.hasTime()).toBe(true);
  pass(1);
  expect(first.hasTime()).toBe(false);
  earlierPlaces[0]?.leave();
  expect(first.hasTime()).toBe(true);
});

test('a place is given while nobody waits, no matter how long a proof takes', () => {
  const { take, fill } = placesFor(1, 30);
  expect(fill()).toHaveLength(1);
  expect(take).toThrow(busy(30));
});

test.each([
  ['one backend, one after the other', 1],
  ['one backend, under load', 5],
])('%s: after ten proofs of 1 s, where 2 s were expected, there are twice as many places', (_, load) => {
  const { places, take, fill, pass } = placesFor(12, 2);
  const waiting = Array.from({ length: load }, take);
  for (let proof = 0; proof < 10; proof++) {
    pass(1);
    waiting.shift()?.proved();
    waiting.push(take());
  }
  expect(places.proofSeconds).toBeCloseTo(1);
  for (const place of waiting) place.leave();
  expect(fill()).toHaveLength(10);
});

test('two backends of 2 s finish their proofs in pairs', () => {
  const { places, take, fill, pass } = placesFor(12, 2);
  const waiting = Array.from({ length: 4 }, take);
  for (let pair = 0; pair < 5; pair++) {
    pass(2);
    for (let each = 0; each < 2; each++) {
      waiting.shift()?.proved();
      waiting.push(take());
    }
  }
  expect(places.proofSeconds).toBeCloseTo(1);
  for (const place of waiting) place.leave();
  expect(fill()).toHaveLength(10);
});

test('a slower backend leaves fewer places, and pauses do not count as slowness', () => {
  const { places, take, fill, pass } = placesFor(12, 2);
  for (let proof = 0; proof < 10; proof++) {
    pass(3600);
    const place = take();
    pass(5);
    place.proved();
  }
  expect(places.proofSeconds).toBeCloseTo(5);
  expect(fill()).toHaveLength(2);
});

test('requests that end without a proof do not change the expected duration', () => {
  const { places, take, pass } = placesFor(12, 2);
  for (let each = 0; each < 10; each++) {
    const place = take();
    pass(0.01);
    place.leave();
  }
  expect(places.proofSeconds).toBe(2);
});

test('every caller with a place, at any time, is answered in time by a backend that keeps its pace', () => {
  // The arrivals are a deterministic sequence.
  let state = 1;
  const random = () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  const { places, pass } = placesFor(12, 2);
  const queue: { place: Place; at: number }[] = [];
  const waits: number[] = [];
  let [time, freeAt, refused] = [0, 0, 0];
  const advance = (until: number) => {
    while (queue[0] && freeAt <= until) {
      pass(freeAt - time);
      time = freeAt;
      const { place, at } = queue.shift() as (typeof queue)[number];
      waits.push(time - at);
      place.proved();
      freeAt += 2;
    }
    pass(until - time);
    time = until;
  };
  for (let caller = 0; caller < 2000; caller++) {
    // Bursts alternate with calm.
    advance(time + (random() < 0.1 ? 30 * random() : 0.5 * random()));
    const place = places.place();
    try {
      place.take();
    } catch {
      refused++;
      continue;
    }
    if (queue.length === 0) freeAt = time + 2;
    queue.push({ place, at: time });
  }
  expect(refused).toBeGreaterThan(100);
  expect(Math.max(...waits)).toBeLessThanOrEqual(12);
});
