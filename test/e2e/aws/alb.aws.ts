/**
 * The load balancer of deploy/aws, checked by cfn-lint, and applied by the commands of the pages to a model
 * of AWS with two stacks of hosts. The model ignores attributes and web ACLs: these are read from the
 * template.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { SWITCH } from '../../https_page.ts';
import { BALANCER, BALANCER_END, CERTIFICATE, FIND_RESOURCES, FIRST_LEAVES, SECOND_STACK } from './page.ts';
import { Account, REGION, ROOT, runPython, TEMPLATE as STACK_TEMPLATE } from './setup.ts';

const STACK = 'sui-enclave-alb';

const TEMPLATE = join(ROOT, 'deploy/aws/alb.yaml');
/** Resources of the template, with names in place of references. */
const { Resources: RESOURCES, Parameters: PARAMETERS } = parse(readFileSync(TEMPLATE, 'utf8'), {
  logLevel: 'silent',
});

/** Makes the stacks before and after a rollout, in one process, and prints what the commands name. */
const SETUP = `
import boto3, json, pathlib
client = boto3.client
subnets = client('ec2').describe_subnets()['Subnets'][:2]
ids = [subnet['SubnetId'] for subnet in subnets]
values = {'VpcId': subnets[0]['VpcId'], 'Subnet1': ids[0], 'Subnet2': ids[1], 'Bucket': 'releases'}
for kind in ['Program', 'Node', 'Image']:
    values |= {kind + 'Version': '1', kind + 'Sha256': 64 * 'a'}
values |= {'Pcr' + number: 96 * number for number in '012'}
for name in ['sui-enclave', 'sui-enclave-2']:
    client('cloudformation').create_stack(
        StackName=name, TemplateBody=pathlib.Path('${STACK_TEMPLATE}').read_text(), Capabilities=['CAPABILITY_IAM'],
        Parameters=[{'ParameterKey': key, 'ParameterValue': value} for key, value in values.items()])
groups = client('autoscaling').describe_auto_scaling_groups()['AutoScalingGroups']
listed = {group['AutoScalingGroupName']: group['Instances'][0]['InstanceId'] for group in groups}
print(json.dumps({'VPC': values['VpcId'], 'SUBNETS': ','.join(ids), 'hosts': listed}))
`;

let account: Account;
/** Variables of the shell that the page has set before. */
let variables: Record<string, string>;
/** Instances of the enclaves by their group. */
let hosts: Readonly<Record<string, string>>;
let targetGroup: string;
/** Standard output of the page's commands. */
let printed: string;

/** Runs commands of the pages. @returns what they print on standard output */
function runCommands(commands: string): string {
  const { status, stdout, stderr } = spawnSync('sh', ['-eu'], {
    input: `${FIND_RESOURCES}\n${commands}`,
    encoding: 'utf8',
    cwd: ROOT,
    env: { ...account.env, AWS_DEFAULT_REGION: REGION, DEPLOY: 'deploy', ...variables },
  });
  if (status !== 0) throw new Error(`${commands}: ${stderr}`);
  return stdout;
}

/** Runs an update of the page. The model can't keep a parameter that is a list. */
const update = (commands: string) =>
  runCommands(commands.replace('--parameter-overrides', '--parameter-overrides "Subnets=$SUBNETS"'));

/** Returns the security group of a stack's enclaves. */
const hostGroup = (stack: string) => account.resources(stack)['EnclaveSecurityGroup'] ?? '';
/** Returns the instances of a stack's enclaves. */
const hostsOf = (stack: string) =>
  ['EnclaveGroup1', 'EnclaveGroup2'].map((name) => hosts[account.resources(stack)[name] ?? ''] ?? '');

/** Returns the ports of a security group with those who may reach them. */
function admissions(group: string) {
  const { SecurityGroups: rows } = account.aws('ec2', 'describe-security-groups', '--group-ids', group);
  return rows[0].IpPermissions.map(
    ({ FromPort: from, ToPort: to, IpRanges: ranges, UserIdGroupPairs: pairs }: Record<string, unknown>) => ({
      ports: [from, to],
      from: [...(ranges as { CidrIp: string }[]), ...(pairs as { GroupId: string }[])].map((row) =>
        'CidrIp' in row ? row.CidrIp : row.GroupId,
      ),
    }),
  );
}

