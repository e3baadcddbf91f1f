/** The template of deploy/aws, checked by cfn-lint, and applied to a model of AWS by the real AWS CLI. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseBootFile } from '../../../src/cli/parent/host_boot.ts';
import { Account, REGION, runPython, TEMPLATE } from './setup.ts';

const ARN = `arn:aws:secretsmanager:${REGION}:123456789012:secret:x-AbCdEf`;
const KEEPER = { KeeperSecretArn: ARN, KeeperAddress: `0x${'a'.repeat(64)}`, KeeperSha256: 'c'.repeat(64) };
const PROVISIONER = {
  ...{ SecretArn: '', ProvisionerKeyArn: ARN, ProvisionerSecretArn: ARN },
  EnclaveUrls: 'http://10.0.0.5:3000,http://10.0.1.5:3000',
};

let account: Account;
let dir: string;
let parameters: Record<string, string>;
let archives: Record<string, Buffer>;

/** Makes an archive with one file. */
function pack(path: string, content: string): Buffer {
  const folder = mkdtempSync(join(dir, 'pack-'));
  const file = join(folder, path);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, content);
  chmodSync(file, 0o755);
  return spawnSync('tar', ['-cz', '-C', folder, path]).stdout;
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'aws-'));
  account = await Account.start();
  const { Subnets: subnets } = account.aws('ec2', 'describe-subnets');
  archives = {
    'node-24.0.0.tar.gz': pack('bin/node', '#!/bin/sh\necho "$@"; cat "$3"\n'),
    'program-1.0.0.tar.gz': pack('node_modules/sui-enclave-cli/cli/bin.cjs', ''),
    'image-1.0.0.tar.gz': pack('nitro.eif', 'an image'),
  };
  const digest = (name: string) => sha256(archives[name] as Buffer);
  parameters = {
    ...{ VpcId: subnets[0].VpcId, Subnet1: subnets[0].SubnetId, Subnet2: subnets[1].SubnetId },
    ...{ ServiceCidr: '203.0.113.7/32', Bucket: 'releases', SecretArn: ARN },
    ...{ NodeVersion: '24.0.0', NodeSha256: digest('node-24.0.0.tar.gz') },
    ...{ ProgramVersion: '1.0.0', ProgramSha256: digest('program-1.0.0.tar.gz') },
    ...{ ImageVersion: '1.0.0', ImageSha256: digest('image-1.0.0.tar.gz') },
    ...{ Pcr0: '1'.repeat(96), Pcr1: '2'.repeat(96), Pcr2: '3'.repeat(96) },
  };
  account.aws(
    's3api',
    'create-bucket',
    '--bucket',
    'releases',
    '--create-bucket-configuration',
    `LocationConstraint=${REGION}`,
  );
  for (const name of Object.keys(archives)) upload(name, archives[name] as Buffer);
  account.apply('base', 'CREATE', parameters);
});
afterAll(() => {
  account.stop();
  rmSync(dir, { recursive: true });
});

function upload(name: string, content: Buffer): void {
  writeFileSync(join(dir, name), content);
  account.aws(
    's3api',
    'put-object',
    '--bucket',
    'releases',
    '--key',
    `sui-enclave/${name}`,
    '--body',
    join(dir, name),
  );
}

