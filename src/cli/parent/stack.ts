/** Reads and changes a CloudFormation stack of deploy/aws/stack.yaml, with the AWS CLI. */
import { randomBytes } from 'node:crypto';
import * as v from 'valibot';
import type { Environment } from '../command.ts';
import { STACK_TEMPLATE } from '../places.ts';
import { ParentError } from './errors.ts';
import { run } from './programs.ts';
import type { StackParameters } from './stack_parameters.ts';

/** A stack of an account, which need not exist yet. */
export interface StackPlace {
  readonly env: Environment;
  readonly region: string;
  readonly name: string;
}

/** Parameters by which a stack of this template is recognized. */
const MARKS = ['Pcr0', 'ImageSha256'];
/** Names of the groups of enclaves in the template; the parameter with the subnet has the same digit. */
const GROUP = /^EnclaveGroup([1-3])$/;
/** Status of a stack that CloudFormation made for a change set. It has no resources. */
export const REVIEW = 'REVIEW_IN_PROGRESS';
/** States of an instance in which its protection can be changed. */
const SETTABLE = ['InService', 'Standby'];
/** Values of `Replacement` for a resource that stays. */
const NOT_REPLACED = ['', 'False'];
/**
 * Argument by which the AWS CLI reads the template from its standard input. If it got the template's path
 * instead, it would expand variables in that path.
 */
const FROM_INPUT = 'file:///dev/stdin';

const text = v.nullish(v.string(), '');
const Stack = v.object({
  StackStatus: v.string(),
  StackStatusReason: text,
  Parameters: v.optional(v.array(v.object({ ParameterKey: v.string(), ParameterValue: text })), []),
});
const Change = v.object({
  Action: v.string(),
  LogicalResourceId: v.string(),
  ResourceType: v.string(),
  Replacement: text,
});
const ChangeSet = v.object({
  Status: v.string(),
  StatusReason: text,
  Changes: v.optional(v.array(v.object({ ResourceChange: Change })), []),
});
const Resources = v.object({
  StackResources: v.array(v.object({ LogicalResourceId: text, PhysicalResourceId: text })),
});
const Groups = v.object({
  AutoScalingGroups: v.array(
    v.object({
      AutoScalingGroupName: v.string(),
      Instances: v.array(
        v.object({ InstanceId: v.string(), AvailabilityZone: v.string(), LifecycleState: v.string() }),
      ),
    }),
  ),
});
const Instances = v.object({
  Reservations: v.array(
    v.object({ Instances: v.array(v.object({ InstanceId: v.string(), PrivateIpAddress: text })) }),
  ),
});
const Events = v.object({
  StackEvents: v.array(
    v.object({ LogicalResourceId: text, ResourceStatus: text, ResourceStatusReason: text }),
  ),
});
const InstanceTypes = v.object({
  InstanceTypes: v.array(
    v.object({
      NitroEnclavesSupport: text,
      ProcessorInfo: v.object({ SupportedArchitectures: v.array(v.string()) }),
      VCpuInfo: v.object({ DefaultVCpus: v.number() }),
      MemoryInfo: v.object({ SizeInMiB: v.number() }),
    }),
  ),
});

export interface ExistingStack {
  readonly status: string;
  readonly parameters: StackParameters;
}

export interface ResourceChange {
  readonly action: string;
  readonly resource: string;
  readonly type: string;
  /** Whether CloudFormation replaces the resource: `True`, `False` or `Conditional`; empty for others. */
  readonly replacement: string;
}

export interface ChangeSet {
  readonly name: string;
  readonly type: 'CREATE' | 'UPDATE';
  readonly changes: readonly ResourceChange[];
}

/** An instance that runs an enclave. If the instance ends, the enclave's signing key is lost. */
export interface StackEnclave {
  /** The group's name in the template. */
  readonly resource: string;
  /** The group's name in AWS. */
  readonly group: string;
  readonly instance: string;
  readonly zone: string;
  /** State in the group, such as InService. */
  readonly state: string;
  readonly address: string;
}

