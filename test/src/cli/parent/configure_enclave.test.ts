/** Tests the stack of deploy/aws with a fake AWS CLI. test/e2e/aws runs the real CLI with a model of AWS. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { loadImage } from '../../../../src/cli/parent/image.ts';
import { STACK_TEMPLATE } from '../../../../src/cli/places.ts';
import { formatPcrs } from '../../../../src/library/attestation/image.ts';
import { spawnScript } from '../run.ts';
import { Parent } from './fakes.ts';

const SECRET = 'arn:aws:secretsmanager:eu-west-1:123456789012:secret:x-AbCdEf';
const KMS_KEY = 'arn:aws:kms:eu-west-1:123456789012:key/0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f';
const SUBNET = 'subnet-0a1b2c3d';
const NETWORK = ['--vpc', 'vpc-0a1b2c3d', '--subnets', SUBNET, '--cidr', '203.0.113.0/24'];
const ARGS = ['--region', 'eu-west-1', '--bucket', 'my-releases', ...NETWORK];
const WITH_SECRET = [...ARGS, '--secret', SECRET];
const KEEPER = ['--keeper-secret', SECRET, '--keeper-address', `0x${'a'.repeat(64)}`];
const PROVISIONER = [
  '--provisioner-key',
  SECRET,
  '--provisioner-secret',
  SECRET,
  '--enclaves',
  'http://10.0.0.5:3000,http://10.0.1.5:3000',
];
/** A public key of Ed25519, from RFC 8032, 7.1, test 1. */
const PROVISIONER_KEY = 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a';
const PROVISIONED = `endpoints: []\nsecrets: [API_KEY]\nprovisioners: ["${PROVISIONER_KEY}"]\n`;
/** Calls that only read. Every other call changes the account, or makes a change set. */
const READS = /^aws( --\S+ \S+)* \S+ (describe-\S+|head-object|wait) /;

let parent: Parent;
let release: string;

/** Puts a file into the folder of the release and into the bucket. */
function addFile(name: string, content: Buffer | string): void {
  writeFileSync(join(release, name), content);
  parent.set(`size of ${name}`, String(Buffer.byteLength(content)));
}

/** Packs an image as image-VERSION.tar.gz. */
function addImage(version = '1.0.0', manifest?: string, serverEnv?: string): void {
  const out = join(parent.dir, 'out');
  mkdirSync(out, { recursive: true });
  copyFileSync(parent.makeImage(manifest, serverEnv), join(out, 'nitro.eif'));
  writeFileSync(join(out, 'nitro.pcrs'), formatPcrs(loadImage(join(out, 'nitro.eif')).registers));
  writeFileSync(join(out, 'relay'), 'the relay');
  pack(out, version, ['nitro.eif', 'nitro.pcrs', 'relay']);
}

function pack(folder: string, version: string, members: readonly string[]): void {
  rmSync(join(release, 'image-1.0.0.tar.gz'), { force: true });
  addFile(`image-${version}.tar.gz`, spawnSync('tar', ['-cz', '-C', folder, ...members]).stdout);
}

beforeEach(() => {
  parent = new Parent();
  release = join(parent.dir, 'release');
  mkdirSync(release);
  addFile('node-24.1.0.tar.gz', 'node');
  addFile('program-0.2.0.tar.gz', 'program');
  addImage();
});

const configure = (args: readonly string[]) =>
  parent.run('configure_enclave.ts', [...args, '--release', release]);
const json = async (args: readonly string[]) => JSON.parse((await configure([...args, '--json'])).stdout);
const changes = () => parent.calls('aws').filter((call) => !READS.test(call));
/** Returns the parameters of the last change set. */
const sentParameters = (): Record<string, string> =>
  Object.fromEntries(
    JSON.parse(parent.read('parameters')).map((row: Record<string, string>) => [
      row['ParameterKey'],
      row['ParameterValue'],
    ]),
  );

