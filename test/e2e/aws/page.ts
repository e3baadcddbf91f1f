/** Reads the blocks of commands in deploy/aws/README.md, as a reader copies them. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from './setup.ts';

export const PAGE = readFileSync(join(ROOT, 'deploy/aws/README.md'), 'utf8');
const blocks = [...PAGE.matchAll(/^ *```sh\n(.*?)^ *```$/gms)]
  .map(([, block = '']) => block)
  .filter((block) => !block.trimStart().startsWith('# not run\n'));
const isForBalancer = (block: string) => /sui-enclave-alb|CERTIFICATE=/.test(block);

/** Blocks in their order, except for those that no test runs and those of the load balancer. */
export const BLOCKS = blocks.filter((block) => !isForBalancer(block));
const balancerBlocks = blocks.filter(isForBalancer);
/**
 * Blocks of the load balancer, in their order: the certificate, the stack, a rollout in two blocks, the end.
 */
export const [
  CERTIFICATE = '',
  BALANCER = '',
  ADMIT_SECOND_STACK = '',
  DETACH_FIRST_STACK = '',
  BALANCER_END = '',
] = balancerBlocks;
if (balancerBlocks.length !== 5) throw new Error(`the page has ${balancerBlocks.length} blocks for an ALB`);
/** Shell function of the page, which lists a stack's resources. */
export const FIND_RESOURCES = /^find_resources\(\) \{.*?^\}$/ms.exec(PAGE)?.[0] ?? '';