/** Facts of an instance type, as AWS states them. */
export interface InstanceType {
  readonly hasEnclaves: boolean;
  readonly isX86: boolean;
  readonly cpus: number;
  readonly memoryMib: number;
}

/** Runs the AWS CLI. @throws ParentError: PROGRAM_FAILED, with the program's own message */
function call({ env, region }: StackPlace, args: readonly string[], stdin: string | { file: string } = '') {
  const { status, stdout, stderr } = run(
    env,
    'aws',
    ['--region', region, '--output', 'json', ...args],
    stdin,
  );
  if (status !== 0) {
    throw new ParentError('PROGRAM_FAILED', `aws ${args.slice(0, 2).join(' ')} failed: ${stderr.trim()}`);
  }
  return stdout;
}

function read<S extends v.GenericSchema>(
  schema: S,
  place: StackPlace,
  args: readonly string[],
): v.InferOutput<S> {
  const stdout = call(place, args);
  let data: unknown;
  try {
    data = JSON.parse(stdout);
  } catch {
    data = undefined;
  }
  const parsed = v.safeParse(schema, data);
  if (parsed.success) return parsed.output;
  throw new ParentError('PROGRAM_FAILED', `aws ${args.slice(0, 2).join(' ')} printed unexpected JSON`);
}

/** Runs the AWS CLI, to read an object that may be missing. @returns undefined if AWS reports that it is */
function readIfPresent<S extends v.GenericSchema>(
  schema: S,
  place: StackPlace,
  args: readonly string[],
  missing: RegExp,
): v.InferOutput<S> | undefined {
  try {
    return read(schema, place, args);
  } catch (error) {
    if (error instanceof ParentError && missing.test(error.message)) return undefined;
    throw error;
  }
}

/** Reads the facts of a type. @throws ParentError: PROGRAM_FAILED, with AWS's message for an unknown type */
export function readInstanceType(place: StackPlace, type: string): InstanceType {
  const args = ['ec2', 'describe-instance-types', '--instance-types', type];
  const [row] = read(InstanceTypes, place, args).InstanceTypes;
  if (row === undefined) throw new ParentError('PROGRAM_FAILED', `${place.region} has no type ${type}`);
  return {
    hasEnclaves: row.NitroEnclavesSupport === 'supported',
    isX86: row.ProcessorInfo.SupportedArchitectures.includes('x86_64'),
    cpus: row.VCpuInfo.DefaultVCpus,
    memoryMib: row.MemoryInfo.SizeInMiB,
  };
}

/** Returns the size of an object in bytes; undefined if the bucket does not have it. */
export function readObjectSize(place: StackPlace, bucket: string, key: string): number | undefined {
  const args = ['s3api', 'head-object', '--bucket', bucket, '--key', key];
  return readIfPresent(v.object({ ContentLength: v.number() }), place, args, /\(404\)/)?.ContentLength;
}

/**
 * Returns the stack; undefined if it does not exist.
 *
 * @throws ParentError: STACK_STATE, if it was made from another template, or is being changed
 */
export function readStack(place: StackPlace): ExistingStack | undefined {
  const { name } = place;
  const args = ['cloudformation', 'describe-stacks', '--stack-name', name];
  const stacks = readIfPresent(v.object({ Stacks: v.array(Stack) }), place, args, /does not exist/);
  const stack = stacks?.Stacks[0];
  if (stack === undefined) return undefined;
  if (stack.StackStatus === REVIEW) return { status: REVIEW, parameters: {} };
  const parameters = Object.fromEntries(
    stack.Parameters.map(({ ParameterKey: key, ParameterValue: value }) => [key, value]),
  );
  if (!MARKS.every((mark) => mark in parameters)) {
    throw new ParentError(
      'STACK_STATE',
      `the stack ${name} was made from another template: pass another --name`,
    );
  }
  if (stack.StackStatus.endsWith('_IN_PROGRESS')) {
    throw new ParentError('STACK_STATE', `the stack ${name} is being changed (${stack.StackStatus}): wait`);
  }
  return { status: stack.StackStatus, parameters };
}