/** Returns the newest data of a launch template. */
function launchData(stack: string, template = 'EnclaveTemplate') {
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
const userData = (stack: string, template?: string) =>
  Buffer.from(launchData(stack, template).UserData, 'base64').toString();
/** Lists the lines of the user data that run something, but those about the file of one role. */
const listSteps = (script: string) =>
  script
    .split('\n')
    .filter((line) => /^[a-z]+ /.test(line) && !/^[0-9a-f]{64} |image-\*|keeper-\*/.test(line));
/** Returns the parameters that the user data hands to host_boot. */
const bootFile = (script: string) =>
  /^cat >boot.json <<'END_OF_PARAMETERS'\n(.*?)^END_OF_PARAMETERS$/ms.exec(script)?.[1] ?? '';
const groups = (stack: string) =>
  account
    .aws('autoscaling', 'describe-auto-scaling-groups')
    .AutoScalingGroups.filter(({ AutoScalingGroupName: name }: Record<string, string>) =>
      name?.startsWith(`${stack}-`),
    );

test('cfn-lint has nothing to say about the template', () => {
  expect(runPython('cfn-lint', ['--regions', REGION, 'us-east-1', '--', TEMPLATE])).toBe('');
});

describe('an enclave', () => {
  test('has enclaves enabled, IMDSv2 within the instance, encrypted disks and no key pair', () => {
    const data = launchData('base');
    expect(data).toMatchObject({
      EnclaveOptions: { Enabled: true },
      MetadataOptions: { HttpTokens: 'required', HttpPutResponseHopLimit: 1 },
      BlockDeviceMappings: [{ Ebs: { Encrypted: true, VolumeType: 'gp3' } }],
    });
    expect(data).not.toHaveProperty('KeyName');
  });

  test('is in a group of its subnet that neither scales nor replaces it', () => {
    const rows = groups('base');
    expect(rows).toHaveLength(2);
    for (const group of rows) {
      expect(group).toMatchObject({
        ...{ MinSize: 1, MaxSize: 1, DesiredCapacity: 1, HealthCheckType: 'EC2' },
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

  test('admits callers at the port of the service alone, and reaches port 443 alone', () => {
    const id = account.resources('base')['EnclaveSecurityGroup'] ?? '';
    const { SecurityGroups: rows } = account.aws('ec2', 'describe-security-groups', '--group-ids', id);
    const { IpPermissions: ingress } = rows[0];
    expect(ingress).toMatchObject([
      { FromPort: 3000, ToPort: 3000, IpRanges: [{ CidrIp: '203.0.113.7/32' }] },
    ]);
    // moto does not apply rules for outgoing connections.
    expect(readFileSync(TEMPLATE, 'utf8')).toMatch(
      /ServiceCidr\}\n {6}SecurityGroupEgress:\n {8}- \{IpProtocol: tcp, FromPort: 443, ToPort: 443, CidrIp: 0.0.0.0\/0\}\n\n/,
    );
  });

  test('has a role with its bucket prefix, its secret, its log group and sessions, and no more', () => {
    const { EnclaveRole: role = '' } = account.resources('base');
    const names = account.aws('iam', 'list-role-policies', '--role-name', role).PolicyNames as string[];
    const documents = names.map((name) => {
      const args = ['iam', 'get-role-policy', '--role-name', role, '--policy-name', name];
      return [name, JSON.stringify(account.aws(...args).PolicyDocument)];
    });
    const actions = documents.flatMap(([, text = '']) =>
      text.match(/\b(s3|ssm|ssmmessages|logs|secretsmanager):[A-Z]\w+/g),
    );
    expect(actions.sort()).toEqual([
      ...['logs:CreateLogStream', 'logs:DescribeLogStreams', 'logs:PutLogEvents'],
      ...['s3:GetObject', 'secretsmanager:GetSecretValue', 'ssm:UpdateInstanceInformation'],
      ...['ssmmessages:CreateControlChannel', 'ssmmessages:CreateDataChannel'],
      ...['ssmmessages:OpenControlChannel', 'ssmmessages:OpenDataChannel'],
    ]);
    const policies = Object.fromEntries(documents);
    expect(policies['release']).toMatch(/arn:aws:s3:::releases\/sui-enclave\/\*/);
    expect(policies['secret']).toMatch(ARN);
    expect(policies['logs']).toMatch(/:log-group:\/sui-enclave\/base/);
    expect(account.aws('iam', 'list-attached-role-policies', '--role-name', role).AttachedPolicies).toEqual(
      [],
    );
  });

  test('sends its events to a log group with a retention', () => {
    const { logGroups } = account.aws(
      'logs',
      'describe-log-groups',
      '--log-group-name-prefix',
      '/sui-enclave/base',
    );
    expect(logGroups).toMatchObject([{ logGroupName: '/sui-enclave/base', retentionInDays: 30 }]);
  });
});

describe('keeper and provisioner', () => {
  test('are absent by default', () => {
    expect(Object.keys(account.resources('base')).filter((name) => /Keeper|Provisioner/.test(name))).toEqual(
      [],
    );
  });

  test('are hosts of their own, whose parameters host_boot accepts', () => {
    account.apply('helped', 'CREATE', { ...parameters, ...KEEPER, ...PROVISIONER });
    for (const [name, role] of [
      ['Enclave', 'enclave'],
      ['Keeper', 'keeper'],
      ['Provisioner', 'provisioner'],
    ] as const) {
      const script = userData('helped', `${name}Template`);
      expect(parseBootFile(bootFile(script)).role).toBe(role);
      expect(listSteps(script)).toEqual(listSteps(userData('base')));
    }
    expect(launchData('helped', 'KeeperTemplate')).not.toHaveProperty('EnclaveOptions');
  });
});

describe('the user data', () => {
  /** Runs it below a folder in place of the root. */
  function runUserData(script: string) {
    const root = mkdtempSync(join(dir, 'root-'));
    const { status, stdout, stderr } = spawnSync('bash', ['-s'], {
      input: script.replaceAll('/opt/', `${root}/opt/`),
      encoding: 'utf8',
      env: { ...account.env, TMPDIR: root },
    });
    return { status, stdout, stderr, isUnpacked: existsSync(join(root, 'opt/sui-enclave/bin/node')) };
  }

  test('fetches the release, checks it, and runs host_boot with the parameters', () => {
    const { status, stdout } = runUserData(userData('base'));
    expect(stdout).toMatch(/image-1.0.0.tar.gz: OK\n.*bin\.cjs host_boot boot\.json\n/s);
    expect(stdout).toMatch('"name": "enclave"');
    expect(status).toBe(0);
  });

  test.each(['node-24.0.0.tar.gz', 'image-1.0.0.tar.gz'])(
    'runs and unpacks nothing if %s has another SHA-256',
    (name) => {
      upload(name, pack('bin/node', '#!/bin/sh\necho EVIL\n'));
      const outcome = runUserData(userData('base'));
      upload(name, archives[name] as Buffer);
      expect(outcome).toMatchObject({ status: 1, isUnpacked: false });
      expect(outcome.stdout).not.toMatch(/EVIL|host_boot/);
    },
  );

  test('contains no secret: it names them by their ARN', () => {
    expect(userData('base')).toMatch(ARN);
    expect(
      Object.keys(JSON.parse(bootFile(userData('base')))).filter((name) => /secret|key/i.test(name)),
    ).toEqual(['secretArn']);
  });
});

/** CloudFormation checks these patterns before it makes anything. moto does not check them. */
describe('the patterns of the parameters', () => {
  const patterns = new Map(
    [...readFileSync(TEMPLATE, 'utf8').matchAll(/^ {2}(\w+):\n {4}Type: String\n((?: {4}.*\n)+)/gm)].map(
      ([, name = '', rows = '']) => [name, /AllowedPattern: '(.*)'/.exec(rows)?.[1]],
    ),
  );

  test('are there for each string', () => {
    expect(patterns.size).toBeGreaterThan(20);
    expect([...patterns].filter(([, pattern]) => pattern === undefined)).toEqual([]);
  });

  test.each(['"', "'", '\\', '\n', '`id`', '$(id)', '\x24{Bucket}', ';', ' ', '\nEND_OF_PARAMETERS\nid\n'])(
    'refuse %j anywhere',
    (hostile) => {
      const values: Record<string, string> = {
        ...parameters,
        ...KEEPER,
        ...PROVISIONER,
        SecretArn: ARN,
        Address: '10.0.0.1',
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
