/** `sui-enclave configure_enclave`: plans, applies and deletes the CloudFormation stack of deploy/aws. */
import { quantity } from 'sui-enclave/wording';
import * as v from 'valibot';
import { type Context, command, type Result, runAsProcess, UsageError } from '../command.ts';
import {
  awsRegion,
  enclaveName,
  enclaveUrl,
  integer,
  ipv4,
  ipv4Range,
  kmsKeyArn,
  objectId,
  path,
  secretArn,
} from '../values.ts';
import { ParentError } from './errors.ts';
import { type HostFiles, readHostFiles, readStackImage } from './host_files.ts';
import { describeRefusal, SUGGESTED_TYPES } from './instance_types.ts';
import { SIZE_OPTIONS } from './nitro_cli.ts';
import {
  type ChangeSet,
  deleteChangeSet,
  deleteStack,
  type ExistingStack,
  executeChangeSet,
  listEnclaves,
  listEnding,
  makeChangeSet,
  REVIEW,
  readInstanceType,
  readObjectSize,
  readStack,
  type StackEnclave,
  type StackPlace,
  unprotect,
} from './stack.ts';
import { fillParameters, type StackParameters, type StackSettings } from './stack_parameters.ts';

const matching = (pattern: RegExp, message: string) => v.pipe(v.string(), v.regex(pattern, message));

/** Type of an EC2 instance for enclaves, checked by its name. A later check asks AWS about the type. */
const enclaveType = v.pipe(
  matching(/^[a-z0-9][a-z0-9-]*\.[a-z0-9-]+$/, 'must be a type such as m5.xlarge'),
  v.check(
    (type) => describeRefusal(type) === undefined,
    ({ input }) =>
      `must be an x86-64 type with Nitro Enclaves: ${input} ${describeRefusal(input)}. Choose ${SUGGESTED_TYPES}`,
  ),
);

const subnets = v.pipe(
  matching(
    /^subnet-[0-9a-f]{8,17}(,subnet-[0-9a-f]{8,17}){0,2}$/,
    'must be 1 to 3 subnets, such as subnet-0a1b2c3d,subnet-4e5f6a7b',
  ),
  v.transform((list) => list.split(',')),
  v.check((list) => new Set(list).size === list.length, 'names a subnet twice'),
);

const enclaveUrls = v.pipe(
  matching(
    /^https?:\/\/[A-Za-z0-9.-]+(:\d{1,5})?(,https?:\/\/[A-Za-z0-9.-]+(:\d{1,5})?){0,15}$/,
    'must be 1 to 16 base URLs without a path, separated by commas',
  ),
  v.transform((list) => list.split(',')),
  v.array(enclaveUrl),
);

const LOG_DAYS = [
  '1',
  '3',
  '5',
  '7',
  '14',
  '30',
  '60',
  '90',
  '120',
  '150',
  '180',
  '365',
  '400',
  '545',
  '731',
];

/** Options that a plan needs. --delete needs none of them. */
const NEEDED = ['bucket', 'vpc', 'subnets'] as const;

