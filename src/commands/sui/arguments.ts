/** Checks what a command line says by its form alone, before a file is read or anything is sent. */
import { baseUrl } from 'sui-enclave/client/http';
import { addressOf, identifierOf, invalidValue } from 'sui-enclave/sui/values';
import type { CommandLine } from './help.ts';

/** The arguments of a command line, with the ids that the deployment file added. */
export interface Given {
  /** The positional arguments, by name; an optional one may be missing. */
  readonly args: Readonly<Record<string, string>>;
  /** The command's own options; one that was not given is missing. */
  readonly options: Readonly<Record<string, string>>;
  /** The values of options that may be repeated. */
  readonly lists: Readonly<Record<string, readonly string[]>>;
}

/** @throws SuiError: SUI_VALUE; ClientError: CLIENT_OPTION */
export function checkArguments(spec: CommandLine, { args, options, lists }: Given): void {
  for (const [name, value] of Object.entries(args)) checkPositional(name, value, args);
  for (const [name, [kind]] of Object.entries({ ...spec.options, ...spec.lists })) {
    const given = [options[name] ?? [], lists[name] ?? []].flat();
    for (const value of given) {
      if (kind === '<id>') addressOf(`--${name}`, value);
      if (kind.endsWith('url>')) baseUrl(value);
    }
  }
}

function checkPositional(name: string, value: string, args: Given['args']): void {
  if (name.endsWith('_id') || name === 'holder') addressOf(`<${name}>`, value);
  else if (name.endsWith('_url')) baseUrl(value);
  else if (name === 'module_name') identifierOf('<module_name>', value);
  else if (name === 'otw_name') checkStructName(value, args['module_name'] ?? '');
}

/** Structs begin with an upper-case letter, and a one-time witness is named as its module, in upper case. */
function checkStructName(name: string, module: string): void {
  identifierOf('<otw_name>', name);
  if (/^[A-Z]/.test(name)) return;
  const swapped = name.toUpperCase() === module.toUpperCase() && /^[A-Z]/.test(module);
  throw invalidValue(
    swapped
      ? `<otw_name> is ${name} and <module_name> is ${module}: swap them, as structs begin with an upper-case letter`
      : `<otw_name> is ${name}, but structs begin with an upper-case letter: the one-time witness of ${module} is ${module.toUpperCase()}`,
  );
}
