/**
 * A model of the functions of `move/enclave` and `move/weather`, as their callers see them, for the loopback node of most
 * tests: the Move VM takes half a second for each transaction. `test/e2e/move_vm.test.ts` holds it against the VM.
 */
import { bcs } from '@mysten/sui/bcs';
import { type Call, type ExecutionContext, Frame } from './call.ts';
import { ENCLAVE } from './enclave.ts';
import { Refusal } from './failures.ts';
import { FRAMEWORK } from './framework.ts';
import type { LedgerObject } from './ledger.ts';
import { UpgradeCap } from './structs.ts';
import { WEATHER } from './weather.ts';

const FUNCTIONS = { ...FRAMEWORK, ...ENCLAVE, ...WEATHER };

/** Runs one call and returns its results. @throws MoveAbort */
export async function runCall(context: ExecutionContext, call: Call): Promise<readonly unknown[]> {
  const { package: id, module, function: name } = call;
  const body = FUNCTIONS[`${module}::${name}`];
  if (body === undefined)
    throw new Refusal('UNIMPLEMENTED', `no model of ${id}::${module}::${name} on loopback`);
  return await body(new Frame(context, call));
}

/** Creates what publishing the two packages as one creates: the upgrade capability and the enclave capability. */
export function publish(context: ExecutionContext): { packageId: string; upgradeCap: LedgerObject } {
  const { changes, sender } = context;
  const owner = { kind: 'address', address: sender } as const;
  const packageId = changes.freshId();
  // `init` runs before the package gets its capability.
  const type = `${packageId}::enclave::EnclaveCap<${packageId}::weather::WEATHER>`;
  changes.create(type, owner, (id) => bcs.Address.serialize(id).toBytes());
  const upgradeCap = changes.create('0x2::package::UpgradeCap', owner, (id) =>
    UpgradeCap.serialize({ id, package: packageId, version: 1, policy: 0 }).toBytes(),
  );
  return { packageId, upgradeCap: changes.get(upgradeCap) as LedgerObject };
}
