/**
 * The AWS resources of an instance for enclaves: each is looked up first, and created only if it is missing.
 */

export interface AwsOptions {
  readonly name: string;
  readonly region: string;
  readonly keyName: string;
  readonly instanceType: string;
  /** Addresses that may log in and reach the server, in CIDR notation. */
  readonly adminCidr: string;
  /** Addresses that may reach the server. */
  readonly publicCidr: string | undefined;
  /** A file with the secrets as one JSON object. Without a file, no secret is created. */
  readonly secretsFile: string | undefined;
  /** A script that the instance runs at its first boot. */
  readonly userData: string;
}

/** The result of an earlier step. */
export interface Variable {
  readonly variable: string;
}

/** A string, a variable, or a list of both, which is joined. A `$NAME` in a string is literal. */
export type Argument = string | Variable | readonly (string | Variable)[];

export interface Step {
  readonly what: string;
  /** Variable that gets the output of `find`, or else the output of the last command of `make`. */
  readonly sets?: string;
  /** Command that prints the resource; it fails, or prints nothing or `None`, if the resource is missing. */
  readonly find: readonly Argument[];
  readonly make: readonly (readonly Argument[])[];
  /** A file that the last command of `make` reads from its standard input. */
  readonly input?: string;
}

/**
 * Argument that replaces `file://<path>`, since the AWS CLI expands a `$NAME` in the path, however the path
 * was quoted for the shell (awscli, paramfile.py).
 */
const FROM_INPUT = 'file:///dev/stdin';
const AMI_PARAMETER = '/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64';
const DISK_GIB = 30;
const ASSUME_ROLE = {
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { Service: 'ec2.amazonaws.com' }, Action: 'sts:AssumeRole' }],
};
const READ_SECRET = [
  '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"secretsmanager:GetSecretValue","Resource":"',
  { variable: 'SECRET_ARN' },
  '"}]}',
];

export function planInstance(options: AwsOptions): Step[] {
  const { name, region, keyName, instanceType, adminCidr, publicCidr, secretsFile, userData } = options;
  const text = (query: string) => ['--query', query, '--output', 'text'];
  const aws = (...args: Argument[]): Argument[] => ['aws', '--region', region, ...args];
  const filter = (key: string, value: string | Variable) => [`Name=${key},Values=`, value];
  const [securityGroup, ami, instance] = ['SECURITY_GROUP', 'AMI', 'INSTANCE'].map((variable) => ({
    variable,
  })) as [Variable, Variable, Variable];
  const ingressRule = (port: number, cidr: string): Step => ({
    what: `the ingress rule of port ${port} from ${cidr}`,
    find: aws(
      ...['ec2', 'describe-security-group-rules', '--filters', filter('group-id', securityGroup)],
      ...text(`SecurityGroupRules[?FromPort==\`${port}\` && CidrIpv4=='${cidr}'].SecurityGroupRuleId`),
    ),
    make: [
      aws(
        ...['ec2', 'authorize-security-group-ingress', '--group-id', securityGroup],
        ...['--protocol', 'tcp', '--port', String(port), '--cidr', cidr],
      ),
    ],
  });
  const address = aws(
    ...['ec2', 'describe-instances', '--instance-ids', instance],
    ...text('Reservations[0].Instances[0].PublicIpAddress'),
  );
  const secret: Step[] = secretsFile
    ? [
        {
          what: 'the secret',
          sets: 'SECRET_ARN',
          find: aws('secretsmanager', 'describe-secret', '--secret-id', name, ...text('ARN')),
          make: [
            aws(
              'secretsmanager',
              'create-secret',
              '--name',
              name,
              '--secret-string',
              FROM_INPUT,
              ...text('ARN'),
            ),
          ],
          input: secretsFile,
        },
        {
          what: "the role's right to read the secret",
          find: aws(
            'iam',
            'get-role-policy',
            '--role-name',
            name,
            '--policy-name',
            'read-secret',
            ...text('PolicyName'),
          ),
          make: [
            aws(
              'iam',
              'put-role-policy',
              '--role-name',
              name,
              '--policy-name',
              'read-secret',
              '--policy-document',
              READ_SECRET,
            ),
          ],
        },
      ]
    : [];
  return [
    {
      what: `the instance type ${instanceType}, on x86-64 and with Nitro Enclaves`,
      find: aws(
        ...['ec2', 'describe-instance-types', '--instance-types', instanceType, '--filters'],
        ...['Name=nitro-enclaves-support,Values=supported'],
        ...['Name=processor-info.supported-architecture,Values=x86_64'],
        ...text('InstanceTypes[0].InstanceType'),
      ),
      make: [],
    },
    {
      what: 'the security group',
      sets: 'SECURITY_GROUP',
      find: aws(
        'ec2',
        'describe-security-groups',
        '--filters',
        filter('group-name', name),
        ...text('SecurityGroups[0].GroupId'),
      ),
      make: [
        aws(
          'ec2',
          'create-security-group',
          '--group-name',
          name,
          '--description',
          'sui-enclave',
          ...text('GroupId'),
        ),
      ],
    },
    ingressRule(22, adminCidr),
    ingressRule(3000, adminCidr),
    ...(publicCidr === undefined || publicCidr === adminCidr ? [] : [ingressRule(3000, publicCidr)]),
    {
      what: 'the role',
      find: aws('iam', 'get-role', '--role-name', name, ...text('Role.RoleName')),
      make: [
        aws(
          'iam',
          'create-role',
          '--role-name',
          name,
          '--assume-role-policy-document',
          JSON.stringify(ASSUME_ROLE),
        ),
      ],
    },
    ...secret,
    {
      what: 'the instance profile',
      find: aws(
        ...['iam', 'get-instance-profile', '--instance-profile-name', name],
        ...text('InstanceProfile.InstanceProfileName'),
      ),
      make: [aws('iam', 'create-instance-profile', '--instance-profile-name', name)],
    },
    {
      what: 'its role',
      find: aws(
        ...['iam', 'get-instance-profile', '--instance-profile-name', name],
        ...text('InstanceProfile.Roles[0].RoleName'),
      ),
      make: [
        aws('iam', 'add-role-to-instance-profile', '--instance-profile-name', name, '--role-name', name),
      ],
    },
    {
      what: 'the system image of Amazon Linux',
      sets: 'AMI',
      find: aws('ssm', 'get-parameter', '--name', AMI_PARAMETER, ...text('Parameter.Value')),
      make: [],
    },
    {
      what: 'the instance',
      sets: 'INSTANCE',
      find: aws(
        'ec2',
        'describe-instances',
        '--filters',
        filter('tag:Name', name),
        filter('instance-state-name', 'pending,running,stopping,stopped'),
        ...text('Reservations[0].Instances[0].InstanceId'),
      ),
      make: [
        aws(
          ...[
            'ec2',
            'run-instances',
            '--image-id',
            ami,
            '--instance-type',
            instanceType,
            '--key-name',
            keyName,
          ],
          ...['--security-group-ids', securityGroup, '--iam-instance-profile', `Name=${name}`],
          ...['--enclave-options', 'Enabled=true', '--metadata-options', 'HttpTokens=required'],
          ...['--user-data', FROM_INPUT],
          // The root disk, with room for a clone, its packages and images.
          ...[
            '--block-device-mappings',
            `DeviceName=/dev/xvda,Ebs={VolumeSize=${DISK_GIB},VolumeType=gp3,Encrypted=true}`,
          ],
          ...['--tag-specifications', `ResourceType=instance,Tags=[{Key=Name,Value=${name}}]`],
          ...text('Instances[0].InstanceId'),
        ),
      ],
      input: userData,
    },
    {
      what: 'its public address',
      sets: 'ADDRESS',
      find: address,
      make: [aws('ec2', 'wait', 'instance-running', '--instance-ids', instance), address],
    },
  ];
}