/** Gives the stack two groups with an enclave each. */
function addEnclaves(): void {
  const names = [1, 2];
  const rows = names.map((at) => ({
    LogicalResourceId: `EnclaveGroup${at}`,
    PhysicalResourceId: `group-${at}`,
  }));
  parent.set(
    'resources',
    JSON.stringify({
      StackResources: [...rows, { LogicalResourceId: 'EnclaveRole', PhysicalResourceId: 'r' }],
    }),
  );
  const groups = names.map((at) => ({
    AutoScalingGroupName: `group-${at}`,
    Instances: [{ InstanceId: `i-${at}`, AvailabilityZone: `eu-west-1${at}`, LifecycleState: 'InService' }],
  }));
  parent.set('groups', JSON.stringify({ AutoScalingGroups: groups }));
  const instances = names.map((at) => ({ InstanceId: `i-${at}`, PrivateIpAddress: `10.0.${at}.5` }));
  parent.set('instances', JSON.stringify({ Reservations: [{ Instances: instances }] }));
}

/** Makes the stack with two subnets. @returns its options */
async function createStack(): Promise<readonly string[]> {
  const args = WITH_SECRET.map((arg) => (arg === SUBNET ? `${SUBNET},subnet-4e5f6a7b` : arg));
  addEnclaves();
  expect((await configure([...args, '--apply'])).status).toBe(0);
  return args;
}

const setChange = (...resources: object[]) =>
  parent.set(
    'changes',
    JSON.stringify({
      Status: 'CREATE_COMPLETE',
      Changes: resources.map((ResourceChange) => ({ ResourceChange })),
    }),
  );
const group = (action: string, at: number, Replacement?: string) => ({
  Action: action,
  LogicalResourceId: `EnclaveGroup${at}`,
  ResourceType: 'AWS::AutoScaling::AutoScalingGroup',
  ...(Replacement !== undefined && { Replacement }),
});

describe('the plan', () => {
  test('shows the change set, deletes it, and changes nothing', async () => {
    const { status, stdout, stderr } = await configure(WITH_SECRET);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(stdout).toMatch(/^The stack sui-enclave in eu-west-1 is new\.\nParameters:\n/);
    expect(stdout).toMatch(/^ {2}Bucket = my-releases$/m);
    expect(stdout).toMatch(/^ {2}Add EnclaveGroup1 \(AWS::AutoScaling::AutoScalingGroup\)$/m);
    expect(stdout).toMatch(/Nothing was applied: add --apply to apply the change\.\n$/);
    const names = changes().map((call) =>
      /(\S+-change-set) --stack-name (\S+) --change-set-name (\S+)/.exec(call),
    );
    expect(names.map((match) => match?.slice(1, 3))).toEqual([
      ['create-change-set', 'sui-enclave'],
      ['delete-change-set', 'sui-enclave'],
    ]);
    expect(names[0]?.[3]).toBe(names[1]?.[3]);
  });

  test('fills every parameter of the template but the system image, each in the form that the template requires', async () => {
    addImage('1.0.0', PROVISIONED);
    addFile('keeper-3.yaml', 'network: testnet\n');
    await configure([
      ...ARGS,
      ...KEEPER,
      ...PROVISIONER,
      '--address',
      '10.0.0.1',
      '--log-days',
      '7',
      '--https',
      '0.0.0.0/0',
      '--peers',
      '--kms-key',
      KMS_KEY,
    ]);
    const sent = sentParameters();
    const template = readFileSync(STACK_TEMPLATE, 'utf8');
    const [, section = ''] = /^Parameters:\n(.*?)^Rules:/ms.exec(template) ?? [];
    const rows = [...section.matchAll(/^ {2}(\w+):\n((?: {4}.*\n)+)/gm)];
    expect(Object.keys(sent).sort()).toEqual(
      rows
        .map(([, name = '']) => name)
        .filter((name) => name !== 'Ami')
        .sort(),
    );
    let count = 0;
    for (const [, name = '', row = ''] of rows) {
      const [, pattern] = /AllowedPattern: '(.*)'/.exec(row) ?? [];
      if (pattern === undefined) continue;
      count++;
      expect(sent[name], name).toMatch(new RegExp(`^(?:${pattern})$`));
    }
    expect(count).toBeGreaterThan(20);
    expect(parent.read('template')).toBe(template);
    const digest = (name: string) =>
      createHash('sha256')
        .update(readFileSync(join(release, name)))
        .digest('hex');
    const { pcr0, pcr1, pcr2 } = loadImage(join(parent.dir, 'out/nitro.eif')).registers;
    expect(sent).toMatchObject({
      Pcr0: pcr0,
      Pcr1: pcr1,
      Pcr2: pcr2,
      ImageVersion: '1.0.0',
      ImageSha256: digest('image-1.0.0.tar.gz'),
      NodeVersion: '24.1.0',
      NodeSha256: digest('node-24.1.0.tar.gz'),
      ProgramVersion: '0.2.0',
      ProgramSha256: digest('program-0.2.0.tar.gz'),
      KeeperVersion: '3',
      KeeperSha256: digest('keeper-3.yaml'),
      SecretArn: '',
      LogRetentionDays: '7',
      Address: '10.0.0.1',
      MemoryMib: '512',
      Prefix: 'sui-enclave/',
      ServiceCidr: '203.0.113.0/24',
      HttpsCidr: '0.0.0.0/0',
      Peers: 'yes',
      KmsKeyArn: KMS_KEY,
    });
  });

  test('opens no port and grants no key without an option', async () => {
    const args = WITH_SECRET.filter((arg) => arg !== '--cidr' && arg !== '203.0.113.0/24');
    expect((await configure(args)).status).toBe(0);
    expect(sentParameters()).toMatchObject({ ServiceCidr: '', HttpsCidr: '', Peers: 'no', KmsKeyArn: '' });
  });

  test('has the same content as JSON', async () => {
    expect(await json(WITH_SECRET)).toMatchObject({
      status: 'planned',
      stack: 'sui-enclave',
      region: 'eu-west-1',
      ending: [],
      changes: [{ action: 'Add', resource: 'EnclaveGroup1' }],
    });
  });

  test('is printed by a process of its own, too', async () => {
    const args = [...WITH_SECRET, '--release', release];
    const { status, stdout } = await spawnScript('parent/configure_enclave.ts', args, { env: parent.env });
    expect(status).toBe(0);
    expect(stdout).toMatch(/Nothing was applied/);
  });
});

