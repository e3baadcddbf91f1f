/** Tests the meaning of a Move function's parameters, and the type that an enclave signs for the function. */
import { describe, expect, test } from 'vitest';
import { chooseObjects, createSignedType, readMoveCall } from '../../../../src/cli/sui/move_call.ts';
import { splitTypes, valueType } from '../../../../src/cli/sui/move_types.ts';
import type { ModuleInterface } from '../../../../src/devnet/bytecode/module_bytecode.ts';

const toAddress = (digit: string) => `0x${digit.padStart(64, '0')}`;
const APP = toAddress('a');
const ENCLAVE = `${toAddress('e')}::enclave`;
const STRING = `${toAddress('1')}::string::String`;
const OBJECTS = [
  `&${ENCLAVE}::Enclave<${APP}::rewards::REWARDS>`,
  `&${ENCLAVE}::EnclaveConfig<${APP}::rewards::REWARDS>`,
  `&${toAddress('2')}::clock::Clock`,
  `&mut ${toAddress('2')}::tx_context::TxContext`,
];

/**
 * Creates a module with one function and these structs.
 *
 * @param structs fields of each struct by its name, and its abilities unless they are copy and drop
 */
function createModule(
  parameters: readonly string[],
  structs: Record<string, readonly [fields: string, abilities?: number]> = {},
  returns = '',
): ModuleInterface {
  const call = { constraints: [], parameters: parameters.join(), returns };
  const datatypes = Object.entries(structs).map(([name, [fields, abilities = 3]]) => {
    return [name, { abilities, typeParameters: '', layout: `struct {${fields}}` }] as const;
  });
  return {
    address: APP,
    name: 'rewards',
    datatypes: new Map(datatypes),
    functions: new Map(),
    callable: new Map([['award', call]]),
    packed: new Map(),
    init: undefined,
    declared: new Map(),
    dependencies: [],
  };
}

/** `award` of the README: its nonce is an order, and its struct has a recipient and points. */
const award = createModule(
  [`&mut ${APP}::rewards::Rewards`, 'vector<u8>', 'address', 'u64', 'u64', '&vector<u8>', ...OBJECTS],
  {
    Award: ['recipient: address,points: u64'],
    Rewards: [`id: ${toAddress('2')}::object::UID`, 8],
    Points: ['recipient: address,points: u64', 12],
  },
);

describe('the parameters of a function', () => {
  test('are recognised by their types: signed values, time, signature, and objects anywhere', () => {
    const { roles, values, application } = readMoveCall(award, 'award');
    expect(roles).toEqual([
      { kind: 'object', type: `${APP}::rewards::Rewards`, isMutable: true },
      { kind: 'value', index: 0 },
      { kind: 'value', index: 1 },
      { kind: 'value', index: 2 },
      { kind: 'timestamp' },
      { kind: 'signature' },
      { kind: 'enclave' },
      { kind: 'config' },
      { kind: 'clock' },
    ]);
    expect(values).toEqual(['vector<u8>', 'address', 'u64']);
    expect(application).toBe(`${APP}::rewards::REWARDS`);
  });

  test.each<[string, string[], string]>([
    ['without a signature', ['u64', ...OBJECTS], 'its last two values'],
    ['with the time elsewhere', ['u64', 'address', '&vector<u8>', ...OBJECTS], 'its last two values'],
    ['without an enclave', ['u64', 'vector<u8>', ...OBJECTS.slice(1)], 'must take one Enclave<T>'],
    ['of two enclaves', ['u64', 'vector<u8>', OBJECTS[0] ?? '', ...OBJECTS], 'must take one Enclave<T>'],
  ])('%s are refused', (_, parameters, message) => {
    expect(() => readMoveCall(createModule(parameters), 'award')).toThrow(message);
  });

  test('do not matter for returned values: objects go to the sender, and values that can be dropped do not', () => {
    const structs = { Points: ['points: u64', 12], Note: ['text: u64', 2] } as const;
    const returns = [
      `${APP}::rewards::Points`,
      'u64',
      `${APP}::rewards::Note`,
      `${toAddress('2')}::coin::Coin<u8>`,
    ];
    const module = createModule(['u64', 'vector<u8>', ...OBJECTS], structs, returns.join());
    expect(readMoveCall(module, 'award').returns).toEqual([true, false, false, true]);
  });
});