export const main = command({
  name: 'configure_enclave',
  purpose: `Shows what a CloudFormation stack of hosts for enclaves would change in your AWS account, and changes it with --apply.
It asks no questions, and may be run again. The page "Enclaves on AWS" describes the stack.`,
  example:
    '--region eu-central-1 --bucket my-releases --vpc vpc-0a1b2c3d --subnets subnet-0a1b2c3d --cidr 192.0.2.1/32',
  arguments: {},
  options: {
    region: { value: '<region>', help: 'the AWS region', schema: awsRegion, required: true },
    name: {
      value: '<name>',
      help: 'the name of the stack',
      schema: matching(/^[a-z][a-z0-9-]{0,62}$/, 'must be a name in lower case'),
      default: 'sui-enclave',
    },
    release: {
      value: '<folder>',
      help: 'the folder with node-, program- and image-VERSION.tar.gz, which the bucket has too',
      schema: path,
      default: 'release',
    },
    bucket: {
      value: '<name>',
      help: 'the bucket with the files of the release (needed)',
      schema: matching(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, 'must be the name of a bucket'),
    },
    prefix: {
      value: '<prefix>',
      help: 'the prefix of these files in the bucket',
      schema: matching(
        /^([A-Za-z0-9_-][A-Za-z0-9._-]*\/)+$/,
        'must be names of folders, with a slash after each',
      ),
      default: 'sui-enclave/',
    },
    vpc: {
      value: '<id>',
      help: 'the network of the hosts (needed)',
      schema: matching(/^vpc-[0-9a-f]{8,17}$/, 'must be the id of a VPC'),
    },
    subnets: {
      value: '<ids>',
      help: "1 to 3 of the network's subnets, separated by commas; each gets an Auto Scaling group (needed)",
      schema: subnets,
    },
    cidr: {
      value: '<addresses>',
      help: 'IPv4 addresses that may reach the service: 0.0.0.0/0 for everybody',
      schema: ipv4Range,
    },
    https: {
      value: '<addresses>',
      help: 'IPv4 addresses that may reach HAProxy on the instances, at ports 80 and 443',
      schema: ipv4Range,
    },
    peers: { help: "let the instances reach each other's service, which HAProxy on one of them needs" },
    port: {
      value: '<port>',
      help: 'the port of the service on each instance',
      schema: integer(1024, 65_535),
      default: '3000',
    },
    address: {
      value: '<address>',
      help: 'the address on which each instance listens: see expose_enclave',
      schema: ipv4,
    },
    'instance-type': {
      value: '<type>',
      help: 'the type of the instances: x86-64, with Nitro Enclaves',
      schema: enclaveType,
      default: 'm5.xlarge',
    },
    'per-subnet': {
      value: '<number>',
      help: 'instances in each subnet, each with one enclave',
      schema: integer(1, 20),
      default: '1',
    },
    enclave: {
      value: '<name>',
      help: 'the name of the enclave on its instance',
      schema: enclaveName,
      default: 'enclave',
    },
    ...SIZE_OPTIONS,
    secret: {
      value: '<arn>',
      help: "the secret in Secrets Manager with the application's secrets",
      schema: secretArn,
    },
    'kms-key': {
      value: '<arn>',
      help: 'the key in KMS that encrypts the secrets, if you use your own key',
      schema: kmsKeyArn,
    },
    'log-days': {
      value: '<days>',
      help: 'days for which CloudWatch keeps the events',
      schema: v.picklist(LOG_DAYS, `must be one of ${LOG_DAYS.join(', ')}`),
      default: '30',
    },
    'keeper-secret': {
      value: '<arn>',
      help: "the secret with the keeper's keystore: starts a host with a keeper",
      schema: secretArn,
    },
    'keeper-address': { value: '<address>', help: "the keeper's address on Sui", schema: objectId },
    'provisioner-key': {
      value: '<arn>',
      help: "the secret with the provisioner's key in PEM: starts a host with a provisioner",
      schema: secretArn,
    },
    'provisioner-secret': {
      value: '<arn>',
      help: "the secret with the application's secrets, which the provisioner alone reads",
      schema: secretArn,
    },
    enclaves: { value: '<urls>', help: 'base URLs that the provisioner watches', schema: enclaveUrls },
    'helper-type': {
      value: '<type>',
      help: 'the type of the hosts of keeper and provisioner, on x86-64',
      schema: matching(/^[a-z0-9][a-z0-9-]*\.[a-z0-9-]+$/, 'must be a type such as t3.small'),
      default: 't3.small',
    },
    delete: { help: 'delete the stack with all its enclaves; without --apply, only list them' },
    'end-keys': { help: 'with --apply, accept a change that ends enclaves, whose keys are then lost' },
    apply: { help: 'apply the change that is shown' },
  },
  run({ options }, { env, io }) {
    const { name, region, apply } = options;
    const place = { env, region, name };
    if (options.delete) return remove(place, apply, io);
    const [missing] = NEEDED.filter((option) => options[option] === undefined);
    if (missing !== undefined) throw new UsageError(`--${missing} is required`);
    const settings = options as typeof options & StackSettings;
    const files = readHostFiles(options.release);
    const parameters = fillParameters(settings, files, readStackImage(env, files.image));
    checkInstanceType(place, settings, parameters);
    checkBucket(place, settings, files);
    return change(place, parameters, { apply, endKeys: options['end-keys'] }, io);
  },
});

/** Asks AWS about the instance type. @throws UsageError, if the type can't run the enclave */
function checkInstanceType(place: StackPlace, settings: StackSettings, parameters: StackParameters): void {
  const type = settings['instance-type'];
  const { hasEnclaves, isX86, cpus, memoryMib } = readInstanceType(place, type);
  const refuse = (reason: string) => new UsageError(`--instance-type: ${type} ${reason}`);
  if (!hasEnclaves || !isX86)
    throw refuse(`must be an x86-64 type with Nitro Enclaves. Choose ${SUGGESTED_TYPES}`);
  // The parent keeps a core, which is two CPUs.
  if (settings.cpus > cpus - 2) throw refuse(`has ${cpus} CPUs, of which an enclave can have ${cpus - 2}`);
  if (Number(parameters['MemoryMib']) >= memoryMib) {
    throw refuse(`has ${memoryMib} MiB of memory, and the enclave takes ${parameters['MemoryMib']}`);
  }
}

/**
 * Checks the files in the bucket.
 *
 * @throws ParentError: RELEASE_MISSING, if hosts could not start with them
 */
