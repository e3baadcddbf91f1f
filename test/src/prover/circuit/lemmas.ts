/**
 * Lemmas for gadgets whose outputs are determined in a way that propagation can't detect. Their signals are
 * found by name.
 */
import { eachSymbol } from './r1cs.ts';
import type { Lemma } from './unique.ts';

interface Gadget {
  readonly name: string;
  /** Reason why the signals of `needs` determine those of `gives`. */
  readonly because: string;
  /** Matches the component's name, and after it the name of a signal that no other template has. */
  readonly mark: RegExp;
  readonly needs: readonly string[];
  readonly gives: readonly string[];
}

export const GADGETS: readonly Gadget[] = [
  {
    name: 'Below',
    because: 'the steps are bits that add up to 1, and the number of ones is the length (select.circom)',
    mark: /^(.*)\.below\[0\]$/,
    needs: ['length'],
    gives: ['below'],
  },
  {
    name: 'OneHot',
    because: 'the bits add up to 1, so one is set, and its position is the index (select.circom)',
    mark: /^(.*)\.hot\[0\]$/,
    needs: ['index'],
    gives: ['hot'],
  },
  {
    name: 'Base64Bits',
    because: '64 sextets have 64 different characters (gadgets.prover.ts)',
    mark: /^(.*)\.encode\[0\]\.char$/,
    needs: ['chars', 'inside'],
    gives: ['bits'],
  },
  {
    name: 'IsZero',
    because: 'in * inv = 1 - out and in * out = 0: out is 1 if in is 0, else out is 0 (circomlib)',
    mark: /^(.*)\.inv$/,
    needs: ['in'],
    gives: ['out'],
  },
  {
    name: 'Num2Bits_strict',
    because:
      'AliasCheck refuses the second representation, which is larger by the order of the field (circomlib)',
    mark: /^(.*)\.aliasCheck\.in\[0\]$/,
    needs: ['in'],
    gives: ['out'],
  },
  {
    name: 'FpMul',
    because: 'a * b = p * q + r with r < p has one solution for q and r in the integers (@zk-email/circuits)',
    mark: /^(.*)\.q_range_check\[0\]\.in$/,
    needs: ['a', 'b', 'p'],
    gives: ['q', 'r'],
  },
];

/** Makes a lemma for each instance of a gadget. */
export function findLemmas(symbols: string): Lemma[] {
  const components: { component: string; gadget: Gadget }[] = [];
  const wiresByArray = new Map<string, number[]>();
  eachSymbol(symbols, (name, wire) => {
    const array = name.replace(/\[\d+\]$/, '');
    const wires = wiresByArray.get(array);
    // A signal that the compiler found to be constant has no wire.
    if (wires) wires.push(...(wire > 0 ? [wire] : []));
    else wiresByArray.set(array, wire > 0 ? [wire] : []);
    for (const gadget of GADGETS) {
      const [, component] = gadget.mark.exec(name) ?? [];
      if (component !== undefined) components.push({ component, gadget });
    }
  });
  return components.map(({ component, gadget }) => {
    const findWires = (names: readonly string[]) =>
      names.flatMap((name) => {
        const wires = wiresByArray.get(`${component}.${name}`);
        if (!wires) throw new Error(`${component} is not a ${gadget.name}: it has no ${name}`);
        return wires;
      });
    return { needs: findWires(gadget.needs), gives: findWires(gadget.gives) };
  });
}
