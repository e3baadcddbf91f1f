/** Starts a model of AWS on loopback: moto's server, which Python runs, and the real AWS CLI. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const BIN = join(ROOT, 'build/check-aws/bin');
export const REGION = 'eu-central-1';
export const TEMPLATE = join(ROOT, 'deploy/aws/stack.yaml');

/** Runs a program of the installed Python packages. @returns its standard output */
export function runPython(program: string, args: readonly string[], env = {}): string {
  const { status, stdout, stderr } = spawnSync(join(BIN, program), args, { encoding: 'utf8', env });
  if (status !== 0) throw new Error(`${program} ${args.slice(0, 3).join(' ')}: ${stdout}${stderr}`);
  return stdout;
}

/** An account of AWS that is empty, apart from the default network. */
export class Account {
  readonly env: Readonly<Record<string, string>>;
  readonly #stop: () => void;
  readonly #resources = new Map<string, Readonly<Record<string, string>>>();

  private constructor(url: string, stop: () => void) {
    this.#stop = stop;
    this.env = {
      PATH: `${BIN}:/usr/bin:/bin`,
      AWS_ENDPOINT_URL: url,
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      AWS_CONFIG_FILE: '/dev/null',
      AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
      AWS_EC2_METADATA_DISABLED: 'true',
    };
  }

  static async start(): Promise<Account> {
    const server = spawn(join(BIN, 'moto_server'), ['-H', '127.0.0.1', '-p', '0'], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: '/usr/bin:/bin' },
    });
    let log = '';
    for await (const chunk of server.stderr) {
      log += chunk;
      const [, url] = /Running on (http:\/\/127\.0\.0\.1:\d+)/.exec(log) ?? [];
      if (url !== undefined) return new Account(url, () => server.kill());
    }
    await once(server, 'close');
    throw new Error(`moto_server has ended: ${log}`);
  }

  stop(): void {
    this.#stop();
  }

  /** Runs the AWS CLI. @returns its output */
  // biome-ignore lint/suspicious/noExplicitAny: each action has a document of its own.
  aws(...args: readonly string[]): any {
    const text = runPython('aws', ['--region', REGION, '--output', 'json', ...args], this.env);
    return text === '' ? undefined : JSON.parse(text);
  }

  /** Creates or updates a stack by a change set. */
  apply(stack: string, type: 'CREATE' | 'UPDATE', parameters: Readonly<Record<string, string>>): void {
    const request = {
      StackName: stack,
      ChangeSetName: 'test',
      ChangeSetType: type,
      Capabilities: ['CAPABILITY_IAM'],
      TemplateBody: readFileSync(TEMPLATE, 'utf8'),
      Parameters: Object.entries(parameters).map(([key, value]) => ({
        ParameterKey: key,
        ParameterValue: value,
      })),
    };
    this.aws('cloudformation', 'create-change-set', '--cli-input-json', JSON.stringify(request));
    this.#resources.delete(stack);
    this.aws('cloudformation', 'execute-change-set', '--stack-name', stack, '--change-set-name', 'test');
  }

  /** Returns the physical ids of a stack's resources by their logical ids. */
  resources(stack: string): Readonly<Record<string, string>> {
    const cached = this.#resources.get(stack);
    if (cached !== undefined) return cached;
    const { StackResources: rows } = this.aws(
      'cloudformation',
      'describe-stack-resources',
      '--stack-name',
      stack,
    );
    const ids = Object.fromEntries(
      rows.map((row: Record<string, string>) => [row['LogicalResourceId'], row['PhysicalResourceId']]),
    );
    this.#resources.set(stack, ids);
    return ids;
  }
}