/**
 * Makes a change set, which changes nothing until it is executed.
 *
 * @returns the change set; undefined if the stack would not change
 * @throws ParentError: STACK_STATE, if the stack accepts no change; STACK_FAILED, with the reason
 */
export function makeChangeSet(
  place: StackPlace,
  existing: ExistingStack | undefined,
  parameters: StackParameters,
): ChangeSet | undefined {
  if (existing !== undefined && !/^(CREATE|(UPDATE|IMPORT)(_ROLLBACK)?)_COMPLETE$/.test(existing.status)) {
    throw new ParentError(
      'STACK_STATE',
      `the stack ${place.name} accepts no change (${existing.status}): delete it with --delete, or repair it in CloudFormation`,
    );
  }
  const name = `sui-enclave-${randomBytes(8).toString('hex')}`;
  const type = existing === undefined ? 'CREATE' : 'UPDATE';
  const list = Object.entries(parameters).map(([ParameterKey, ParameterValue]) => ({
    ParameterKey,
    ParameterValue,
  }));
  const args = [
    'cloudformation',
    'create-change-set',
    ...identify(place, name),
    '--change-set-type',
    type,
    '--template-body',
    FROM_INPUT,
    '--capabilities',
    'CAPABILITY_IAM',
    '--parameters',
    JSON.stringify(list),
  ];
  call(place, args, { file: STACK_TEMPLATE });
  waitFor(place, 'change-set-create-complete', ...identify(place, name));
  const description = ['cloudformation', 'describe-change-set', ...identify(place, name)];
  const { Status: status, StatusReason: reason, Changes: changes } = read(ChangeSet, place, description);
  if (status !== 'CREATE_COMPLETE') {
    deleteChangeSet(place, name);
    if (/didn't contain changes|^No updates are/.test(reason)) return undefined;
    throw new ParentError('STACK_FAILED', `the change set failed: ${reason || status}`);
  }
  return {
    name,
    type,
    changes: changes.map(({ ResourceChange: change }) => ({
      action: change.Action,
      resource: change.LogicalResourceId,
      type: change.ResourceType,
      replacement: change.Replacement,
    })),
  };
}

/** Deletes a change set. A stack that was never created stays, without resources. */
export function deleteChangeSet(place: StackPlace, changeSet: string): void {
  call(place, ['cloudformation', 'delete-change-set', ...identify(place, changeSet)]);
}

/** Executes a change set. @throws ParentError: STACK_FAILED, after CloudFormation has undone the change */
export function executeChangeSet(place: StackPlace, { name, type }: ChangeSet): void {
  call(place, ['cloudformation', 'execute-change-set', ...identify(place, name)]);
  const state = type === 'CREATE' ? 'stack-create-complete' : 'stack-update-complete';
  if (!waitFor(place, state, '--stack-name', place.name)) throw explainFailure(place);
}

/**
 * Deletes the stack with everything in it. The instances of the enclaves must not be protected.
 *
 * @throws ParentError: STACK_FAILED
 */
export function deleteStack(place: StackPlace): void {
  call(place, ['cloudformation', 'delete-stack', '--stack-name', place.name]);
  if (!waitFor(place, 'stack-delete-complete', '--stack-name', place.name)) throw explainFailure(place);
}

/** Lists the instances of the stack's enclaves. */
export function listEnclaves(place: StackPlace): StackEnclave[] {
  const args = ['cloudformation', 'describe-stack-resources', '--stack-name', place.name];
  const resources = new Map(
    read(Resources, place, args).StackResources.flatMap(({ LogicalResourceId, PhysicalResourceId }) =>
      GROUP.test(LogicalResourceId) && PhysicalResourceId !== ''
        ? [[PhysicalResourceId, LogicalResourceId]]
        : [],
    ),
  );
  // Without names, AWS would list every group of the account.
  if (resources.size === 0) return [];
  const groups = read(Groups, place, [
    'autoscaling',
    'describe-auto-scaling-groups',
    '--auto-scaling-group-names',
    ...resources.keys(),
  ]).AutoScalingGroups;
  const ids = groups.flatMap(({ Instances: rows }) => rows.map(({ InstanceId }) => InstanceId));
  if (ids.length === 0) return [];
  const { Reservations } = read(Instances, place, ['ec2', 'describe-instances', '--instance-ids', ...ids]);
  const addresses = new Map(
    Reservations.flatMap(({ Instances: rows }) => rows).map((row) => [row.InstanceId, row.PrivateIpAddress]),
  );
  return groups.flatMap(({ AutoScalingGroupName: group, Instances: rows }) =>
    rows.map(({ InstanceId: instance, AvailabilityZone: zone, LifecycleState: state }) => {
      const address = addresses.get(instance) ?? '';
      return { resource: resources.get(group) ?? '', group, instance, zone, state, address };
    }),
  );
}

/**
 * Lists the enclaves that an update ends: their group is removed or replaced, or moves to another subnet.
 *
 * @throws ParentError: STACK_STATE, if groups would shrink, since AWS would choose which instances it ends
 */
export function listEnding(
  { changes }: ChangeSet,
  oldParameters: StackParameters,
  newParameters: StackParameters,
  enclaves: readonly StackEnclave[],
): StackEnclave[] {
  const [oldSize = '', newSize = ''] = [oldParameters, newParameters].map(
    ({ InstancesPerSubnet: number }) => number,
  );
  if (Number(newSize) < Number(oldSize)) {
    throw new ParentError(
      'STACK_STATE',
      `--per-subnet is ${oldSize} and can't be lowered: make a smaller stack, move the callers to it, and delete this one`,
    );
  }
  const changedGroups = changes
    .filter(({ action, replacement }) => action === 'Remove' || !NOT_REPLACED.includes(replacement))
    .map(({ resource }) => resource);
  return enclaves.filter(({ resource }) => {
    const subnet = `Subnet${GROUP.exec(resource)?.[1]}`;
    return changedGroups.includes(resource) || oldParameters[subnet] !== newParameters[subnet];
  });
}

/** Removes the protection of instances. CloudFormation can't end the group of a protected instance. */
export function unprotect(place: StackPlace, enclaves: readonly StackEnclave[]): void {
  const settable = enclaves.filter(({ state }) => SETTABLE.includes(state));
  for (const [group, rows] of Map.groupBy(settable, (enclave) => enclave.group)) {
    const args = ['autoscaling', 'set-instance-protection', '--auto-scaling-group-name', group];
    const ids = rows.map(({ instance }) => instance);
    call(place, [...args, '--no-protected-from-scale-in', '--instance-ids', ...ids]);
  }
}

function explainFailure(place: StackPlace): ParentError {
  const args = ['cloudformation', 'describe-stack-events', '--stack-name', place.name];
  const rows = readIfPresent(Events, place, args, /does not exist/)?.StackEvents ?? [];
  // The newest event comes first. The first failure has the cause; it cancels other resources.
  const causes = rows
    .filter(
      ({ ResourceStatus, ResourceStatusReason }) => /FAILED$/.test(ResourceStatus) && ResourceStatusReason,
    )
    .map(({ LogicalResourceId, ResourceStatusReason }) => `${LogicalResourceId}: ${ResourceStatusReason}`);
  const cause = causes.filter((line) => !/ cancelled$/.test(line)).at(-1) ?? 'its events name no cause';
  return new ParentError('STACK_FAILED', `CloudFormation did not finish the stack ${place.name}: ${cause}`);
}

/** Waits for a state. @returns whether it was reached; false if the change failed or took too long */
function waitFor({ env, region }: StackPlace, state: string, ...args: string[]): boolean {
  return run(env, 'aws', ['--region', region, 'cloudformation', 'wait', state, ...args]).status === 0;
}

function identify({ name }: StackPlace, changeSet: string): string[] {
  return ['--stack-name', name, '--change-set-name', changeSet];
}
