/** The EnclaveCaps that the sender of a command owns, as the node lists them. */
import { setTimeout as sleep } from 'node:timers/promises';
import { normalizeSuiAddress } from '@mysten/sui/utils';
import { SuiError } from 'sui-enclave/sui/errors';
import { listCapabilities } from 'sui-enclave/sui/objects';
import { readTypeOrigin } from 'sui-enclave/sui/packages';
import { type Chain, type Executed, fromNode } from './chain.ts';
import { SuiCommandError } from './errors.ts';

/**
 * Time limit in milliseconds within which a node that shows a transaction must list its objects, and interval
 * of the reads.
 */
const LISTING_MS = 5000;
const ASK_MS = 100;

/** Returns the EnclaveCaps that a transaction created. */
export function capabilitiesIn(created: Executed['created']): Executed['created'] {
  return created.filter(({ type }) => type.includes('::enclave::EnclaveCap<'));
}

/**
 * Returns the only capability for the application that the sender owns.
 *
 * @throws SuiCommandError: CAPABILITY; SuiError
 */
export async function findCapability(
  chain: Chain,
  enclavePackage: string,
  application: string,
): Promise<string> {
  const origin = await readTypeOrigin(chain.client, enclavePackage, 'enclave::EnclaveCap');
  const sender = chain.sender();
  const owned = await listCapabilities(chain.client, sender, { enclavePackage: origin, application });
  const [capability, ...moreCapabilities] = owned;
  if (capability !== undefined && moreCapabilities.length === 0) return capability;
  throw new SuiCommandError(
    'CAPABILITY',
    capability === undefined
      ? `${sender} owns no capability for ${application}: publishing gave it to the publisher`
      : `${sender} owns several capabilities for ${application}: pass one of them by --cap: ${owned.join(', ')}`,
  );
}

/**
 * Waits until the node lists the capabilities that the sender's transaction created, since the next command
 * may look for them: listings of owned objects show a transaction later than other reads do. Never fails,
 * since the transaction is done already.
 */
export async function awaitListing(chain: Chain, created: Executed['created']): Promise<void> {
  const owner = chain.sender();
  const deadline = performance.now() + LISTING_MS;
  for (const { id, type } of capabilitiesIn(created)) {
    while (!(await isListed(chain, owner, id, type))) {
      if (performance.now() >= deadline) {
        chain.notes.push(
          `The node does not list the capability ${id} yet: pass it to create_config by --cap.`,
        );
        return;
      }
      await sleep(ASK_MS);
    }
  }
}

async function isListed(chain: Chain, owner: string, id: string, type: string): Promise<boolean> {
  try {
    const { objects } = await fromNode(chain.client.core.listOwnedObjects({ owner, type }));
    return objects.some(({ objectId }) => normalizeSuiAddress(objectId) === id);
  } catch (error) {
    if (!(error instanceof SuiError)) throw error;
    return false;
  }
}
