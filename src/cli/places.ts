/** Where the program is: in a clone of this repository, or in the installed package. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder above `src`, if this is a clone. */
export const CLONE = fileURLToPath(new URL('../..', import.meta.url));

/** Whether the program is that of a clone: else it is installed. */
export const IS_CLONE = existsSync(join(CLONE, 'src/cli/main.ts'));

/** The file of the program, for Node. */
export const PROGRAM = fileURLToPath(new URL('bin.cjs', import.meta.url));

/**
 * A command as its reader types it here: `make dev ATTEST=emulated` in a clone, `ATTEST=emulated npx --offline sui-enclave dev` with the
 * installed program. Without --offline, a folder where it is not installed would get a package of that name from the registry.
 */
export function typed(
  name: string,
  environment: Readonly<Record<string, string>> = {},
  isClone = IS_CLONE,
): string {
  const assignments = Object.entries(environment).map(([variable, value]) => `${variable}=${value}`);
  const words = isClone
    ? [`make ${name}`, ...assignments]
    : [...assignments, `npx --offline sui-enclave ${name}`];
  return words.join(' ');
}

export const EMULATED = { ATTEST: 'emulated' };

/** Says where registers come from, to users who don't have any yet. */
export const PCRS_HINT = IS_CLONE
  ? '`make` writes out/nitro.pcrs when it builds the image, and `make dev ATTEST=emulated` writes out/dev.pcrs, or out/dev-<name>.pcrs for another application than weather'
  : '`ATTEST=emulated npx --offline sui-enclave dev` writes out/dev-<name>.pcrs';
