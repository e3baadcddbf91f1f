/** Location of the program: in a clone of this repository, or in the installed package. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder above `src`, if this is a clone. */
export const CLONE = fileURLToPath(new URL('../..', import.meta.url));

/** Whether the program runs in a clone; otherwise it is installed. */
export const IS_CLONE = existsSync(join(CLONE, 'src/cli/main.ts'));

/** The CloudFormation template of hosts for enclaves. */
export const STACK_TEMPLATE = IS_CLONE
  ? join(CLONE, 'deploy/aws/stack.yaml')
  : fileURLToPath(new URL('../deploy/aws/stack.yaml', import.meta.url));

/** The file of the program, for Node. */
export const PROGRAM_FILE = fileURLToPath(new URL('bin.cjs', import.meta.url));

/**
 * The program as users type it, in a clone or in a repository that has it installed. If it is not installed,
 * npx without --offline would fetch a package of that name from the registry.
 */
export const PROGRAM = 'npx --offline sui-enclave';

export const DEV_EMULATED = `ATTEST=emulated ${PROGRAM} dev`;

/** Hint for users who don't have registers yet: the commands that write them. */
export const PCRS_HINT = `\`${PROGRAM} build\` writes out/nitro.pcrs with the image, and \`${DEV_EMULATED}\` writes out/dev.pcrs, or out/dev-<name>.pcrs for an application other than weather`;

/** Returns the folder of the deployment files, relative to the folder in which the command runs. */
export function deploymentsFolder({
  DEPLOYMENTS: folder,
}: Readonly<Record<string, string | undefined>>): string {
  return folder || 'deployments';
}

/** End of the name of the file in which a rollout keeps its steps, in the same folder. */
export const ROLLOUT_MEMORY = '.rollout.json';