describe('--apply', () => {
  test('executes the change set that it shows, and lists the enclaves', async () => {
    addEnclaves();
    const { status, stdout } = await configure([...WITH_SECRET, '--apply']);
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /The stack sui-enclave is applied\. Its enclaves:\n {2}i-1 at 10\.0\.1\.5 in eu-west-11/,
    );
    const names = changes().map((call) => /cloudformation (\S+) .*--change-set-name (\S+)/.exec(call));
    expect(names.map((match) => match?.[1])).toEqual(['create-change-set', 'execute-change-set']);
    expect(names[0]?.[2]).toBe(names[1]?.[2]);
  });

  test('changes nothing the second time', async () => {
    await configure([...WITH_SECRET, '--apply']);
    parent.set(
      'changes',
      JSON.stringify({ Status: 'FAILED', StatusReason: "The submitted information didn't contain changes." }),
    );
    const { status, stdout } = await configure([...WITH_SECRET, '--apply']);
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'The stack sui-enclave is as it should be.\n' });
    expect(changes().at(-1)).toMatch(/delete-change-set/);
  });

  test('updates an existing stack, and names the parameters that change', async () => {
    const args = await createStack();
    addImage('1.0.1', 'endpoints: []\nsecrets: [API_KEY]\n');
    setChange({
      Action: 'Modify',
      LogicalResourceId: 'EnclaveTemplate',
      ResourceType: 'AWS::EC2::LaunchTemplate',
      Replacement: 'False',
    });
    const { status, stdout } = await configure([...args, '--apply']);
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /changes\.\nParameters:\n {2}ImageVersion = 1\.0\.1, was 1\.0\.0\n {2}ImageSha256 = .*\n {2}Pcr0 = /,
    );
    expect(stdout).toMatch(/^This does not end any enclave\.$/m);
    expect(changes().at(-2)).toMatch(/--change-set-type UPDATE /);
    expect(changes().at(-1)).toMatch(/execute-change-set/);
  });

  test.each([
    ['a group is removed', () => setChange(group('Remove', 2))],
    ['a group is replaced', () => setChange(group('Modify', 2, 'True'))],
    ['a group may be replaced', () => setChange(group('Modify', 2, 'Conditional'))],
  ])('refuses to end enclaves if %s, unless --end-keys accepts it', async (_, setUp) => {
    const args = await createStack();
    setUp();
    const { status, stdout, stderr } = await configure([...args, '--apply']);
    expect(status).toBe(1);
    expect(stderr).toBe('KEYS_END: this change ends 1 enclave: pass --end-keys to lose the keys\n');
    expect(stdout).toMatch(
      /their keys are lost:\n {2}i-2 at 10\.0\.2\.5 in eu-west-12, of the group group-2\n/,
    );
    expect(changes().at(-1)).toMatch(/delete-change-set/);

    expect((await configure([...args, '--apply', '--end-keys'])).status).toBe(0);
    expect(changes().slice(-2)).toEqual([
      expect.stringMatching(
        /set-instance-protection --auto-scaling-group-name group-2 --no-protected-from-scale-in --instance-ids i-2$/,
      ),
      expect.stringMatching(/execute-change-set/),
    ]);
  });

  test('treats a change of a group’s subnet as the end of its enclaves', async () => {
    const args = await createStack();
    setChange(group('Modify', 1, 'False'));
    const moved = args.map((arg) => (arg.startsWith('subnet-') ? 'subnet-99999999,subnet-4e5f6a7b' : arg));
    const { stderr, stdout } = await configure([...moved, '--apply']);
    expect(stderr).toMatch(/^KEYS_END/);
    expect(stdout).toMatch(/lost:\n {2}i-1 [^\n]*\n$/);
  });

  test('refuses fewer instances in a subnet, since AWS would choose which end', async () => {
    const args = await createStack();
    expect((await configure([...args, '--per-subnet', '2', '--apply'])).status).toBe(0);
    const { status, stderr } = await configure([...args, '--apply', '--end-keys']);
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringMatching(/^STACK_STATE: --per-subnet is 2 and can't be lowered/),
    });
    expect(changes().at(-1)).toMatch(/delete-change-set/);
  });

  test("reports the first cause of a failure, in CloudFormation's words", async () => {
    parent.set('wait fails', 'stack-create-complete');
    const event = (LogicalResourceId: string, ResourceStatusReason: string) => ({
      LogicalResourceId,
      ResourceStatusReason,
      ResourceStatus: 'CREATE_FAILED',
    });
    const events = [
      event('EnclaveRole', 'Resource creation cancelled'),
      event('EnclaveGroup1', 'vcpu limit'),
      { LogicalResourceId: 'EnclaveLogs', ResourceStatus: 'CREATE_COMPLETE' },
    ];
    parent.set('events', JSON.stringify({ StackEvents: events }));
    const { status, stderr } = await configure([...WITH_SECRET, '--apply']);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^STACK_FAILED: .* sui-enclave: EnclaveGroup1: vcpu limit\n$/);
  });
});