/**
 * Function of the shell that finds a resource. Only a "not found" error means that a resource is missing: any
 * other failure ends the script.
 */
const LOOK = `errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
look() {
  found=$("$@" 2>"$errors") || case $(cat "$errors") in
    *NoSuchEntity* | *NotFound*) found= ;;
    *) cat "$errors" >&2; exit 1 ;;
  esac
  [ "$found" != None ] || found=
}
`;

/** Returns the plan as a script for a shell. The shell replaces variables. Everything else is quoted. */
export function formatPlan(steps: readonly Step[]): string {
  const blocks = steps.map(({ what: description, sets, find, make, input }) => {
    const made = make.map((command, at) => {
      const isLast = at === make.length - 1;
      const line = isLast && input !== undefined ? `${quote(command)} <${quoteText(input)}` : quote(command);
      return isLast && sets ? `  found=$(${line})` : `  ${line}`;
    });
    if (make.length === 0) made.push(`  echo ${quoteText(`${description} was not found`)} >&2; exit 1`);
    const keep = sets ? `${sets}=$found\n` : '';
    return `# ${description}\nlook ${quote(find)}\nif [ -z "$found" ]; then\n${made.join('\n')}\nfi\n${keep}`;
  });
  return `set -eu\n${LOOK}${blocks.join('')}echo "Log in: ssh ec2-user@$ADDRESS"\n`;
}

function quote(command: readonly Argument[]): string {
  return command.map((argument) => parts(argument).map(quotePart).join('')).join(' ');
}

function quotePart(part: string | Variable): string {
  return typeof part === 'string' ? quoteText(part) : `"$${part.variable}"`;
}

function quoteText(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * Returns the argument with its variables replaced. @param findResult must throw for a variable that has no
 * value yet
 */
export function fillArgument(argument: Argument, findResult: (variable: string) => string): string {
  return parts(argument)
    .map((part) => (typeof part === 'string' ? part : findResult(part.variable)))
    .join('');
}

function parts(argument: Argument): readonly (string | Variable)[] {
  return typeof argument === 'string' || 'variable' in argument ? [argument] : argument;
}
