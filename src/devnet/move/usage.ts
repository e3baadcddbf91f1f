/** Finds the inputs that a transaction's commands change. A node resolves all other inputs as read-only. */
import { normalizeSuiAddress } from '@mysten/sui/utils';
import type { Argument, Command } from '../commands.ts';
import type { Packages } from '../packages.ts';
import { ChainCode } from './code.ts';
import { frameworkPackage } from './framework.ts';
import { parseType, splitList } from './types.ts';
import { isContext } from './typing.ts';

/** Returns the indices of the inputs that a command takes by value or as `&mut`. */
export function findChangedInputs(packages: Packages, commands: readonly Command[]): Set<number> {
  const code = new ChainCode(packages, frameworkPackage());
  const changedArguments = commands.flatMap((command) => argumentsChangedBy(code, command));
  return new Set(changedArguments.flatMap((argument) => ('input' in argument ? argument.input : [])));
}

function argumentsChangedBy(code: ChainCode, command: Command): readonly Argument[] {
  switch (command.kind) {
    case 'call': {
      const { package: id, module, function: name } = command.call;
      const declaration = code.module(normalizeSuiAddress(id), module)?.moduleInterface.declared.get(name);
      if (declaration === undefined) return command.args;
      const parameters = splitList(declaration.parameters).map(parseType);
      const argumentTypes = parameters.filter((type) => !isContext(type));
      return command.args.filter((_, index) => {
        const type = argumentTypes[index];
        return type?.kind !== 'reference' || type.isMutable;
      });
    }
    case 'transfer':
      return command.objects;
    case 'split':
      return [command.coin];
    case 'merge':
      return [command.coin, ...command.coins];
    case 'vector':
      return command.items;
    case 'publish':
      return [];
    case 'upgrade':
      return [command.ticket];
  }
}
