import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Listed, OrderedList } from '../../../src/service/ordered_list.ts';

class Element implements Listed<Element> {
  readonly name: number;
  list: OrderedList<Element> | undefined = undefined;
  before: Element | undefined = undefined;
  after: Element | undefined = undefined;

  constructor(name: number) {
    this.name = name;
  }
}

test('an ordered list keeps the order of a Set in which each element is deleted before it is added again', () => {
  const steps = fc.array(fc.tuple(fc.constantFrom('add', 'delete', 'move'), fc.integer({ min: 0, max: 7 })), {
    maxLength: 60,
  });
  fc.assert(
    fc.property(steps, (steps) => {
      const elements = Array.from({ length: 8 }, (_, name) => new Element(name));
      const [list, otherList] = [new OrderedList<Element>(), new OrderedList<Element>()];
      const [set, otherSet] = [new Set<Element>(), new Set<Element>()];
      for (const [step, index] of steps) {
        const element = elements[index] as Element;
        const isIn = set.delete(element);
        otherSet.delete(element);
        if (step === 'add') {
          list.add(element);
          set.add(element);
        } else if (step === 'move') {
          otherList.add(element);
          otherSet.add(element);
        } else {
          expect(list.delete(element)).toBe(isIn);
          otherList.delete(element);
        }
        expect([...list]).toEqual([...set]);
        expect([...otherList]).toEqual([...otherSet]);
        expect([list.size, otherList.size]).toEqual([set.size, otherSet.size]);
        expect(list.first).toBe([...set][0]);
        for (const element of elements) expect(list.has(element)).toBe(set.has(element));
      }
    }),
  );
});

test('an ordered list keeps no reference to removed elements, and these refer neither to other elements nor to the list', () => {
  const list = new OrderedList<Element>();
  const elements = Array.from({ length: 5 }, (_, name) => new Element(name));
  for (const element of elements) list.add(element);
  for (const element of [2, 0, 4].map((name) => elements[name] as Element)) {
    list.delete(element);
    expect(element).toMatchObject({ list: undefined, before: undefined, after: undefined });
  }
  expect([...list].map(({ name }) => name)).toEqual([1, 3]);
});

test('an ordered list that changes during an iteration yields exactly the elements that it had at the start', () => {
  const list = new OrderedList<Element>();
  const elements = Array.from({ length: 4 }, (_, name) => new Element(name));
  for (const element of elements) list.add(element);
  const visited: number[] = [];
  for (const element of list) {
    visited.push(element.name);
    list.delete(element);
    list.add(new Element(9));
  }
  expect(visited).toEqual([0, 1, 2, 3]);
  expect(list.size).toBe(4);
});
