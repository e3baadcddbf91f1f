/** Reads the commands of a programmable transaction from gRPC and from BCS. */
import type { bcs } from '@mysten/sui/bcs';
import { GrpcTypes } from '@mysten/sui/grpc';
import { toBase64 } from '@mysten/sui/utils';
import { Refusal } from './failures.ts';

const { Argument_ArgumentKind: ArgumentKind } = GrpcTypes;

export type TransactionData = NonNullable<typeof bcs.TransactionData.$inferType.V1>;

/**
 * An argument, in a form that both encodings of a transaction share. `result` is the index of a command, and
 * `nested` the index of one of its results. Without `nested`, the command must have only one result.
 */
export type Argument = { input: number } | { result: number; nested?: number | undefined } | { gas: true };

export type Command =
  | { kind: 'call'; call: Call; args: Argument[] }
  | { kind: 'transfer'; objects: Argument[]; to: Argument }
  | { kind: 'split'; coin: Argument; amounts: Argument[] }
  | { kind: 'merge'; coin: Argument; coins: Argument[] }
  | { kind: 'vector'; type: string | undefined; items: Argument[] }
  | { kind: 'publish'; modules: readonly Uint8Array[]; dependencies: readonly string[] }
  | Upgrade;

/** Function of a call, with its type arguments. */
export interface Call {
  readonly package: string;
  readonly module: string;
  readonly function: string;
  readonly typeArguments: readonly string[];
}

export interface Upgrade {
  kind: 'upgrade';
  modules: readonly Uint8Array[];
  dependencies: readonly string[];
  packageId: string;
  ticket: Argument;
}

function readGrpcArgument({
  kind,
  input = 0,
  result: commandIndex = 0,
  subresult,
}: GrpcTypes.Argument): Argument {
  if (kind === ArgumentKind.GAS) return { gas: true };
  return kind === ArgumentKind.INPUT ? { input } : { result: commandIndex, nested: subresult };
}

export function readGrpcCommand({ command }: GrpcTypes.Command): Command {
  if (command.oneofKind === 'moveCall') {
    const {
      package: id = '',
      module = '',
      function: name = '',
      typeArguments,
      arguments: args,
    } = command.moveCall;
    return {
      kind: 'call',
      call: { package: id, module, function: name, typeArguments },
      args: args.map(readGrpcArgument),
    };
  }
  if (command.oneofKind === 'transferObjects') {
    const { objects, address } = command.transferObjects;
    return { kind: 'transfer', objects: objects.map(readGrpcArgument), to: readGrpcArgument(address ?? {}) };
  }
  if (command.oneofKind === 'splitCoins') {
    const { coin, amounts } = command.splitCoins;
    return { kind: 'split', coin: readGrpcArgument(coin ?? {}), amounts: amounts.map(readGrpcArgument) };
  }
  if (command.oneofKind === 'mergeCoins') {
    const { coin, coinsToMerge } = command.mergeCoins;
    return { kind: 'merge', coin: readGrpcArgument(coin ?? {}), coins: coinsToMerge.map(readGrpcArgument) };
  }
  if (command.oneofKind === 'makeMoveVector') {
    const { elementType: type, elements } = command.makeMoveVector;
    return { kind: 'vector', type, items: elements.map(readGrpcArgument) };
  }
  if (command.oneofKind === 'publish') {
    const { modules, dependencies } = command.publish;
    return { kind: 'publish', modules, dependencies };
  }
  if (command.oneofKind === 'upgrade') {
    const { modules, dependencies, package: packageId = '', ticket } = command.upgrade;
    return { kind: 'upgrade', modules, dependencies, packageId, ticket: readGrpcArgument(ticket ?? {}) };
  }
  throw new Refusal('UNIMPLEMENTED', `the loopback node has no command ${command.oneofKind}`);
}

type BcsCommand = NonNullable<TransactionData['kind']['ProgrammableTransaction']>['commands'][number];
type BcsArgument = NonNullable<BcsCommand['MoveCall']>['arguments'][number];

function readBcsArgument(argument: BcsArgument): Argument {
  if (argument.GasCoin !== undefined) return { gas: true };
  if (argument.Input !== undefined) return { input: argument.Input };
  const [commandIndex, nested] = argument.NestedResult ?? [argument.Result ?? 0, undefined];
  return { result: commandIndex, nested };
}

export function readBcsCommand({
  MoveCall: call,
  TransferObjects: transfer,
  SplitCoins: split,
  MergeCoins: merge,
  MakeMoveVec: vector,
  Publish: publish,
  Upgrade: upgrade,
}: BcsCommand): Command {
  if (call) {
    const { package: id, module, function: name, typeArguments, arguments: args } = call;
    return {
      kind: 'call',
      call: { package: id, module, function: name, typeArguments },
      args: args.map(readBcsArgument),
    };
  }
  if (transfer) {
    return {
      kind: 'transfer',
      objects: transfer.objects.map(readBcsArgument),
      to: readBcsArgument(transfer.address),
    };
  }
  if (split)
    return { kind: 'split', coin: readBcsArgument(split.coin), amounts: split.amounts.map(readBcsArgument) };
  if (merge) {
    return {
      kind: 'merge',
      coin: readBcsArgument(merge.destination),
      coins: merge.sources.map(readBcsArgument),
    };
  }
  if (vector) {
    const { type, elements } = vector;
    return { kind: 'vector', type: type ?? undefined, items: elements.map(readBcsArgument) };
  }
  if (publish) {
    const { modules, dependencies } = publish;
    return { kind: 'publish', modules: modules.map(decodeModule), dependencies };
  }
  if (upgrade) {
    const { modules, dependencies, package: packageId, ticket } = upgrade;
    return {
      kind: 'upgrade',
      modules: modules.map(decodeModule),
      dependencies,
      packageId,
      ticket: readBcsArgument(ticket),
    };
  }
  throw new Refusal('UNIMPLEMENTED', 'the loopback node does not have this command');
}

function decodeModule(module: string | Iterable<number>): Uint8Array {
  return Buffer.from(toBase64Text(module), 'base64');
}

function toBase64Text(module: string | Iterable<number>): string {
  return typeof module === 'string' ? module : toBase64(Uint8Array.from(module));
}
