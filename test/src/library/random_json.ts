/** Random values that JSON can carry. */
import fc from 'fast-check';

/** Names that need no escape: others are refused, since V8 may misread them. */
const names = fc.string({ unit: 'binary' }).filter((name) => JSON.stringify(name) === `"${name}"`);

export const { randomJson } = fc.letrec((tie) => ({
  randomJson: fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((number) => !Object.is(number, -0)),
    fc.constantFrom(true, false, null),
    fc.array(tie('randomJson'), { maxLength: 3 }),
    fc.dictionary(names, tie('randomJson'), { maxKeys: 3 }),
  ),
}));