function checkBucket(place: StackPlace, { bucket, prefix }: StackSettings, files: HostFiles): void {
  const { node, program, image, keeper } = files;
  for (const file of [node, program, image, ...(keeper === undefined ? [] : [keeper])]) {
    const url = `s3://${bucket}/${prefix}${file.name}`;
    const size = readObjectSize(place, bucket, prefix + file.name);
    if (size === undefined) {
      throw new ParentError('RELEASE_MISSING', `${url} does not exist: run aws s3 cp ${file.path} ${url}`);
    }
    if (size !== file.bytes) {
      throw new ParentError(
        'RELEASE_MISSING',
        `${url} has ${size} bytes, and ${file.path} has ${file.bytes}: give the new file another version`,
      );
    }
  }
}

function change(
  place: StackPlace,
  parameters: StackParameters,
  { apply, endKeys }: { readonly apply: boolean; readonly endKeys: boolean },
  io: Context['io'],
): Result {
  const { name: stack, region } = place;
  const stackOrReview = readStack(place);
  const existing = stackOrReview?.status === REVIEW ? undefined : stackOrReview;
  const changeSet = makeChangeSet(place, existing, parameters);
  if (changeSet === undefined) {
    return { json: { status: 'unchanged', stack, region }, text: `The stack ${stack} is as it should be.` };
  }
  let ending: StackEnclave[];
  try {
    ending =
      existing === undefined
        ? []
        : listEnding(changeSet, existing.parameters, parameters, listEnclaves(place));
    io.log(describeChange(place, existing, parameters, changeSet));
    if (existing !== undefined) io.log(describeEnding(ending));
    if (apply && ending.length > 0 && !endKeys) {
      throw new ParentError(
        'KEYS_END',
        `this change ends ${quantity(ending.length, 'enclave')}: pass --end-keys to lose the keys`,
      );
    }
    if (apply) unprotect(place, ending);
  } catch (error) {
    deleteChangeSet(place, changeSet.name);
    throw error;
  }
  const { changes } = changeSet;
  const plan = { stack, region, parameters: compare(existing, parameters), changes, ending };
  if (!apply) {
    deleteChangeSet(place, changeSet.name);
    return {
      json: { status: 'planned', ...plan },
      text: 'Nothing was applied: add --apply to apply the change.',
    };
  }
  executeChangeSet(place, changeSet);
  const enclaves = listEnclaves(place);
  const lines = [`The stack ${stack} is applied. Its enclaves:`, ...enclaves.map(formatEnclave)];
  return { json: { status: 'applied', ...plan, enclaves }, text: lines.join('\n') };
}

/** Deletes the stack. Without `apply`, it only lists the enclaves that would end. */
function remove(place: StackPlace, apply: boolean, io: Context['io']): Result {
  const { name: stack, region } = place;
  if (readStack(place) === undefined) {
    return { json: { status: 'unchanged', stack, region }, text: `There is no stack ${stack} in ${region}.` };
  }
  const ending = listEnclaves(place);
  const verb = apply ? 'is being deleted' : 'would be deleted';
  io.log(`The stack ${stack} in ${region} ${verb}, with its hosts, roles and log group.`);
  io.log(describeEnding(ending));
  if (!apply) {
    return {
      json: { status: 'planned', stack, region, ending },
      text: 'Nothing was deleted: add --apply to delete the stack.',
    };
  }
  unprotect(place, ending);
  deleteStack(place);
  return { json: { status: 'deleted', stack, region, ending }, text: `The stack ${stack} is deleted.` };
}

/** Returns the parameters that change, each with its old and its new value. */
function compare(existing: ExistingStack | undefined, parameters: StackParameters) {
  return Object.entries(parameters)
    .filter(([name, value]) => existing === undefined || existing.parameters[name] !== value)
    .map(([name, after]) => ({ name, before: existing?.parameters[name], after }));
}

function describeChange(
  { name, region }: StackPlace,
  existing: ExistingStack | undefined,
  parameters: StackParameters,
  { changes }: ChangeSet,
): string {
  const formatValue = (value: string | undefined) =>
    value === undefined || value === '' ? '(empty)' : value;
  const differences = compare(existing, parameters).map(({ name: parameter, before, after }) =>
    existing === undefined
      ? `  ${parameter} = ${formatValue(after)}`
      : `  ${parameter} = ${formatValue(after)}, was ${formatValue(before)}`,
  );
  return [
    `The stack ${name} in ${region} ${existing === undefined ? 'is new' : 'changes'}.`,
    'Parameters:',
    ...(differences.length > 0 ? differences : ['  all as before']),
    'Resources:',
    ...changes.map(({ action, resource, type, replacement }) => {
      const replacementText =
        replacement === '' || replacement === 'False' ? '' : `, replaced: ${replacement}`;
      return `  ${action} ${resource} (${type})${replacementText}`;
    }),
  ].join('\n');
}

function describeEnding(ending: readonly StackEnclave[]): string {
  if (ending.length === 0) return 'This does not end any enclave.';
  return ['These enclaves end, and their keys are lost:', ...ending.map(formatEnclave)].join('\n');
}

function formatEnclave({ instance, zone, address, group }: StackEnclave): string {
  return `  ${instance} at ${address || 'no address'} in ${zone}, of the group ${group}`;
}

if (import.meta.main) await runAsProcess(main);
