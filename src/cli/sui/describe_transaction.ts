/** Describes the commands of a transaction for people, one line for each. */
import type { Transaction } from '@mysten/sui/transactions';
import { fromBase64, toHex } from '@mysten/sui/utils';
import { quantity } from 'sui-enclave/wording';

type Data = ReturnType<Transaction['getData']>;
type Command = Data['commands'][number];
type Input = Data['inputs'][number];
type Argument = NonNullable<Command['MoveCall']>['arguments'][number];

/** Describes each command in one line. A command's result has the command's index, from 0. */
export function describeTransaction(tx: Transaction): string[] {
  const { commands, inputs } = tx.getData();
  const describeArgument = (value: Argument): string => {
    if (value.$kind === 'Input') return describeInput(inputs[value.Input]);
    if (value.$kind === 'Result') return `result ${value.Result}`;
    if (value.$kind === 'NestedResult') return `result ${value.NestedResult.join('.')}`;
    return 'gas coin';
  };
  const listArguments = (values: readonly Argument[]) => values.map(describeArgument).join(', ');
  return commands.map((command) => describeCommand(command, describeArgument, listArguments));
}

function describeCommand(
  command: Command,
  describeArgument: (value: Argument) => string,
  listArguments: (values: readonly Argument[]) => string,
): string {
  switch (command.$kind) {
    case 'MoveCall': {
      const { package: id, module, function: name, typeArguments, arguments: values } = command.MoveCall;
      const types = typeArguments.length === 0 ? '' : `<${typeArguments.join(', ')}>`;
      return `MoveCall ${id}::${module}::${name}${types}(${listArguments(values)})`;
    }
    case 'TransferObjects': {
      const { objects, address } = command.TransferObjects;
      return `TransferObjects(${listArguments(objects)}) to ${describeArgument(address)}`;
    }
    case 'SplitCoins':
      return `SplitCoins(${describeArgument(command.SplitCoins.coin)}) into ${listArguments(command.SplitCoins.amounts)}`;
    case 'MergeCoins': {
      const { destination, sources } = command.MergeCoins;
      return `MergeCoins(${listArguments(sources)}) into ${describeArgument(destination)}`;
    }
    case 'MakeMoveVec':
      return `MakeMoveVec(${listArguments(command.MakeMoveVec.elements)})`;
    case 'Publish': {
      const { modules, dependencies } = command.Publish;
      return `Publish(${quantity(modules.length, 'module')}) with ${dependencies.join(', ')}`;
    }
    case 'Upgrade': {
      const { modules, dependencies, package: id, ticket } = command.Upgrade;
      const ticketText = describeArgument(ticket);
      return `Upgrade(${quantity(modules.length, 'module')}) of ${id} by ${ticketText}, with ${dependencies.join(', ')}`;
    }
    default:
      return command.$kind;
  }
}

function describeInput(input: Input | undefined): string {
  if (input?.Pure) return describeValue(fromBase64(input.Pure.bytes));
  const {
    ImmOrOwnedObject: ownedObject,
    SharedObject: sharedObject,
    Receiving: receivedObject,
  } = input?.Object ?? {};
  const object = ownedObject ?? sharedObject ?? receivedObject ?? input?.UnresolvedObject;
  return object?.objectId ?? 'a value';
}

/** Describes a value in BCS by its most likely type, since only the called function knows the type. */
function describeValue(bytes: Uint8Array): string {
  const content = bytes[0] === bytes.length - 1 ? bytes.subarray(1) : bytes;
  const text = content === bytes ? '' : Buffer.from(content).toString('latin1');
  if (/^[ -~]+$/.test(text)) return JSON.stringify(text);
  if ([1, 2, 4, 8].includes(bytes.length)) return `${BigInt(`0x${toHex(bytes.toReversed())}`)}`;
  if (content.length > 64) return quantity(content.length, 'byte');
  return `0x${toHex(bytes.length === 32 ? bytes : content)}`;
}