describe('the signed type', () => {
  const createType = (module: ModuleInterface, naming: { struct?: string; fields?: string[] } = {}) =>
    createSignedType(module, readMoveCall(module, 'award'), { intent: 3, ...naming });

  test('has the field names of the struct with the same types, after the nonce of enclave::once', () => {
    const { names, schema } = createType(award);
    expect(names).toEqual(['nonce', 'recipient', 'points']);
    const payload = { nonce: 'order-0000000017', recipient: APP, points: '5' };
    const signed = schema.message.serialize({ intent: 3, timestamp_ms: 1n, payload }).toHex();
    const order = Buffer.from('order-0000000017').toString('hex');
    expect(signed).toBe(`030100000000000000${'10'}${order}${APP.slice(2)}0500000000000000`);
    // A nonce in bytes has the same encoding as a nonce in text.
    const nonce = [...Buffer.from('order-0000000017')];
    expect(schema.payload.serialize({ ...payload, nonce }).toHex()).toBe(signed.slice(18));
  });

  test('needs --struct if several structs fit, and --fields if none fits', () => {
    const ambiguousModule = createModule(['u8', 'u64', 'vector<u8>', ...OBJECTS], {
      One: ['a: u8'],
      Two: ['b: u8'],
    });
    expect(() => createType(ambiguousModule)).toThrow('name one of them by --struct: One, Two');
    expect(createType(ambiguousModule, { struct: 'Two' }).names).toEqual(['b']);
    const createTypeWith = (...packed: string[]) =>
      createType({ ...ambiguousModule, packed: new Map([['award', packed]]) });
    expect(createTypeWith('Two').names).toEqual(['b']);
    expect(createTypeWith('Another', 'One').names).toEqual(['a']);
    expect(() => createTypeWith('One', 'Two')).toThrow('name one of them by --struct: One, Two');
    const moduleWithoutMatch = createModule(['u8', 'u64', 'vector<u8>', ...OBJECTS], { Other: ['a: u16'] });
    expect(() => createType(moduleWithoutMatch)).toThrow('name the fields of the answer by --fields');
    expect(createType(moduleWithoutMatch, { fields: ['c'] }).names).toEqual(['c']);
    expect(() => createType(moduleWithoutMatch, { fields: ['c', 'd'] })).toThrow('signs 1 field (');
  });
});

describe('a struct of another module of the package', () => {
  /** The module that `sui-enclave gen` writes. */
  const signed = { ...createModule([], { Quote: ['pair: u8'] }), name: 'signed' };
  const quote = `${APP}::signed::Quote`;

  test('names the signed fields, unless the module itself has a struct with them', () => {
    const namesFor = (module: ModuleInterface) =>
      createSignedType(module, readMoveCall(module, 'award', [signed]), { intent: 0 }, [signed]).names;
    const parameters = ['u8', 'u64', 'vector<u8>', ...OBJECTS];
    expect(namesFor(createModule(parameters))).toEqual(['pair']);
    expect(namesFor(createModule(parameters, { Own: ['a: u8'] }))).toEqual(['a']);
    expect(namesFor(createModule(parameters, { Other: ['a: u16'] }))).toEqual(['pair']);
  });

  test('is not ambiguous with a struct that has the same field names in the same order', () => {
    const caller = createModule(['u8', 'u8', 'u64', 'vector<u8>', ...OBJECTS]);
    const namesFor = (...layouts: string[]) => {
      const structs = layouts.map((fields, index) => [`Quote${index}`, [fields]] as const);
      const otherModules = structs.map(([name, layout]) => createModule([], { [name]: layout }));
      return createSignedType(caller, readMoveCall(caller, 'award'), { intent: 0 }, otherModules).names;
    };
    expect(namesFor('pair: u8,price: u8', 'pair: u8,price: u8')).toEqual(['pair', 'price']);
    const ambiguous = 'name one of them by --struct: Quote0, Quote1';
    expect(() => namesFor('pair: u8,price: u8', 'pair: u8,cost: u8')).toThrow(ambiguous);
    expect(() => namesFor('pair: u8,price: u8', 'price: u8,pair: u8')).toThrow(ambiguous);
    const inOneModule = createModule(['u8', 'u64', 'vector<u8>', ...OBJECTS], {
      Quote: ['pair: u8'],
      Line: ['pair: u8'],
    });
    const call = { ...readMoveCall(inOneModule, 'award'), packed: ['Quote', 'Line'] };
    expect(createSignedType(inOneModule, call, { intent: 0 }).names).toEqual(['pair']);
  });

  test('can be dropped if it is returned, unlike a struct of the same name in another package', () => {
    const returns = `${quote},${toAddress('b')}::signed::Quote`;
    const module = createModule(
      ['u8', 'u64', 'vector<u8>', ...OBJECTS],
      { Quote: ['pair: u8', 12] },
      returns,
    );
    expect(readMoveCall(module, 'award', [signed]).returns).toEqual([false, true]);
    expect(readMoveCall(module, 'award').returns).toEqual([true, true]);
  });
});

