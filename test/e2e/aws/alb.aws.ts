/**
 * The load balancer of deploy/aws, checked by cfn-lint, and applied to a model of AWS by the commands of
 * deploy/https/README.md. The model ignores attributes and web ACLs: these are read from the template.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { ALB, SWITCH } from '../../https_page.ts';
import { Account, REGION, ROOT, runPython } from './setup.ts';

const TEMPLATE = join(ROOT, 'deploy/aws/alb.yaml');
/** Resources of the template, with names in place of references. */
const { Resources: RESOURCES, Parameters: PARAMETERS } = parse(readFileSync(TEMPLATE, 'utf8'), {
  logLevel: 'silent',
});

/** Makes what the commands of the page name, in one process. Prints the names in the model by those. */
const SETUP = `
import boto3, json
ec2 = boto3.client('ec2')
subnets = ec2.describe_subnets()['Subnets']
vpc = subnets[0]['VpcId']
image = ec2.describe_images()['Images'][0]['ImageId']
hosts = ec2.run_instances(ImageId=image, MinCount=2, MaxCount=2)['Instances']
boto3.client('autoscaling').create_auto_scaling_group(
    AutoScalingGroupName='hosts', InstanceId=hosts[0]['InstanceId'], MinSize=1, MaxSize=1,
    VPCZoneIdentifier=subnets[0]['SubnetId'])
print(json.dumps({
    'vpc-1': vpc,
    'sg-1': ec2.create_security_group(GroupName='hosts', Description='hosts', VpcId=vpc)['GroupId'],
    'group-1': 'hosts',
    'arn:aws:acm:…': boto3.client('acm').request_certificate(DomainName='enclaves.example')['CertificateArn'],
    'subnet-1': subnets[0]['SubnetId'],
    'subnet-2': subnets[1]['SubnetId'],
    'Id=i-1': 'Id=' + hosts[0]['InstanceId'],
    'Id=i-2': 'Id=' + hosts[1]['InstanceId'],
}))
`;

let account: Account;
/** Names in the model, by those of the page. */
let names: ReadonlyMap<string, string>;
let targetGroup: string;

/** Runs commands of the page with names of the model. */
function runCommands(commands: string): void {
  const text = [...names].reduce((line, [name, value]) => line.replaceAll(name, value), commands);
  const { status, stderr } = spawnSync('sh', ['-euc', text], {
    encoding: 'utf8',
    cwd: ROOT,
    env: { ...account.env, AWS_DEFAULT_REGION: REGION, TARGET_GROUP: targetGroup },
  });
  if (status !== 0) throw new Error(`${text}: ${stderr}`);
}

const listTargets = (): string[] =>
  account
    .aws('elbv2', 'describe-target-health', '--target-group-arn', targetGroup)
    .TargetHealthDescriptions.map(({ Target: { Id: id } }: { Target: { Id: string } }) => id);

beforeAll(async () => {
  account = await Account.start();
  const env = { ...account.env, AWS_DEFAULT_REGION: REGION };
  names = new Map(Object.entries(JSON.parse(runPython('python', ['-c', SETUP], env))));
  targetGroup = '';
  runCommands(ALB);
  targetGroup = account.resources('alb')['TargetGroup'] ?? '';
});
afterAll(() => account.stop());

test('cfn-lint has nothing to say about the template', () => {
  expect(runPython('cfn-lint', ['--regions', REGION, '--', TEMPLATE])).toBe('');
});

test('serves HTTPS with the certificate, and redirects HTTP', () => {
  const { LoadBalancer: balancer = '' } = account.resources('alb');
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
        ...{ Port: 443, Protocol: 'HTTPS', SslPolicy: 'ELBSecurityPolicy-TLS13-1-2-Res-2021-06' },
        Certificates: [expect.objectContaining({ CertificateArn: names.get('arn:aws:acm:…') })],
        DefaultActions: [expect.objectContaining({ Type: 'forward', TargetGroupArn: targetGroup })],
      }),
      expect.objectContaining({
        ...{ Port: 80, Protocol: 'HTTP' },
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
  const ids = [account.resources('alb')['SecurityGroup'] ?? '', names.get('sg-1') ?? ''];
  const { SecurityGroups: rows } = account.aws('ec2', 'describe-security-groups', '--group-ids', ...ids);
  const ingress = (id = '') => rows.find((row: { GroupId: string }) => row.GroupId === id).IpPermissions;
  expect(ingress(ids[0]).map(({ FromPort: port }: { FromPort: number }) => port)).toEqual([443, 80]);
  expect(ingress(ids[1])).toMatchObject([
    { FromPort: 3000, ToPort: 3000, IpRanges: [], UserIdGroupPairs: [{ GroupId: ids[0] }] },
  ]);
  // The model does not apply rules for outgoing connections.
  expect(RESOURCES.SecurityGroup.Properties.SecurityGroupEgress).toEqual([
    {
      ...{ IpProtocol: 'tcp', FromPort: 'TargetPort', ToPort: 'TargetPort' },
      DestinationSecurityGroupId: 'TargetSecurityGroup',
    },
  ]);
});

test('asks hosts for /readyz, and takes those of a group, and those that a rollout registers', () => {
  const args = ['elbv2', 'describe-target-groups', '--target-group-arns', targetGroup];
  expect(account.aws(...args).TargetGroups).toMatchObject([
    { Protocol: 'HTTP', Port: 3000, HealthCheckPath: '/readyz', Matcher: { HttpCode: '200' } },
  ]);
  const { AutoScalingGroups: groups } = account.aws('autoscaling', 'describe-auto-scaling-groups');
  expect(groups[0].TargetGroupARNs).toEqual([targetGroup]);
  const [first = '', second = ''] = ['Id=i-1', 'Id=i-2'].map((name) => names.get(name)?.replace('Id=', ''));
  expect(listTargets()).toEqual(expect.arrayContaining([first, groups[0].Instances[0].InstanceId]));
  runCommands(SWITCH);
  const targets = listTargets();
  expect(targets).toContain(second);
  expect(targets).not.toContain(first);
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