describe('--delete', () => {
  const DELETE = ['--region', 'eu-west-1', '--delete'];

  test('only lists the enclaves whose keys end, without --apply', async () => {
    await createStack();
    const earlierCalls = changes().length;
    const { status, stdout } = await configure(DELETE);
    expect(status).toBe(0);
    expect(stdout).toMatch(
      /would be deleted, .*keys are lost:\n {2}i-1 .*\n {2}i-2 .*\nNothing was deleted: add --apply/s,
    );
    expect(changes()).toHaveLength(earlierCalls);
  });

  test('removes the protection of the instances, and deletes the stack', async () => {
    await createStack();
    const earlierCalls = changes().length;
    expect((await configure([...DELETE, '--apply'])).stdout).toMatch(
      /^The stack sui-enclave in eu-west-1 is being deleted, .*The stack sui-enclave is deleted\.\n$/s,
    );
    expect(
      changes()
        .slice(earlierCalls)
        .map((call) => / (set-instance-\w+|delete-stack) /.exec(call)?.[1]),
    ).toEqual(['set-instance-protection', 'set-instance-protection', 'delete-stack']);
    expect((await configure([...DELETE, '--apply'])).stdout).toBe(
      'There is no stack sui-enclave in eu-west-1.\n',
    );
  });

  test('leaves the protection of an instance that AWS is ending already', async () => {
    await createStack();
    parent.set('groups', parent.read('groups').replace('InService', 'Terminating'));
    const earlierCalls = changes().length;
    expect((await configure([...DELETE, '--apply'])).status).toBe(0);
    expect(changes().slice(earlierCalls).join('\n')).not.toMatch(/--instance-ids i-1/);
  });

  test('reports a stack that could not be deleted', async () => {
    await createStack();
    parent.set('wait fails', 'stack-delete-complete');
    expect((await configure([...DELETE, '--apply'])).stderr).toMatch(/^STACK_FAILED: /);
  });
});