describe('a value in BCS', () => {
  test.each<[string, unknown, string]>([
    ['u8', 255, 'ff'],
    ['u16', 258, '0201'],
    ['u32', '1', '01000000'],
    ['u64', '18446744073709551615', 'ffffffffffffffff'],
    ['u128', 1, `01${'00'.repeat(15)}`],
    ['u256', (2n ** 256n - 1n).toString(), 'ff'.repeat(32)],
    ['bool', true, '01'],
    ['address', APP, APP.slice(2)],
    [STRING, 'é', '02c3a9'],
    ['vector<u16>', [1, 2], '0201000200'],
    [`vector<${STRING}>`, ['a', 'b'], '0201610162'],
    [`${toAddress('1')}::option::Option<u8>`, 7, '0107'],
    [`${toAddress('1')}::option::Option<u8>`, null, '00'],
    ['vector<vector<u8>>', [[1], 'a'], '0201010161'],
  ])('of the type %s can be %j', (type, value, hex) => {
    expect(
      valueType(type)
        ?.serialize(value as never)
        .toHex(),
    ).toBe(hex);
  });

  test.each<[string, unknown]>([
    ['u8', 256],
    ['u8', '1'],
    ['u16', 65_536],
    ['u32', 1.5],
    ['u64', -1],
    ['u128', (2n ** 128n).toString()],
    ['u256', 2 ** 60],
    ['u256', '01'],
    ['bool', 1],
    ['bool', 'true'],
    ['address', '0xzz'],
    [STRING, '\ud800'],
    ['vector<u8>', [256]],
    ['vector<u8>', '\ud800'],
    ['vector<u8>', null],
  ])('of the type %s can not be %j', (type, value) => {
    expect(() => valueType(type)?.serialize(value as never)).toThrow();
  });

  test('can not be an object or a struct', () => {
    for (const type of [
      `${toAddress('2')}::coin::Coin<u8>`,
      `vector<${APP}::a::B>`,
      'T0',
      'signer',
      'toString',
    ]) {
      expect(valueType(type)).toBeUndefined();
    }
  });

  test('types are split only at the commas between them', () => {
    expect(splitTypes('')).toEqual([]);
    expect(splitTypes('u8,0x2::t::T<u8,vector<u8>>,u64')).toEqual(['u8', '0x2::t::T<u8,vector<u8>>', 'u64']);
  });
});

describe('the objects that a function takes', () => {
  const [pool, vault, otherVault] = ['0x1', '0x2', '0x3'];
  const recordedObjects = [
    { id: pool, type: 'A' },
    { id: vault, type: 'B' },
    { id: otherVault, type: 'B' },
  ] as { id: string; type: string }[];
  const roles = (...types: string[]) => ({
    roles: types.map((type) => ({ kind: 'object', type, isMutable: true }) as const),
  });

  test('come from the deployment file, if it has each type once', () => {
    expect(chooseObjects(roles('A', 'A'), [], recordedObjects)).toEqual([pool, pool]);
    expect(chooseObjects(roles('A', 'B'), [], recordedObjects)).toEqual([pool]);
    expect(chooseObjects({ roles: [{ kind: 'clock' }] }, [], recordedObjects)).toEqual([]);
  });

  test('come from the command line, if it names any', () => {
    expect(chooseObjects(roles('A', 'B'), ['0x9'], recordedObjects)).toEqual(['0x9']);
  });
});
