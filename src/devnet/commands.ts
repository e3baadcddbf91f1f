/** Reads the commands of a programmable transaction from gRPC and from BCS. */
import type { bcs } from '@mysten/sui/bcs';
import { GrpcTypes } from '@mysten/sui/grpc';
import { toBase64 } from '@mysten/sui/utils';
import { Refusal } from './failures.ts';

const { Argument_ArgumentKind: ArgumentKind } = GrpcTypes;

export type TransactionData = NonNullable<typeof bcs.TransactionData.$inferType.V1>;

/**
 * An argument, in a form that both encodings of a transaction share. Without `nested`, `result` is the only
 * result of a command.
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

/** Function of a call, with its arguments. */
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

function grpcArgument({ kind, input = 0, result = 0, subresult }: GrpcTypes.Argument): Argument {
  if (kind === ArgumentKind.GAS) return { gas: true };
  return kind === ArgumentKind.INPUT ? { input } : { result, nested: subresult };
}

export function grpcCommand({ command }: GrpcTypes.Command): Command {
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
      args: args.map(grpcArgument),
    };
  }
  if (command.oneofKind === 'transferObjects') {
    const { objects, address } = command.transferObjects;
    return { kind: 'transfer', objects: objects.map(grpcArgument), to: grpcArgument(address ?? {}) };
  }
  if (command.oneofKind === 'splitCoins') {
    const { coin, amounts } = command.splitCoins;
    return { kind: 'split', coin: grpcArgument(coin ?? {}), amounts: amounts.map(grpcArgument) };
  }
  if (command.oneofKind === 'mergeCoins') {
    const { coin, coinsToMerge } = command.mergeCoins;
    return { kind: 'merge', coin: grpcArgument(coin ?? {}), coins: coinsToMerge.map(grpcArgument) };
  }
  if (command.oneofKind === 'makeMoveVector') {
    const { elementType: type, elements } = command.makeMoveVector;
    return { kind: 'vector', type, items: elements.map(grpcArgument) };
  }
  if (command.oneofKind === 'publish') {
    const { modules, dependencies } = command.publish;
    return { kind: 'publish', modules, dependencies };
  }
  if (command.oneofKind === 'upgrade') {
    const { modules, dependencies, package: packageId = '', ticket } = command.upgrade;
    return { kind: 'upgrade', modules, dependencies, packageId, ticket: grpcArgument(ticket ?? {}) };
  }
  throw new Refusal('UNIMPLEMENTED', `no command ${command.oneofKind} on loopback`);
}

type BcsCommand = NonNullable<TransactionData['kind']['ProgrammableTransaction']>['commands'][number];
type BcsArgument = NonNullable<BcsCommand['MoveCall']>['arguments'][number];

function bcsArgument(argument: BcsArgument): Argument {
  if (argument.GasCoin !== undefined) return { gas: true };
  if (argument.Input !== undefined) return { input: argument.Input };
  const [result, nested] = argument.NestedResult ?? [argument.Result ?? 0, undefined];
  return { result, nested };
}

export function bcsCommand({
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
      args: args.map(bcsArgument),
    };
  }
  if (transfer) {
    return {
      kind: 'transfer',
      objects: transfer.objects.map(bcsArgument),
      to: bcsArgument(transfer.address),
    };
  }
  if (split) return { kind: 'split', coin: bcsArgument(split.coin), amounts: split.amounts.map(bcsArgument) };
  if (merge) {
    return { kind: 'merge', coin: bcsArgument(merge.destination), coins: merge.sources.map(bcsArgument) };
  }
  if (vector) {
    const { type, elements } = vector;
    return { kind: 'vector', type: type ?? undefined, items: elements.map(bcsArgument) };
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
      ticket: bcsArgument(ticket),
    };
  }
  throw new Refusal('UNIMPLEMENTED', 'no such command on loopback');
}

function decodeModule(module: string | Iterable<number>): Uint8Array {
  return Buffer.from(toBase64Text(module), 'base64');
}

function toBase64Text(module: string | Iterable<number>): string {
  return typeof module === 'string' ? module : toBase64(Uint8Array.from(module));
}
