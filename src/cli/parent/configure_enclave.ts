import { isIPv4 } from 'node:net';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as v from 'valibot';
import {
  type Context,
  command,
  type Environment,
  type Result,
  runAsProcess,
  UsageError,
} from '../command.ts';
import { readRegularFile } from '../read_file.ts';
import { path } from '../values.ts';
import { type Argument, fillArgument, formatPlan, planInstance, type Step } from './aws_plan.ts';
import { ParentError } from './errors.ts';
import { describeRefusal, INSTEAD } from './instance_types.ts';
import { run } from './programs.ts';

const USER_DATA = fileURLToPath(new URL('./user_data.sh', import.meta.url));

const matching = (pattern: RegExp, message: string) => v.pipe(v.string(), v.regex(pattern, message));

/** Type of an EC2 instance, judged by its name. The plan asks AWS about it before it creates anything. */
const instanceType = v.pipe(
  matching(/^[a-z0-9][a-z0-9-]*\.[a-z0-9-]+$/, 'must be a type such as m5.xlarge'),
  v.check(
    (type) => describeRefusal(type) === undefined,
    ({ input }) =>
      `must be an x86-64 type with Nitro Enclaves: ${input} ${describeRefusal(input)}. Choose ${INSTEAD}`,
  ),
);

/** A range of IPv4 addresses, in CIDR notation. */
const network = v.pipe(
  v.string(),
  v.check((value) => {
    const [, address = '', bits = ''] = /^(.+)\/(\d{1,2})$/.exec(value) ?? [];
    return isIPv4(address) && Number(bits) <= 32;
  }, 'must be IPv4 addresses in CIDR notation, such as 203.0.113.7/32'),
);

export const main = command({
  name: 'configure_enclave',
  purpose: `Prints the AWS commands that create an instance for enclaves, with its security group and role; with --apply, runs
those that are still necessary. It asks no questions, and may be run again.`,
  example: '--region eu-central-1 --key-name admin --cidr 192.0.2.1/32',
  arguments: {},
  options: {
    region: {
      value: '<region>',
      help: 'the AWS region of the instance',
      schema: matching(/^[a-z]{2}(-[a-z]+)+-\d$/, 'must be a region such as eu-central-1'),
      required: true,
    },
    'key-name': {
      value: '<name>',
      help: 'an EC2 key pair of yours, to log in as ec2-user',
      schema: matching(/^[\w.@][\w.@-]{0,254}$/, 'must be the name of an EC2 key pair'),
      required: true,
    },
    cidr: {
      value: '<addresses>',
      help: 'who may log in (port 22) and reach the server (port 3000): your own address, such as 203.0.113.7/32',
      schema: network,
      required: true,
    },
    'public-cidr': {
      value: '<addresses>',
      help: 'who else may reach the server: 0.0.0.0/0 for everybody',
      schema: network,
    },
    secrets: {
      value: '<file>',
      help: "the application's secrets as a JSON object, for Secrets Manager; the instance may read it",
      schema: path,
    },
    name: {
      value: '<name>',
      help: 'the name of everything that it creates',
      schema: matching(/^[a-z][a-z0-9-]{0,62}$/, 'must be a name in lower case'),
      default: 'sui-enclave',
    },
    'instance-type': {
      value: '<type>',
      help: 'the type of the instance: x86-64, with Nitro Enclaves',
      schema: instanceType,
      default: 'm5.xlarge',
    },
    apply: { help: 'run the commands' },
  },
  run({ options }, context) {
    const { name, region, cidr, secrets } = options;
    const steps = planInstance({
      name,
      region,
      keyName: options['key-name'],
      adminCidr: cidr,
      publicCidr: options['public-cidr'],
      instanceType: options['instance-type'],
      secretsFile: secrets === undefined ? undefined : checkSecretsFile(secrets),
      userData: USER_DATA,
    });
    if (options.apply) return apply(steps, context);
    const text = formatPlan(steps).trimEnd();
    return { json: { plan: text }, text };
  },
});

/** Checks the file, but not the names of the secrets: the image determines them and may not be built yet. */
function checkSecretsFile(path: string): string {
  let data: unknown;
  try {
    data = JSON.parse(readRegularFile(path).toString());
  } catch (error) {
    // The parser's own message quotes the file's content.
    const reason = error instanceof SyntaxError ? 'is not JSON' : "can't be read";
    throw new UsageError(`${path} ${reason}`);
  }
  const isObject = typeof data === 'object' && data !== null && !Array.isArray(data);
  if (
    !isObject ||
    !Object.values(data as object).every((value) => typeof value === 'string' && value !== '')
  ) {
    throw new UsageError(`${path} must be a JSON object of strings that are not empty`);
  }
  return resolve(path);
}

function apply(steps: readonly Step[], { env, io }: Context): Result {
  const variables = new Map<string, string>();
  const findResult = (name: string): string => {
    const value = variables.get(name);
    if (value === undefined) throw new ParentError('PROGRAM_FAILED', `${name} is not known yet`);
    return value;
  };
  const results: object[] = [];
  const fill = (argument: Argument) => fillArgument(argument, findResult);
  for (const step of steps) {
    const existing = look(env, step.find.map(fill));
    const result = existing ?? make(env, step, fill);
    const { what: description, sets } = step;
    if (sets !== undefined) variables.set(sets, result);
    results.push({ what: description, made: existing === undefined, ...(sets !== undefined && { result }) });
    io.log(`${description}: ${existing === undefined ? 'made' : 'there'}${sets ? ` (${result})` : ''}`);
  }
  const address = variables.get('ADDRESS');
  return { json: { steps: results, address }, text: `Log in: ssh ec2-user@${address}` };
}

/**
 * Makes the resource of a step.
 *
 * @returns the output of the step's last command
 * @throws ParentError: PROGRAM_FAILED
 */
function make(
  env: Environment,
  { what: description, make: commands, input }: Step,
  fill: (argument: Argument) => string,
) {
  if (commands.length === 0) throw new ParentError('PROGRAM_FAILED', `${description} was not found`);
  const outputs = commands.map((command, index) => {
    const file = index === commands.length - 1 ? input : undefined;
    return call(env, command.map(fill), file === undefined ? '' : { file });
  });
  return outputs.at(-1) ?? '';
}

/** Returns the existing resource; undefined if it is missing. */
function look(env: Environment, command: readonly string[]): string | undefined {
  const { status, stdout, stderr } = run(env, command[0] as string, command.slice(1));
  if (status !== 0 && !/NoSuchEntity|NotFound/.test(stderr)) throw failure(command, stderr);
  const output = status === 0 ? stdout.trim() : '';
  return output === '' || output === 'None' ? undefined : output;
}

/** Returns the output of the command. @throws ParentError: PROGRAM_FAILED, with the program's own message */
function call(env: Environment, command: readonly string[], input: string | { file: string }): string {
  const { status, stdout, stderr } = run(env, command[0] as string, command.slice(1), input);
  if (status !== 0) throw failure(command, stderr);
  return stdout.trim();
}

function failure([program, ...args]: readonly string[], stderr: string): ParentError {
  return new ParentError(
    'PROGRAM_FAILED',
    `${program} ${args.slice(2, 4).join(' ')} failed: ${stderr.trim()}`,
  );
}

if (import.meta.main) await runAsProcess(main);