test("the operator's policy allows every call of the command", async () => {
  await createStack();
  await configure(WITH_SECRET);
  await configure(['--region', 'eu-west-1', '--delete', '--apply']);
  parent.set('wait fails', 'stack-create-complete');
  await configure([...WITH_SECRET, '--apply']);
  const policy = JSON.parse(readFileSync(join(STACK_TEMPLATE, '../operator-policy.json'), 'utf8'));
  const allowed: string[] = policy.Statement.flatMap(({ Action }: { Action: string[] }) => Action);
  const operations = parent.calls('aws').map((line) => {
    const [service = '', action = ''] = line.replace(/^aws( --\S+ \S+)* /, '').split(' ');
    return `${service}:${action.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase())}`;
  });
  // A waiter repeats a description, and the right to read an object has the name of another operation.
  const needed = new Set(operations.filter((operation) => operation !== 'cloudformation:Wait'));
  expect(needed.delete('s3api:HeadObject')).toBe(true);
  expect(needed.size).toBeGreaterThan(10);
  expect([...needed, 's3:GetObject', 's3:ListBucket'].filter((name) => !allowed.includes(name))).toEqual([]);
});

describe('the stack of this name', () => {
  const TEMPLATE_MARKS = ['Pcr0', 'ImageSha256'];
  const setStack = (StackStatus: string, names: readonly string[] = TEMPLATE_MARKS) => {
    const Parameters = names.map((name) => ({ ParameterKey: name, ParameterValue: 'x' }));
    parent.set('stack', JSON.stringify({ Stacks: [{ StackStatus, Parameters, Description: null }] }));
  };

  test.each([
    ['an update', WITH_SECRET],
    ['a deletion', ['--region', 'eu-west-1', '--delete', '--apply']],
  ])('is left unchanged by %s if it has another template', async (_, args) => {
    setStack('CREATE_COMPLETE', ['Pcr0']);
    expect((await configure(args)).stderr).toMatch(/^STACK_STATE: .*made from another template/);
    expect(changes()).toEqual([]);
  });

  test.each(['UPDATE_IN_PROGRESS', 'UPDATE_COMPLETE_CLEANUP_IN_PROGRESS', 'DELETE_IN_PROGRESS'])(
    'is left unchanged while another change is in progress: %s',
    async (status) => {
      setStack(status);
      expect((await configure(WITH_SECRET)).stderr).toMatch(/^STACK_STATE: .*is being changed/);
      expect((await configure(['--region', 'eu-west-1', '--delete', '--apply'])).status).toBe(1);
      expect(changes()).toEqual([]);
    },
  );

  test.each(['ROLLBACK_COMPLETE', 'UPDATE_ROLLBACK_FAILED', 'DELETE_FAILED'])(
    'accepts no change, but can be deleted: %s',
    async (status) => {
      setStack(status);
      expect((await configure(WITH_SECRET)).stderr).toMatch(/^STACK_STATE: .*accepts no change/);
      expect(changes()).toEqual([]);
      expect((await configure(['--region', 'eu-west-1', '--delete', '--apply'])).status).toBe(0);
    },
  );

  test('counts as new if CloudFormation made it only for a change set', async () => {
    setStack('REVIEW_IN_PROGRESS', []);
    expect((await configure(WITH_SECRET)).stdout).toMatch(/is new/);
    expect(changes()[0]).toMatch(/--change-set-type CREATE /);
    expect((await configure(['--region', 'eu-west-1', '--delete', '--apply'])).stdout).toMatch(/is deleted/);
  });
});

