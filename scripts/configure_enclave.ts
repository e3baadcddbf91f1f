/**
 * `npm run configure_enclave -- --region REGION --key-name KEY --cidr CIDR [--secrets FILE] [--name sui-enclave]
 * [--instance-type m5.xlarge] [--apply]`: prints the AWS commands that make an instance for enclaves, or with
 * `--apply` runs those whose result is not there yet. Asks nothing.
 */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { runMain } from './command.ts';
import { formatPlan, planInstance, type Step } from './parent/aws_plan.ts';
import { ProgramFailed, Usage } from './parent/errors.ts';
import { run } from './parent/programs.ts';

const USER_DATA = fileURLToPath(new URL('parent/user_data.sh', import.meta.url));

function main(): void {
  const { values } = parseArgs({
    options: {
      region: { type: 'string' },
      'key-name': { type: 'string' },
      cidr: { type: 'string' },
      secrets: { type: 'string' },
      name: { type: 'string', default: 'sui-enclave' },
      'instance-type': { type: 'string', default: 'm5.xlarge' },
      apply: { type: 'boolean', default: false },
    },
  });
  const need = (option: 'region' | 'key-name' | 'cidr', pattern: RegExp): string => {
    const value = values[option];
    if (value === undefined || !pattern.test(value)) throw new Usage(`--${option} is missing or wrong`);
    return value;
  };
  if (!/^[a-z][a-z0-9-]{0,62}$/.test(values.name)) throw new Usage('--name must be a name in lower case');
  if (values.secrets !== undefined && !existsSync(values.secrets))
    throw new Usage(`there is no ${values.secrets}`);
  const steps = planInstance({
    name: values.name,
    region: need('region', /^[a-z]{2}(-[a-z]+)+-\d$/),
    keyName: need('key-name', /^[\w.@-]{1,255}$/),
    cidr: need('cidr', /^\d{1,3}(\.\d{1,3}){3}\/\d{1,2}$/),
    instanceType: values['instance-type'],
    secretsFile: values.secrets === undefined ? undefined : resolve(values.secrets),
    userData: USER_DATA,
  });
  if (values.apply) apply(steps);
  else process.stdout.write(formatPlan(steps));
}

function apply(steps: readonly Step[]): void {
  const variables = new Map<string, string>();
  const fill = (arg: string) =>
    arg.replace(/\$([A-Z_]+)/g, (_match, name: string) => {
      const value = variables.get(name);
      if (value === undefined) throw new ProgramFailed(`${name} is not known yet`);
      return value;
    });
  for (const { what, sets, find, make } of steps) {
    const found = call(find.map(fill));
    const there = found !== undefined && found !== '' && found !== 'None';
    let result = there ? found : undefined;
    if (!there) {
      for (const command of make) {
        result = call(command.map(fill));
        if (result === undefined) throw new ProgramFailed(`${what} could not be made: see above`);
      }
    }
    if (!there && make.length === 0) throw new ProgramFailed(`${what} was not found`);
    if (sets !== undefined) variables.set(sets, result ?? '');
    console.log(`${what}: ${there ? 'there' : 'made'}${sets ? ` (${result})` : ''}`);
  }
}

/** What the command prints; undefined where it fails, with its own message shown unless that is an answer. */
function call([program, ...args]: readonly string[]): string | undefined {
  const { status, stdout, stderr } = run(program as string, args);
  if (status === 0) return stdout.trim();
  if (!/NoSuchEntity|ResourceNotFound|NotFound/.test(stderr)) {
    throw new ProgramFailed(`${program} ${args.slice(2, 4).join(' ')} failed: ${stderr.trim()}`);
  }
  return undefined;
}

await runMain(main);
