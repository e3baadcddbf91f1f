import { expect, test } from 'vitest';
import { OPCODE } from '../../../../src/devnet/bytecode/opcodes.ts';
import { INSTRUCTIONS } from '../../../../src/devnet/move/instructions.ts';

test('the machine executes every instruction except those of global storage, which Sui does not have', () => {
  const missing = Object.entries(OPCODE).filter(([, code]) => INSTRUCTIONS[code] === undefined);
  expect(missing.map(([name]) => name)).toEqual([
    // These instructions leave the function, so the machine itself executes them.
    'ret',
    'call',
    'existsDeprecated',
    'mutBorrowGlobalDeprecated',
    'immBorrowGlobalDeprecated',
    'moveFromDeprecated',
    'moveToDeprecated',
    'callGeneric',
    'existsGenericDeprecated',
    'mutBorrowGlobalGenericDeprecated',
    'immBorrowGlobalGenericDeprecated',
    'moveFromGenericDeprecated',
    'moveToGenericDeprecated',
  ]);
});
