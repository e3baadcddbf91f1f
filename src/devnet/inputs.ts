/**
 * Reads the inputs of a transaction, and refuses those that Sui refuses before it executes anything
 * (`transaction.rs` of sui-types).
 */
import { GrpcTypes } from '@mysten/sui/grpc';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import type { Command, TransactionData } from './commands.ts';
import type { ObjectInput } from './engine.ts';
import { Refusal } from './failures.ts';
import { computeDigest, type LedgerObject } from './ledger.ts';

/** Size limit of a pure argument in bytes. An argument must be smaller. */
const MAX_PURE_BYTES = 16_384;
/** Limit of the number of commands. A transaction must have fewer. */
const MAX_COMMANDS = 1024;
/** Limit of the number of coins that pay for gas. A transaction must have fewer. */
const MAX_COINS = 256;
const CLOCK = normalizeSuiAddress('0x6');
const RANDOM = normalizeSuiAddress('0x8');

const { Input_InputKind: InputKind } = GrpcTypes;

const NO_RECEIVING =
  'this model of a Sui node does not support Receiving arguments: try such a transaction on a network';

type Inputs = readonly (Uint8Array | ObjectInput)[];
type Find = (id: string) => LedgerObject | undefined;
export type Reference = NonNullable<TransactionData['gasData']['payment']>[number];

/** Returns references to the owned objects of a transaction, including the coins that pay for it. */
export function ownedInputs({ kind, gasData }: TransactionData): Reference[] {
  const inputs = kind.ProgrammableTransaction?.inputs ?? [];
  const references = inputs.flatMap(({ Object: input }) => input?.ImmOrOwnedObject ?? []);
  return [...references, ...(gasData.payment ?? [])];
}

/** Reads the inputs of a transaction in BCS. @throws Refusal */
export function readBcsInputs({ kind, sender }: TransactionData, find: Find): Inputs {
  const inputs = kind.ProgrammableTransaction?.inputs ?? [];
  return inputs.map(({ Pure: pure, Object: input }) => {
    if (pure) return Buffer.from(pure.bytes, 'base64');
    if (input?.ImmOrOwnedObject) return ownedInput(find, input.ImmOrOwnedObject.objectId, sender);
    if (input?.SharedObject)
      return sharedInput(find, input.SharedObject.objectId, input.SharedObject.mutable);
    throw new Refusal('UNIMPLEMENTED', NO_RECEIVING);
  });
}

/** Reads the resolved inputs of a transaction in gRPC. @throws Refusal */
export function readGrpcInputs(inputs: readonly GrpcTypes.Input[], sender: string, find: Find): Inputs {
  return inputs.map(({ kind, pure = new Uint8Array(), objectId = '', mutable = false }) => {
    if (kind === InputKind.PURE) return pure;
    if (kind === InputKind.IMMUTABLE_OR_OWNED) return ownedInput(find, objectId, sender);
    if (kind === InputKind.SHARED) return sharedInput(find, objectId, mutable);
    throw new Refusal('UNIMPLEMENTED', NO_RECEIVING);
  });
}

/**
 * Completes an input that has only the id of an object, in the same way as a node.
 *
 * @param isMutable whether a command changes the object
 * @throws Refusal
 */
export function resolveInput(
  input: GrpcTypes.Input,
  sender: string,
  find: Find,
  isMutable: boolean,
): GrpcTypes.Input {
  const { objectId = '' } = input;
  const object = find(normalizeSuiAddress(objectId));
  if (!object) throw new Refusal('NOT_FOUND', `Object ${objectId} not found`);
  const { id, owner, version } = object;
  if (owner.kind === 'shared') {
    return GrpcTypes.Input.create({
      kind: InputKind.SHARED,
      objectId: id,
      version: owner.since,
      mutable: isMutable,
    });
  }
  checkOwner(object, sender);
  const digest = computeDigest(object);
  return GrpcTypes.Input.create({ kind: InputKind.IMMUTABLE_OR_OWNED, objectId: id, version, digest });
}

function ownedInput(find: Find, id: string, sender: string): ObjectInput {
  const object = findObject(find, id);
  if (object.owner.kind === 'shared')
    throw createRefusal(`The shared object ${id} is used as an owned object in the transaction`);
  checkOwner(object, sender);
  return { object, isMutable: object.owner.kind !== 'immutable' };
}

