/**
 * `sui-enclave call`: calls a function of the admin's own contract with the EnclaveCap of the application.
 */

import { Transaction } from '@mysten/sui/transactions';
import { normalizeStructTag } from '@mysten/sui/utils';
import { WrongObjectTypeError } from 'sui-enclave/sui/errors';
import { type EnclaveConfig, readConfig } from 'sui-enclave/sui/objects';
import { runAsProcess, UsageError } from '../command.ts';
import { objectId } from '../values.ts';
import {
  type AdminCall,
  type AdminRole,
  adminCall,
  fillApplication,
  findApplicationIn,
  listTypes,
} from './admin_call.ts';
import { findCapability } from './capabilities.ts';
import type { Chain, Created } from './chain.ts';
import { type Input, suiCommand } from './command.ts';
import type { Application } from './deployments.ts';
import { SuiCommandError } from './errors.ts';
import { chooseObjects } from './move_call.ts';
import {
  checkObjectCount,
  findEntry,
  functionName,
  parseFunctionName,
  readModules,
  resolveObjectTypes,
} from './move_function.ts';
import type { Outcome } from './outcome.ts';
import { CLOCK, RANDOM, referById, transferReturned } from './signed_call.ts';

const ARGUMENTS = { function: { schema: functionName } };

const OPTIONS = {
  cap: {
    value: '<id>',
    help: 'the EnclaveCap (default: the EnclaveCap in the deployment file, or else of --config, or the only one that the sender owns)',
    schema: objectId,
  },
  config: {
    value: '<id>',
    help: 'the config, if the function takes one (default: the config in the deployment file)',
    schema: objectId,
  },
  object: {
    value: '<id>',
    help: 'an object that the function takes; repeat the option for each further object, in order (default: the objects of the deployment file, by their types)',
    schema: objectId,
    repeated: true,
  },
  again: {
    help: 'call the function even if the deployment file has a shared object of a type that the call creates',
  },
} as const;

type CallInput = Pick<Input<typeof ARGUMENTS, typeof OPTIONS>, 'args' | 'options' | 'deployments'>;

/** The function to call, and the application's entry in the deployment file. */
interface Target {
  readonly packageId: string;
  readonly module: string;
  readonly name: string;
  readonly entry: readonly [name: string, application: Application] | undefined;
}

/** @throws UsageError; SuiCommandError: DEPLOYMENT */
function readTarget({ args, options, deployments }: CallInput): Target {
  const { packageId, module, name } = parseFunctionName(args.function);
  const isNamed = packageId !== undefined && options.cap !== undefined && deployments?.app === undefined;
  const entry = findEntry(deployments, packageId, module, isNamed);
  return { packageId: packageId ?? entry?.[1].package ?? '', module, name, entry };
}

async function readCall(chain: Chain, { packageId, module: moduleName, name }: Target): Promise<AdminCall> {
  const { packageVersion, module, otherModules } = await readModules(chain, packageId, moduleName);
  const call = adminCall(module, name, otherModules);
  return { ...call, roles: await resolveObjectTypes(chain, packageVersion, call.roles) };
}

/**
 * Reads the config, if the function takes one.
 *
 * @throws UsageError; WrongObjectTypeError if it is for another application; SuiError
 */
async function readConfigArgument(
  { options }: CallInput,
  chain: Chain,
  { roles }: AdminCall,
  { entry }: Target,
): Promise<EnclaveConfig | undefined> {
  const [declaredType] = listTypes(roles, 'config');
  if (declaredType === undefined) {
    if (options.config === undefined) return undefined;
    throw new UsageError('the function takes no EnclaveConfig: leave out --config');
  }
  const configId = options.config ?? entry?.[1].config?.id;
  if (configId === undefined) {
    throw new UsageError('give --config, or a --network whose deployment file has the config');
  }
  const config = await readConfig(chain.client, configId);
  const expectedType = declaredType.replace('<T0>', () => `<${config.application}>`);
  const type = `${config.enclavePackage}::enclave::EnclaveConfig<${config.application}>`;
  if (type !== expectedType) throw new WrongObjectTypeError(config.id, `a ${expectedType}`, `a ${type}`);
  if (config.isRetired) chain.notes.push(`WARNING: the config ${config.id} is permanently retired.`);
  return config;
}

/** The capability, and the application that it is for. */
interface Capability {
  readonly id: string;
  readonly application: string;
}

/** @throws UsageError; SuiCommandError: CAPABILITY; SuiError */
async function chooseCapability(
  { options }: CallInput,
  chain: Chain,
  { roles }: AdminCall,
  { entry }: Target,
  config: EnclaveConfig | undefined,
): Promise<Capability> {
  const [expectedType = ''] = listTypes(roles, 'capability');
  const expectedApplication = findApplicationIn(expectedType) ?? '';
  const isGeneric = expectedApplication === 'T0';
  const namedId = options.cap ?? entry?.[1].capability ?? config?.capabilityId;
  if (namedId === undefined && isGeneric) {
    throw new UsageError('give --cap: the function takes the EnclaveCap of any application');
  }
  const [enclavePackage = ''] = expectedType.split('::');
  const id = namedId ?? (await findCapability(chain, enclavePackage, expectedApplication));
  const { type } = await chain.object(id);
  const capabilityType = type.includes('::') ? normalizeStructTag(type) : type;
  const application = isGeneric ? (findApplicationIn(capabilityType) ?? '') : expectedApplication;
  const isExpected = capabilityType === expectedType.replace('<T0>', () => `<${application}>`);
  if (!isExpected) throw new WrongObjectTypeError(id, `a ${expectedType}`, `a ${type}`);
  return { id, application };
}

