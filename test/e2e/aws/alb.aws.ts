/**
 * Checks the load balancer of deploy/aws by cfn-lint, and creates it by the pages' commands in a model of AWS
 * with two stacks of hosts. The model ignores attributes and web ACLs, so the tests read these from the
 * template.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { SWITCH } from '../../https_page.ts';
import {
  ADMIT_SECOND_STACK,
  BALANCER,
  BALANCER_END,
  CERTIFICATE,
  DETACH_FIRST_STACK,
  FIND_RESOURCES,
} from './page.ts';
import { Account, REGION, ROOT, runPython, TEMPLATE as STACK_TEMPLATE } from './setup.ts';

const STACK = 'sui-enclave-alb';

const TEMPLATE = join(ROOT, 'deploy/aws/alb.yaml');
/** Resources of the template, with names in place of references. */
const { Resources: RESOURCES, Parameters: PARAMETERS } = parse(readFileSync(TEMPLATE, 'utf8'), {
  logLevel: 'silent',
});

/**
 * Creates the stacks before and after a rollout, in one process, and prints the values that the commands
 * need.
 */
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
/** Shell variables that earlier commands of the page set. */
let variables: Record<string, string>;
/** Instances of the enclaves by their group. */
let hosts: Readonly<Record<string, string>>;
let targetGroup: string;
/** Output of the commands that create the load balancer. */
let output: string;

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

/**
 * Runs a block that updates the stack. The model loses a parameter that is a list, so this passes it again.
 */
const update = (commands: string) =>
  runCommands(commands.replace('--parameter-overrides', '--parameter-overrides "Subnets=$SUBNETS"'));

/** Returns the security group of a stack's enclaves. */
const findHostGroup = (stack: string) => account.resources(stack)['EnclaveSecurityGroup'] ?? '';
/** Returns the instances of a stack's enclaves. */
const listHosts = (stack: string) =>
  ['EnclaveGroup1', 'EnclaveGroup2'].map((name) => hosts[account.resources(stack)[name] ?? ''] ?? '');

/** Returns the open ports of a security group, and who may connect to each. */
function listAdmissions(group: string) {
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
  output = runCommands(`${CERTIFICATE}${BALANCER}echo "$CERTIFICATE"`);
  targetGroup = account.resources(STACK)['TargetGroup'] ?? '';
  variables = { ...variables, TARGET_GROUP: targetGroup };
});
afterAll(() => account.stop());

test('cfn-lint reports nothing about the template', () => {
  expect(runPython('cfn-lint', ['--regions', REGION, '--', TEMPLATE])).toBe('');
});

test('the load balancer serves HTTPS with the certificate, and redirects HTTP', () => {
  const { LoadBalancer: balancer = '' } = account.resources(STACK);
  const certificate = output.trim().split('\n').at(-1);
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

test('callers reach only the ports of the load balancer, and only the load balancer reaches the hosts', () => {
  const { SecurityGroup: balancer = '' } = account.resources(STACK);
  expect(listAdmissions(balancer)).toEqual([
    { ports: [443, 443], from: ['0.0.0.0/0'] },
    { ports: [80, 80], from: ['0.0.0.0/0'] },
  ]);
  expect(listAdmissions(findHostGroup('sui-enclave'))).toEqual([{ ports: [3000, 3000], from: [balancer] }]);
  expect(listAdmissions(findHostGroup('sui-enclave-2'))).toEqual([]);
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

test('the target group checks /readyz, and contains the hosts of the attached groups', () => {
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
  expect(listTargets().sort()).toEqual(listHosts('sui-enclave').sort());
});

test('the load balancer appends the address of the caller to X-Forwarded-For, without a port', () => {
  const attributes = RESOURCES.LoadBalancer.Properties.LoadBalancerAttributes;
  for (const [Key, Value] of [
    ['routing.http.xff_header_processing.mode', 'append'],
    ['routing.http.xff_client_port.enabled', 'false'],
  ]) {
    expect(attributes).toContainEqual({ Key, Value });
  }
});

test('the load balancer ends idle connections sooner than HAProxy and the server, which have the same limit', () => {
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

test('the web ACL limits the requests from each address that connects, at all listeners', () => {
  const { WebAcl: acl, WebAclAssociation: association } = RESOURCES;
  const [rule] = acl.Properties.Rules;
  expect(acl.Properties.Rules).toHaveLength(1);
  expect(rule.Statement).toEqual({
    RateBasedStatement: { Limit: 'RequestsPerMinute', EvaluationWindowSec: 60, AggregateKeyType: 'IP' },
  });
  const { ResponseCode: status, CustomResponseBodyKey: body } = rule.Action.Block.CustomResponse;
  const { Content: content } = acl.Properties.CustomResponseBodies[body];
  expect([status, JSON.parse(content).code]).toEqual([429, 'ADDRESS_RATE_LIMITED']);
  // HAProxy's ADDRESS_RATE is 300 requests in 10 s.
  expect(PARAMETERS.RequestsPerMinute.Default).toBe(6 * 300);
  expect(association.Properties).toEqual({ ResourceArn: 'LoadBalancer', WebACLArn: 'WebAcl.Arn' });
});

// The tests from here on come last, since they change the stack.
test('the load balancer reaches the hosts of both stacks before a rollout, and only the new ones after it', () => {
  // The model replaces the load balancer's group, and leaves the rules that name it.
  const admitted = [{ ports: [3000, 3000], from: [expect.stringMatching(/^sg-/)] }];
  update(ADMIT_SECOND_STACK);
  expect(['sui-enclave', 'sui-enclave-2'].map((stack) => listAdmissions(findHostGroup(stack)))).toEqual([
    admitted,
    admitted,
  ]);
  const [oldHost = '', newHost = ''] = ['sui-enclave', 'sui-enclave-2'].map((stack) => listHosts(stack)[0]);
  runCommands(SWITCH.replaceAll('i-1', oldHost).replaceAll('i-2', newHost));
  const targets = listTargets();
  expect(targets).toContain(newHost);
  expect(targets).not.toContain(oldHost);
  update(DETACH_FIRST_STACK);
  expect(listTargets()).toEqual(expect.arrayContaining(listHosts('sui-enclave-2')));
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
      { ParameterKey: 'TargetSecurityGroup2', ParameterValue: findHostGroup('sui-enclave-2') },
    ]),
  );
});

test('the load balancer is deleted with its stack', () => {
  runCommands(BALANCER_END);
  expect(account.aws('elbv2', 'describe-load-balancers').LoadBalancers).toEqual([]);
});