function sharedInput(find: Find, id: string, isMutable: boolean): ObjectInput {
  const object = findObject(find, id);
  if (object.owner.kind !== 'shared')
    throw createRefusal(`The object ${id} is used as a shared object, but is not shared`);
  if (isMutable && object.id === CLOCK) {
    throw createRefusal(`Mutable parameter provided, immutable parameter expected for ${id}`);
  }
  return { object, isMutable };
}

/** Returns an object that a transaction names. @throws Refusal if it does not exist */
export function findObject(find: Find, id: string): LedgerObject {
  const object = find(id);
  if (object === undefined) throw createRefusal(`Could not find the referenced object ${id}`);
  return object;
}

function createRefusal(message: string): Refusal {
  return new Refusal('INVALID_ARGUMENT', message);
}

/** Checks the limits and the rules of a transaction. @param payment coins that pay for gas @throws Refusal */
export function checkTransaction(
  inputs: Inputs,
  commands: readonly Command[],
  payment: readonly string[],
): void {
  if (payment.length >= MAX_COINS)
    throw createLimitRefusal('maximum number of gas payment objects', MAX_COINS);
  if (commands.length >= MAX_COMMANDS) {
    throw createLimitRefusal('maximum commands in a programmable transaction', MAX_COMMANDS);
  }
  const seen = new Set<string>(payment);
  for (const input of inputs) {
    if (input instanceof Uint8Array) {
      if (input.length < MAX_PURE_BYTES) continue;
      throw createLimitRefusal('maximum pure argument size', MAX_PURE_BYTES);
    }
    const { id } = input.object;
    if (seen.has(id))
      throw createRefusal(`Mutable object ${id} cannot appear more than one in one transaction`);
    seen.add(id);
  }
  if (commands.some(isEmpty)) {
    throw createRefusal(
      'TransferObjects, MergeCoin, and Publish cannot have empty arguments. If MakeMoveVec has empty arguments, it must have a type specified',
    );
  }
  checkRandom(inputs, commands);
}

/**
 * Checks the commands that follow a use of randomness, since some could let a transaction undo its random
 * choice.
 */
function checkRandom(inputs: Inputs, commands: readonly Command[]): void {
  const random = inputs.findIndex((input) => !(input instanceof Uint8Array) && input.object.id === RANDOM);
  const first = commands.findIndex((command) => listArguments(command).some(isInput(random)));
  if (first < 0) return;
  if (commands.slice(first + 1).every(({ kind }) => kind === 'transfer' || kind === 'merge')) return;
  throw createRefusal('Commands following a command with Random can only be TransferObjects or MergeCoins');
}

/** Lists all arguments of a command. */
export function listArguments(command: Command): unknown[] {
  return Object.values(command).flat();
}

function isInput(index: number): (part: unknown) => boolean {
  return (part) => typeof part === 'object' && part !== null && 'input' in part && part.input === index;
}

function createLimitRefusal(limit: string, value: number): Refusal {
  return createRefusal(`Size limit exceeded: ${limit} is ${value}`);
}

function isEmpty(command: Command): boolean {
  switch (command.kind) {
    case 'transfer':
      return command.objects.length === 0;
    case 'split':
      return command.amounts.length === 0;
    case 'merge':
      return command.coins.length === 0;
    case 'vector':
      return command.items.length === 0 && command.type === undefined;
    case 'publish':
    case 'upgrade':
      return command.modules.length === 0;
    case 'call':
      return false;
  }
}

export function formatReference({ objectId, version, digest }: Reference): string {
  return `(${objectId}, SequenceNumber(${version}), o#${digest})`;
}

/** Returns the refusal of validators for a transaction that conflicts with another. */
export function lockedRefusal(reference: Reference): Refusal {
  return createRefusal(
    `Transaction is rejected as invalid by more than 1/3 of validators by stake (non-retriable). Non-retriable errors: [Object ${formatReference(reference)} already locked by a different transaction: TransactionDigest(1) { k#1 } with 10000 stake].`,
  );
}

function checkOwner({ id, owner }: LedgerObject, sender: string): void {
  if (owner.kind === 'object') {
    throw createRefusal(
      `Object ${id} is owned by object ${owner.address}. Objects owned by other objects cannot be used as input arguments`,
    );
  }
  if (owner.kind !== 'address' || owner.address === sender) return;
  throw createRefusal(
    `Transaction was not signed by the correct sender: Object ${id} is owned by account address ${owner.address}, but given owner/signer address is ${sender}`,
  );
}