/** @throws SuiCommandError: CAPABILITY */
function checkBelongs(config: EnclaveConfig, capability: Capability): void {
  if (config.capabilityId === capability.id) return;
  throw new SuiCommandError(
    'CAPABILITY',
    `the config ${config.id} belongs to the capability ${config.capabilityId}, and not to ${capability.id}: name both by --cap and --config. Nothing was sent`,
  );
}

/** A call with all of its arguments. */
interface CompleteCall {
  readonly target: Target;
  readonly call: AdminCall;
  readonly capability: Capability;
  readonly config: EnclaveConfig | undefined;
  /** Ids of the other objects, in the order of the function. */
  readonly objects: readonly string[];
}

/** Adds the call to the transaction, and transfers the objects that it returns to the sender. */
function addCall(
  tx: Transaction,
  { target, call, capability, config, objects }: CompleteCall,
  sender: string,
): void {
  const remainingIds = [...objects];
  const chooseId = ({ kind }: AdminRole): string => {
    switch (kind) {
      case 'capability':
        return capability.id;
      case 'config':
        return config?.id ?? '';
      case 'clock':
        return CLOCK;
      case 'random':
        return RANDOM;
      case 'object':
        return remainingIds.shift() ?? '';
    }
  };
  const results = tx.moveCall({
    target: formatTarget(target),
    typeArguments: Array.from({ length: call.typeParameters }, () => capability.application),
    arguments: call.roles.map((role) => referById(tx, chooseId(role))),
  });
  transferReturned(tx, results, call, sender);
}

function formatTarget({ packageId, module, name }: Target): string {
  return `${packageId}::${module}::${name}`;
}

/** Refuses a call that would repeat an earlier one. @throws SuiCommandError: OBJECT_EXISTS */
function checkIsFirst(
  { deployments }: CallInput,
  { entry }: Target,
  sharedObjects: Created['created'],
): void {
  const types = sharedObjects.map(({ type }) => type);
  const existing = entry?.[1].objects?.find(({ type }) => types.includes(type));
  if (existing === undefined) return;
  throw new SuiCommandError(
    'OBJECT_EXISTS',
    `the call would create another ${existing.type}, and ${deployments?.path} has ${existing.id} of this type: use that object, or create another with --again. Nothing was sent`,
  );
}

function listShared({ created, shared }: Created): Created['created'] {
  return created.filter(({ id }) => shared.includes(id));
}

/** Adds the shared objects that the call created to the deployment file. */
async function noteObjects(
  { deployments }: CallInput,
  chain: Chain,
  outcome: Outcome,
  { entry, packageId }: Target,
  objects: Created['created'],
): Promise<void> {
  if (objects.length === 0) return;
  await deployments?.record(chain, outcome, (applications) => {
    const [name = ''] = entry ?? [];
    const application = applications.get(name);
    if (application === undefined) return `no application there has the package ${packageId}`;
    return [[name, { ...application, objects: [...(application.objects ?? []), ...objects] }]];
  });
}

export const main = suiCommand({
  name: 'call',
  purpose: `Calls a Move function with the EnclaveCap of the application, such as one that sets a contract up:
PACKAGE::module::function, or module::function of the package in the deployment file of --network. The function must take
one EnclaveCap by reference; it may take the EnclaveConfig of this capability, Clock, Random and other objects by
reference, and no values. Shared objects that the call creates are added to the deployment file, where submit and post find
them. The call is refused if the file has an object of such a type already, unless --again is given. Returned objects go
to the sender.`,
  example: 'prices::open --network testnet',
  ids: [],
  arguments: ARGUMENTS,
  options: OPTIONS,
  check: readTarget,
  async run(invocation, chain) {
    const { options, deployments } = invocation;
    const target = readTarget(invocation);
    if (target.entry !== undefined) await deployments?.checkChain(chain);
    const declared = await readCall(chain, target);
    const config = await readConfigArgument(invocation, chain, declared, target);
    const capability = await chooseCapability(invocation, chain, declared, target, config);
    const call = fillApplication(declared, capability.application);
    if (config !== undefined) checkBelongs(config, capability);
    const objects = chooseObjects(call, options.object, target.entry?.[1].objects ?? []);
    checkObjectCount(call, objects);
    const tx = new Transaction();
    const completeCall = { target, call, capability, config, objects };
    addCall(tx, completeCall, chain.sender());
    let sharedObjects: Created['created'] = [];
    const outcome = await chain.submit(tx, {
      title: `call ${formatTarget(target)} with the EnclaveCap of ${capability.application}`,
      fields: { capability: capability.id, ...(config && { config: config.id }), objects },
      preview(simulated) {
        sharedObjects = listShared(simulated);
        if (!options.again) checkIsFirst(invocation, target, sharedObjects);
        const isShared = ({ id }: Created['created'][number]) => simulated.shared.includes(id);
        return {
          creates: simulated.created.map((object) => ({ type: object.type, shared: isShared(object) })),
        };
      },
      report(executed) {
        sharedObjects = listShared(executed);
        return { created: executed.created, shared: executed.shared };
      },
    });
    await noteObjects(invocation, chain, outcome, target, sharedObjects);
    return outcome;
  },
});

if (import.meta.main) await runAsProcess(main);
