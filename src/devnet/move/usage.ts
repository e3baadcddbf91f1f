/** Finds the inputs that a transaction's commands change. A node resolves all other inputs as read-only. */
import { normalizeSuiAddress } from '@mysten/sui/utils';
import type { Argument, Command } from '../commands.ts';
import type { Packages } from '../packages.ts';
import { ChainCode } from './code.ts';
import { frameworkPackage } from './framework.ts';
import { parseType, splitList } from './types.ts';
import { isContext } from './typing.ts';

/** Returns the inputs that a command takes in another way than by `&`. */
export function changedInputs(packages: Packages, commands: readonly Command[]): Set<number> {
  const code = new ChainCode(packages, frameworkPackage());
  const changed = commands.flatMap((command) => argumentsChangedBy(code, command));
  return new Set(changed.flatMap((argument) => ('input' in argument ? argument.input : [])));
}

function argumentsChangedBy(code: ChainCode, command: Command): readonly Argument[] {
  switch (command.kind) {
    case 'call': {
      const { package: id, module, function: name } = command.call;
      const called = code.module(normalizeSuiAddress(id), module)?.moduleInterface.declared.get(name);
      if (called === undefined) return command.args;
      const parameters = splitList(called.parameters).map(parseType);
      const taken = parameters.filter((type) => !isContext(type));
      return command.args.filter((_, index) => {
        const type = taken[index];
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