describe('failures of AWS', () => {
  test.each(['describe-stacks', 'create-change-set', 'head-object', 'describe-instance-types'])(
    "are reported in AWS's words: %s",
    async (action) => {
      parent.set('denied', action);
      const { status, stderr } = await configure([...WITH_SECRET, '--apply']);
      expect(status).toBe(1);
      expect(stderr).toMatch(
        new RegExp(`^PROGRAM_FAILED: aws \\S+ ${action} failed: .*UnauthorizedOperation`),
      );
      expect(changes().join('\n')).not.toMatch(/execute-change-set/);
    },
  );

  test('are reported if the change set can not be made', async () => {
    parent.set('changes', JSON.stringify({ Status: 'FAILED', StatusReason: 'Template error: x' }));
    const { status, stderr } = await configure([...WITH_SECRET, '--apply']);
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: 'STACK_FAILED: the change set failed: Template error: x\n',
    });
    expect(changes().at(-1)).toMatch(/delete-change-set/);
  });

  test('delete the change set if the enclaves can not be listed', async () => {
    const args = await createStack();
    parent.set('denied', 'describe-stack-resources');
    expect((await configure([...args, '--apply'])).status).toBe(1);
    expect(changes().at(-1)).toMatch(/delete-change-set/);
  });

  test.each(['[]', 'no JSON', '{"Stacks":[{}]}'])('include output of another form: %s', async (text) => {
    parent.set('stack', text);
    expect((await configure(WITH_SECRET)).stderr).toMatch(
      /^PROGRAM_FAILED: aws cloudformation describe-stacks printed unexpected JSON\n$/,
    );
  });

  test('include an AWS CLI that is missing', async () => {
    parent = new Parent(['aws']);
    expect((await configure(WITH_SECRET)).stderr).toMatch(/^PROGRAM_FAILED: aws is not installed/);
  });
});

describe('the release', () => {
  test.each([
    ['node-24.1.0.tar.gz', /has no node-VERSION\.tar\.gz/],
    ['program-0.2.0.tar.gz', /has no program-VERSION\.tar\.gz/],
    ['image-1.0.0.tar.gz', /has no image-VERSION\.tar\.gz/],
  ])('must have %s', async (name, message) => {
    rmSync(join(release, name));
    const { status, stderr } = await configure(WITH_SECRET);
    expect(status).toBe(2);
    expect(stderr).toMatch(message);
    expect(parent.calls('aws')).toEqual([]);
  });

  test('must not have two files of a kind', async () => {
    addFile('node-24.2.0.tar.gz', 'node');
    expect((await configure(WITH_SECRET)).stderr).toMatch(
      /^USAGE: .* several files of a kind, node-24\.1\.0\.tar\.gz, node-24\.2\.0\.tar\.gz/,
    );
  });

  test.each([
    [
      'is missing',
      '',
      /^RELEASE_MISSING: s3:\/\/my-releases\/sui-enclave\/node-24\.1\.0\.tar\.gz does not exist: run aws s3 cp /,
    ],
    [
      'has another size',
      '5',
      /^RELEASE_MISSING: .* has 5 bytes, and .* has 4: give the new file another version/,
    ],
  ])('is refused if a file of the bucket %s', async (_, size, message) => {
    parent.set('size of node-24.1.0.tar.gz', size);
    const { status, stderr } = await configure([...WITH_SECRET, '--apply']);
    expect(status).toBe(1);
    expect(stderr).toMatch(message);
    expect(changes()).toEqual([]);
  });

  test('must be an archive with image, registers and relay', async () => {
    for (const members of [['nitro.eif', 'relay'], ['.']]) {
      pack(join(parent.dir, 'out'), '1.0.0', members);
      expect((await configure(WITH_SECRET)).stderr).toMatch(
        /^USAGE: .*image-1\.0\.0\.tar\.gz must be a tar archive, .*: tar -C out -czf /,
      );
    }
    addFile('image-1.0.0.tar.gz', 'no archive');
    expect((await configure(WITH_SECRET)).stderr).toMatch(/^USAGE: .* must be a tar archive/);
  });

  test('must have the registers of its image', async () => {
    const out = join(parent.dir, 'out');
    const otherRegister = '1'.repeat(96);
    writeFileSync(
      join(out, 'nitro.pcrs'),
      formatPcrs({ pcr0: otherRegister, pcr1: otherRegister, pcr2: otherRegister }),
    );
    pack(out, '1.0.0', ['nitro.eif', 'nitro.pcrs', 'relay']);
    expect((await configure(WITH_SECRET)).stderr).toMatch(/^USAGE: .* does not have the registers of/);
    expect(parent.calls('aws')).toEqual([]);
  });
});

