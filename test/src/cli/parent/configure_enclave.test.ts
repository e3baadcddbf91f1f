import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { spawnScript } from '../run.ts';
import { Parent } from './fakes.ts';

const ARGS = ['--region', 'eu-west-1', '--key-name', 'me', '--cidr', '203.0.113.0/24'];

function withSecrets(parent: Parent): string[] {
  writeFileSync(join(parent.dir, 'secrets.json'), '{"API_KEY":"hunter2"}');
  return [...ARGS, '--secrets', join(parent.dir, 'secrets.json')];
}

describe('configure_enclave', () => {
  test('prints the commands without running them', async () => {
    const parent = new Parent();
    const { status, stdout } = await parent.run('configure_enclave.ts', withSecrets(parent));
    expect(status).toBe(0);
    expect(parent.calls()).toEqual([]);
    expect(stdout).toMatch(/^ {2}found=\$\(aws --region eu-west-1 ec2 create-security-group/m);
    expect(stdout).toMatch(/--enclave-options Enabled=true --metadata-options HttpTokens=required/);
    expect(stdout).toMatch(new RegExp(`--secret-string .* <${parent.dir}/secrets.json\\)$`, 'm'));
    expect(stdout).not.toMatch(/hunter2/);
  });

  test('prints a script that a shell runs as intended', async () => {
    const parent = new Parent();
    const { stdout } = await parent.run('configure_enclave.ts', withSecrets(parent));
    const inShell = () =>
      spawnSync('sh', {
        input: stdout,
        encoding: 'utf8',
        cwd: parent.dir,
        env: { PATH: parent.path, FAKES: parent.dir },
      });
    expect(inShell()).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^Log in: ssh ec2-user@203.0.113.5$/m),
    });
    const calls = parent.calls('aws');
    expect(calls.find((call) => call.includes('authorize'))).toMatch(
      /--group-id sg-1 --protocol tcp --port 22 --cidr 203.0.113.0\/24$/,
    );
    expect(calls.find((call) => call.includes('put-role-policy'))).toMatch(/"Resource":"arn:secret"\}\]\}$/);
    const isChange = (call: string) => / (create|put|authorize|add|run)-/.test(call);
    expect(inShell().status).toBe(0);
    expect(parent.calls('aws').slice(calls.length).filter(isChange)).toEqual([]);
    expect(calls.find((call) => call.includes('run-instances'))).toMatch(
      /--image-id ami-1 .*--security-group-ids sg-1/,
    );
  });

  // Each of these variables is in the environment too, where the AWS CLI looks for variables.
  const ODD = '$HOME \x24{REGION} $SECURITY_GROUP it\'s "q" `id` $(id) \\\n*;&|<>#!~ -dash';
  test.each([['printed'], ['applied']])(
    'a path with characters of the shell is used literally: %s',
    async (mode) => {
      const parent = new Parent();
      const env = {
        HOME: parent.dir,
        REGION: 'x',
        SECURITY_GROUP: 'sg-0',
        PATH: parent.path,
        FAKES: parent.dir,
      };
      mkdirSync(join(parent.dir, ODD));
      writeFileSync(join(parent.dir, ODD, ODD), '{"API_KEY":"hunter2"}');
      const args = [...ARGS, '--secrets', join(parent.dir, ODD, ODD)];
      const { stdout } = await parent.run(
        'configure_enclave.ts',
        mode === 'applied' ? [...args, '--apply'] : args,
        env,
      );
      if (mode === 'printed') {
        const { status, stderr } = spawnSync('sh', { input: stdout, encoding: 'utf8', cwd: '/', env });
        expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      }
      expect(parent.read('secret string')).toBe('{"API_KEY":"hunter2"}');
      expect(parent.read('user data')).toMatch(/^#!\/bin\/sh\n/);
      expect(parent.calls().join('')).not.toMatch(/hunter2/);
    },
  );

  test("prints a script that creates nothing if AWS can't report what exists", async () => {
    const parent = new Parent();
    const { stdout } = await parent.run('configure_enclave.ts', withSecrets(parent));
    parent.set('refused', 'describe-instances');
    parent.set('refusal', 'An error occurred (RequestExpired)');
    const { status, stderr } = spawnSync('sh', {
      input: stdout,
      encoding: 'utf8',
      cwd: parent.dir,
      env: { PATH: parent.path, FAKES: parent.dir },
    });
    expect(status).toBe(1);
    expect(stderr).toMatch(/RequestExpired/);
    expect(parent.calls('aws').filter((call) => call.includes('run-instances'))).toEqual([]);
  });

  test('with --apply creates what is missing, and run again creates nothing', async () => {
    const parent = new Parent();
    const args = [...withSecrets(parent), '--apply'];
    const first = await parent.run('configure_enclave.ts', args);
    expect(first).toMatchObject({ status: 0, stderr: '' });
    expect(first.stdout).toBe(`the instance type m5.xlarge, on x86-64 and with Nitro Enclaves: there
the security group: made (sg-1)
the ingress rule of port 22 from 203.0.113.0/24: made
the ingress rule of port 3000 from 203.0.113.0/24: made
the role: made
the secret: made (arn:secret)
the role's right to read the secret: made
the instance profile: made
its role: made
the system image of Amazon Linux: there (ami-1)
the instance: made (i-1)
its public address: made (203.0.113.5)
Log in: ssh ec2-user@203.0.113.5
`);
    const before = parent.calls().length;
    const second = await parent.run('configure_enclave.ts', args);
    expect(second.stdout).not.toMatch(/made/);
    expect(second.stdout).toMatch(/the instance: there \(i-1\)/);
    expect(
      parent
        .calls()
        .slice(before)
        .filter((call) => / (create|put|authorize|add|run)-/.test(call)),
    ).toEqual([]);
    expect(parent.calls().join('')).not.toMatch(/hunter2/);
  });

  test('runs as a process', async () => {
    const parent = new Parent();
    const { status, stdout } = await spawnScript('parent/configure_enclave.ts', [...ARGS, '--apply'], {
      env: parent.env,
    });
    expect(status).toBe(0);
    expect(stdout).toMatch(/^the instance: made \(i-1\)$/m);
  });

  test.each([
    'm5.xlarge',
    'c6i.xlarge',
    'm6a.2xlarge',
    'r5.xlarge',
    'g4dn.xlarge',
    'g5.xlarge',
    'x2iedn.xlarge',
  ])('accepts %s', async (type) => {
    const { status, stdout } = await new Parent().run('configure_enclave.ts', [
      ...ARGS,
      '--instance-type',
      type,
    ]);
    expect(status).toBe(0);
    expect(stdout).toMatch(`--instance-type ${type} `);
  });

  test.each([['printed'], ['applied']])(
    'creates nothing for a type that has no enclaves according to AWS: %s',
    async (mode) => {
      const parent = new Parent();
      parent.set('no such type', '');
      const args = mode === 'applied' ? [...ARGS, '--apply'] : ARGS;
      const { stdout, stderr } = await parent.run('configure_enclave.ts', args);
      const said =
        mode === 'applied'
          ? stderr
          : spawnSync('sh', { input: stdout, encoding: 'utf8', cwd: parent.dir, env: parent.env }).stderr;
      expect(said).toMatch(/the instance type m5.xlarge, on x86-64 and with Nitro Enclaves was not found/);
      expect(parent.calls('aws')).toHaveLength(1);
    },
  );

  test('continues where it was stopped', async () => {
    const parent = new Parent();
    parent.set('denied', 'create-role');
    const { status, stderr } = await parent.run('configure_enclave.ts', [...ARGS, '--apply']);
    expect(status).toBe(1);
    expect(stderr).toMatch(/PROGRAM_FAILED: aws iam create-role failed: .*UnauthorizedOperation/);
    parent.set('denied', '');
    expect((await parent.run('configure_enclave.ts', [...ARGS, '--apply'])).stdout).toMatch(
      /the security group: there \(sg-1\)[\s\S]*the role: made[\s\S]*the instance: made/,
    );
  });

  test('continues if the instance profile lacks its role', async () => {
    const parent = new Parent();
    parent.set('denied', 'add-role-to-instance-profile');
    expect((await parent.run('configure_enclave.ts', [...ARGS, '--apply'])).status).toBe(1);
    parent.set('denied', '');
    expect((await parent.run('configure_enclave.ts', [...ARGS, '--apply'])).stdout).toMatch(
      /the instance profile: there\nits role: made\n/,
    );
  });

  test("reports AWS's own message for a resource that it could not create", async () => {
    const parent = new Parent();
    parent.set('refused', 'run-instances');
    parent.set('refusal', 'An error occurred (InvalidKeyPair.NotFound): me');
    const { status, stderr } = await parent.run('configure_enclave.ts', [...ARGS, '--apply']);
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /^PROGRAM_FAILED: aws ec2 run-instances failed: .*InvalidKeyPair.NotFound.*: me$/m,
    );
  });

  test('opens SSH to the admin alone, and the server to the given ranges', async () => {
    const open = async (...args: string[]) => {
      const { stdout } = await new Parent().run('configure_enclave.ts', [...ARGS, ...args]);
      return [...stdout.matchAll(/--port (\d+) --cidr (\S+)/g)].map(([, port, cidr]) => `${port} ${cidr}`);
    };
    expect(await open()).toEqual(['22 203.0.113.0/24', '3000 203.0.113.0/24']);
    expect(await open('--public-cidr', '0.0.0.0/0')).toEqual([
      '22 203.0.113.0/24',
      '3000 203.0.113.0/24',
      '3000 0.0.0.0/0',
    ]);
  });

  test('names the required options in its help', async () => {
    const { stdout } = await new Parent().run('configure_enclave.ts', ['--help']);
    const required = stdout.split('\n').filter((line) => line.endsWith('(required)'));
    expect(required.map((line) => line.trim().split(' ')[0])).toEqual(['--region', '--key-name', '--cidr']);
  });

  test.each([
    [[], /^USAGE: --region is required\. See sui-enclave configure_enclave --help\n$/],
    [
      ['--region', 'eu-west-1; rm -rf /', '--key-name', 'me', '--cidr', '0.0.0.0/0'],
      /--region must be a region/,
    ],
    [['--region', 'eu-west-1', '--key-name', 'me', '--cidr', 'all'], /--cidr must be IPv4/],
    [['--region', 'eu-west-1', '--key-name', 'me', '--cidr', '203.0.113.400/24'], /--cidr must be IPv4/],
    [['--region', 'eu-west-1', '--key-name', 'me', '--cidr', '203.0.113.4/33'], /--cidr must be IPv4/],
    [[...ARGS, '--public-cidr', '0.0.0.0'], /--public-cidr must be IPv4/],
    [[...ARGS, '--name', 'A B'], /--name/],
    [['--region', 'eu-west-1', '--key-name=-me', '--cidr', '0.0.0.0/0'], /--key-name/],
    [[...ARGS, '--instance-type=-m5.xlarge'], /--instance-type/],
    [[...ARGS, '--instance-type', 'big'], /--instance-type/],
    ...['m7g.xlarge', 'c7gn.2xlarge', 'im4gn.xlarge', 't4g.xlarge', 'g5g.xlarge', 'a1.xlarge'].map(
      (type): [string[], RegExp] => [
        [...ARGS, '--instance-type', type],
        new RegExp(`${type} is arm64 \\(Graviton\\), .* Choose m5.xlarge, c6i.xlarge`),
      ],
    ),
    ...['t3.xlarge', 't3a.2xlarge', 'm5.metal', 'c7i.metal-24xl', 'mac1.metal', 'm4.xlarge', 'i3.xlarge'].map(
      (type): [string[], RegExp] => [
        [...ARGS, '--instance-type', type],
        new RegExp(`${type} has no Nitro Enclaves: .* Choose m5.xlarge, c6i.xlarge`),
      ],
    ),
    [[...ARGS, '--instance-type', 'm5.large'], /m5.large has too few CPUs: .* Choose m5.xlarge/],
    [[...ARGS, '--secrets', 'nowhere.json'], /nowhere.json can't be read/],
    [[...ARGS, 'more'], /^USAGE: unexpected argument: more\. See/],
  ])('refuses %j', async (args, message) => {
    const { status, stderr } = await new Parent().run('configure_enclave.ts', args as string[]);
    expect(status).toBe(2);
    expect(stderr).toMatch(message);
  });

  test.each([
    ['hunter2', /secrets.json is not JSON/],
    ['["hunter2"]', /must be a JSON object/],
    ['{"API_KEY":""}', /must be a JSON object/],
    ['{"API_KEY":{"hunter2":1}}', /must be a JSON object/],
  ])('refuses the secrets %s before anything is created, without repeating them', async (text, message) => {
    const parent = new Parent();
    const args = withSecrets(parent);
    writeFileSync(join(parent.dir, 'secrets.json'), text);
    const { status, stderr } = await parent.run('configure_enclave.ts', [...args, '--apply']);
    expect(status).toBe(2);
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/hunter2/);
    expect(parent.calls()).toEqual([]);
  });
});