const listTargets = (): string[] =>
  account
    .aws('elbv2', 'describe-target-health', '--target-group-arn', targetGroup)
    .TargetHealthDescriptions.map(({ Target: { Id: id } }: { Target: { Id: string } }) => id);

beforeAll(async () => {
  account = await Account.start();
  const env = { ...account.env, AWS_DEFAULT_REGION: REGION };
  ({ hosts, ...variables } = JSON.parse(runPython('python', ['-c', SETUP], env)));
  printed = runCommands(`${CERTIFICATE}${BALANCER}echo "$CERTIFICATE"`);
  targetGroup = account.resources(STACK)['TargetGroup'] ?? '';
  variables = { ...variables, TARGET_GROUP: targetGroup };
});
afterAll(() => account.stop());

test('cfn-lint has nothing to say about the template', () => {
  expect(runPython('cfn-lint', ['--regions', REGION, '--', TEMPLATE])).toBe('');
});

test('serves HTTPS with the certificate, and redirects HTTP', () => {
  const { LoadBalancer: balancer = '' } = account.resources(STACK);
  const certificate = printed.trim().split('\n').at(-1);
  const { Listeners: listeners } = account.aws(
    'elbv2',
    'describe-listeners',
    '--load-balancer-arn',
    balancer,
  );
  expect(listeners).toHaveLength(2);
  expect(listeners).toEqual(
    expect.arrayContaining([
      expect.objectContaining({
        Port: 443,
        Protocol: 'HTTPS',
        SslPolicy: 'ELBSecurityPolicy-TLS13-1-2-Res-2021-06',
        Certificates: [expect.objectContaining({ CertificateArn: certificate })],
        DefaultActions: [expect.objectContaining({ Type: 'forward', TargetGroupArn: targetGroup })],
      }),
      expect.objectContaining({
        Port: 80,
        Protocol: 'HTTP',
        DefaultActions: [
          expect.objectContaining({
            Type: 'redirect',
            RedirectConfig: expect.objectContaining({
              Protocol: 'HTTPS',
              Port: '443',
              StatusCode: 'HTTP_301',
            }),
          }),
        ],
      }),
    ]),
  );
});

test('admits callers to its own ports, and itself alone to that of the hosts', () => {
  const { SecurityGroup: balancer = '' } = account.resources(STACK);
  expect(admissions(balancer)).toEqual([
    { ports: [443, 443], from: ['0.0.0.0/0'] },
    { ports: [80, 80], from: ['0.0.0.0/0'] },
  ]);
  expect(admissions(hostGroup('sui-enclave'))).toEqual([{ ports: [3000, 3000], from: [balancer] }]);
  expect(admissions(hostGroup('sui-enclave-2'))).toEqual([]);
  // The model does not apply rules for outgoing connections.
  expect(RESOURCES.SecurityGroup.Properties.SecurityGroupEgress).toEqual([
    { IpProtocol: '-1', CidrIp: '127.0.0.1/32' },
  ]);
  for (const number of ['', '2']) {
    expect(RESOURCES[`TargetEgress${number}`]).toMatchObject({
      Condition: `HasTarget${number}`,
      Properties: {
        GroupId: 'SecurityGroup.GroupId',
        IpProtocol: 'tcp',
        FromPort: 'TargetPort',
        ToPort: 'TargetPort',
        DestinationSecurityGroupId: `TargetSecurityGroup${number}`,
      },
    });
  }
});

test('asks hosts for /readyz, and takes those of the attached groups', () => {
  const args = ['elbv2', 'describe-target-groups', '--target-group-arns', targetGroup];
  expect(account.aws(...args).TargetGroups).toMatchObject([
    { Protocol: 'HTTP', Port: 3000, HealthCheckPath: '/readyz', Matcher: { HttpCode: '200' } },
  ]);
  const { AutoScalingGroups: groups } = account.aws('autoscaling', 'describe-auto-scaling-groups');
  const attached = groups
    .filter(({ TargetGroupARNs: arns }: { TargetGroupARNs?: string[] }) => arns?.includes(targetGroup))
    .map(({ AutoScalingGroupName: name }: { AutoScalingGroupName: string }) => name);
  const { EnclaveGroup1: first = '', EnclaveGroup2: second = '' } = account.resources('sui-enclave');
  expect(attached.sort()).toEqual([first, second].sort());
  expect(listTargets().sort()).toEqual(hostsOf('sui-enclave').sort());
});