describe('the settings', () => {
  test.each<[string, string | undefined, string | undefined, readonly string[], RegExp]>([
    ['secrets without --secret', undefined, undefined, ARGS, /--secret is required: .* API_KEY/],
    ['--secret without secrets', 'endpoints: []\nsecrets: []\n', undefined, WITH_SECRET, /names no secrets/],
    [
      '--secret with provisioners',
      PROVISIONED,
      undefined,
      WITH_SECRET,
      /from the provisioners of its app\.yaml only/,
    ],
    [
      'a provisioner that the image does not name',
      undefined,
      undefined,
      [...WITH_SECRET, ...PROVISIONER],
      /names no provisioners/,
    ],
    [
      'an incomplete provisioner',
      PROVISIONED,
      undefined,
      [...ARGS, ...PROVISIONER.slice(0, 4)],
      /a provisioner needs --provisioner-key/,
    ],
    [
      'an incomplete keeper',
      undefined,
      undefined,
      [...WITH_SECRET, ...KEEPER.slice(0, 2)],
      /a keeper needs --keeper-secret/,
    ],
    [
      'a keeper without its file',
      undefined,
      undefined,
      [...WITH_SECRET, ...KEEPER],
      /keeper-VERSION\.yaml in the folder/,
    ],
    [
      'a proxy without --address',
      undefined,
      'TRUSTED_PROXIES=1\n',
      WITH_SECRET,
      /pass --address 127\.0\.0\.1 for a proxy on/,
    ],
    [
      'a proxy that everybody can bypass',
      ...([undefined, 'TRUSTED_PROXIES=1\n'] as const),
      [...WITH_SECRET.map((arg) => (arg === '203.0.113.0/24' ? '0.0.0.0/0' : arg)), '--address', '0.0.0.0'],
      /only the proxy may reach the port/,
    ],
    [
      'peers of a service that only its own host reaches',
      ...([undefined, 'TRUSTED_PROXIES=1\n'] as const),
      [...WITH_SECRET, '--peers', '--address', '127.0.0.1'],
      /--peers: no other host reaches 127\.0\.0\.1/,
    ],
    [
      '--kms-key without a secret',
      'endpoints: []\nsecrets: []\n',
      undefined,
      [...ARGS, '--kms-key', KMS_KEY],
      /--kms-key: no option names a secret/,
    ],
    [
      'too little memory',
      undefined,
      undefined,
      [...WITH_SECRET, '--memory', '100'],
      /--memory must be at least/,
    ],
  ])('refuse %s', async (_, manifest, serverEnv, args, message) => {
    addImage('1.0.0', manifest, serverEnv);
    const { status, stderr } = await configure(args);
    expect(stderr).toMatch(message);
    expect(status).toBe(2);
    expect(parent.calls('aws')).toEqual([]);
  });

  test('refuse the settings of a keeper that has no address', async () => {
    addFile('keeper-1.yaml', 'network: testnet\n');
    expect((await configure(WITH_SECRET)).stderr).toMatch(/^USAGE: keeper-1\.yaml: pass --keeper-secret and/);
  });

  test('refuse a secret of another region', async () => {
    const args = [...ARGS, '--secret', SECRET.replace('eu-west-1', 'us-east-1')];
    expect((await configure(args)).stderr).toMatch(
      /^USAGE: --secret is in the region us-east-1; the stack is in eu-/,
    );
  });

  test('refuse a key of another region', async () => {
    const args = [...WITH_SECRET, '--kms-key', KMS_KEY.replace('eu-west-1', 'us-east-1')];
    expect((await configure(args)).stderr).toMatch(/^USAGE: --kms-key is in the region us-east-1/);
  });

  test.each([
    ['NitroEnclavesSupport', 'unsupported', /must be an x86-64 type with Nitro Enclaves/],
    ['DefaultVCpus', 2, /has 2 CPUs, of which an enclave can have 0/],
    ['SizeInMiB', 512, /has 512 MiB of memory, and the enclave takes 512/],
  ])('refuse a type whose %s is %s according to AWS', async (name, value, message) => {
    const facts = {
      NitroEnclavesSupport: 'supported',
      ProcessorInfo: { SupportedArchitectures: ['x86_64'] },
      VCpuInfo: { DefaultVCpus: 4 },
      MemoryInfo: { SizeInMiB: 16384 },
    };
    const text = JSON.stringify({ InstanceTypes: [facts] });
    parent.set('instance type', text.replace(new RegExp(`("${name}":)[^,}]+`), `$1${JSON.stringify(value)}`));
    const { status, stderr } = await configure(WITH_SECRET);
    expect(stderr).toMatch(message);
    expect(status).toBe(2);
    expect(changes()).toEqual([]);
  });

  test.each<[readonly string[], RegExp]>([
    [[], /^USAGE: --region is required\. See sui-enclave configure_enclave --help\n$/],
    [['--region', 'eu-west-1'], /--bucket is required/],
    [ARGS.slice(0, 4), /--vpc is required/],
    [ARGS.slice(0, 6), /--subnets is required/],
    [['--region', 'eu-west-1; rm -rf /'], /--region must be a region/],
    [[...ARGS, '--cidr', 'all'], /--cidr/],
    [[...ARGS, '--name', 'A B'], /--name must be a name in lower case/],
    [[...ARGS, '--name=-x'], /--name/],
    [[...ARGS, '--bucket', 'a b'], /--bucket/],
    [[...ARGS, '--prefix', 'a'], /--prefix must be names of folders/],
    [[...ARGS, '--prefix', '../'], /--prefix/],
    [['--region', 'eu-west-1', '--subnets', 'subnet-0a1b2c3d,subnet-0a1b2c3d'], /names a subnet twice/],
    [['--region', 'eu-west-1', '--subnets', 'subnet-1'], /--subnets must be 1 to 3 subnets/],
    [['--region', 'eu-west-1', '--cidr', '203.0.113.400/24'], /--cidr must be IPv4/],
    [['--region', 'eu-west-1', '--cidr', '203.0.113.4/33'], /--cidr must be IPv4/],
    [[...ARGS, '--secret', 'hunter2'], /--secret must be the ARN/],
    [[...ARGS, '--kms-key', 'alias/secrets'], /--kms-key must be the ARN of a key/],
    [[...ARGS, '--kms-key', KMS_KEY.replace('key/', 'alias/')], /--kms-key must be the ARN/],
    [[...ARGS, '--https', 'everybody'], /--https must be IPv4/],
    [[...ARGS, '--enclaves', 'http://10.0.0.5/x'], /--enclaves/],
    [[...ARGS, '--log-days', '2'], /--log-days must be one of 1, 3/],
    [[...ARGS, '--release', '/nowhere'], /^USAGE: \/nowhere can't be read \(ENOENT\)/],
    ...['m7g.xlarge', 't3.xlarge', 'm5.metal', 'm5.large', 'big', '-m5.xlarge'].map(
      (type): [string[], RegExp] => [[...ARGS, `--instance-type=${type}`], /--instance-type must be/],
    ),
    [[...ARGS, 'more'], /^USAGE: unexpected argument: more\. See/],
  ])('refuse the command line %#', async (args, message) => {
    const { status, stderr } = await parent.run('configure_enclave.ts', args);
    expect(stderr).toMatch(message);
    expect(status).toBe(2);
    expect(parent.calls('aws')).toEqual([]);
  });
});
