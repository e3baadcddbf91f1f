/** Reads the blocks of commands in deploy/https/README.md, as a reader copies them. */
import { readFileSync } from 'node:fs';

const page = readFileSync(new URL('../deploy/https/README.md', import.meta.url), 'utf8');
const blocks = [...page.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);

/** Blocks of commands. The first block, which no test runs, installs packages. */
export const [, START = '', CERTIFICATE = '', SWITCH = ''] = blocks;
if (blocks.length !== 4) throw new Error(`deploy/https/README.md has ${blocks.length} blocks of commands`);