test('appends the address of the caller to X-Forwarded-For, without a port', () => {
  const attributes = RESOURCES.LoadBalancer.Properties.LoadBalancerAttributes;
  for (const [Key, Value] of [
    ['routing.http.xff_header_processing.mode', 'append'],
    ['routing.http.xff_client_port.enabled', 'false'],
  ]) {
    expect(attributes).toContainEqual({ Key, Value });
  }
});

test('ends idle connections before HAProxy does, and before the server does, which waits as long', () => {
  const keptSeconds = /timeout http-keep-alive (\d+)s/.exec(
    readFileSync(join(ROOT, 'deploy/https/haproxy.cfg'), 'utf8'),
  )?.[1];
  const keptMs = /KEEP_ALIVE_TIMEOUT_MS = ([\d_]+);/.exec(
    readFileSync(join(ROOT, 'src/service/http/http_server.ts'), 'utf8'),
  )?.[1];
  expect(keptMs?.replace('_', '')).toBe(`${keptSeconds}000`);
  const { Value: seconds } = RESOURCES.LoadBalancer.Properties.LoadBalancerAttributes.find(
    ({ Key: key }: { Key: string }) => key === 'idle_timeout.timeout_seconds',
  );
  expect(Number(seconds)).toBeLessThan(Number(keptSeconds));
});

test('limits each address by the address of its connection, at all of the listeners', () => {
  const { WebAcl: acl, WebAclAssociation: association } = RESOURCES;
  const [rule] = acl.Properties.Rules;
  expect(acl.Properties.Rules).toHaveLength(1);
  expect(rule.Statement).toEqual({
    RateBasedStatement: { Limit: 'RequestsPerMinute', EvaluationWindowSec: 60, AggregateKeyType: 'IP' },
  });
  const { ResponseCode: status, CustomResponseBodyKey: body } = rule.Action.Block.CustomResponse;
  const { Content: content } = acl.Properties.CustomResponseBodies[body];
  expect([status, JSON.parse(content).code]).toEqual([429, 'ADDRESS_RATE_LIMITED']);
  // As many as HAProxy's ADDRESS_RATE, in 10 s.
  expect(PARAMETERS.RequestsPerMinute.Default).toBe(6 * 300);
  expect(association.Properties).toEqual({ ResourceArn: 'LoadBalancer', WebACLArn: 'WebAcl.Arn' });
});

/** The last tests, since they change the stack. */
test('reaches the hosts of a second stack before a rollout, and those alone after it', () => {
  // The model replaces the load balancer's group, and leaves the rules that name it.
  const admitted = [{ ports: [3000, 3000], from: [expect.stringMatching(/^sg-/)] }];
  update(SECOND_STACK);
  expect(['sui-enclave', 'sui-enclave-2'].map((stack) => admissions(hostGroup(stack)))).toEqual([
    admitted,
    admitted,
  ]);
  const [before = '', after = ''] = ['sui-enclave', 'sui-enclave-2'].map((stack) => hostsOf(stack)[0]);
  runCommands(SWITCH.replaceAll('i-1', before).replaceAll('i-2', after));
  const targets = listTargets();
  expect(targets).toContain(after);
  expect(targets).not.toContain(before);
  update(FIRST_LEAVES);
  expect(listTargets()).toEqual(expect.arrayContaining(hostsOf('sui-enclave-2')));
  const args = [
    'cloudformation',
    'describe-stacks',
    '--stack-name',
    STACK,
    '--query',
    'Stacks[0].Parameters',
  ];
  expect(account.aws(...args)).toEqual(
    expect.arrayContaining([
      { ParameterKey: 'TargetSecurityGroup', ParameterValue: '' },
      { ParameterKey: 'TargetSecurityGroup2', ParameterValue: hostGroup('sui-enclave-2') },
    ]),
  );
});

test('ends with its stack', () => {
  runCommands(BALANCER_END);
  expect(account.aws('elbv2', 'describe-load-balancers').LoadBalancers).toEqual([]);
});
