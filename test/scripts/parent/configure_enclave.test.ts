import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Parent } from './stand_ins.ts';

const ARGS = ['--region', 'eu-west-1', '--key-name', 'me', '--cidr', '203.0.113.0/24'];

function withSecrets(parent: Parent): string[] {
  writeFileSync(join(parent.dir, 'secrets.json'), '{"API_KEY":"hunter2"}');
  return [...ARGS, '--secrets', 'secrets.json'];
}

describe('configure_enclave', () => {
  test('prints the commands and runs none', () => {
    const parent = new Parent();
    const { status, stdout } = parent.run('configure_enclave.ts', withSecrets(parent));
    expect(status).toBe(0);
    expect(parent.calls()).toEqual([]);
    expect(stdout).toMatch(/^ {2}SECURITY_GROUP=\$\(aws --region eu-west-1 ec2 create-security-group/m);
    expect(stdout).toMatch(/--enclave-options Enabled=true --metadata-options HttpTokens=required/);
    expect(stdout).toMatch(new RegExp(`--secret-string file://${parent.dir}/secrets.json`));
    expect(stdout).not.toMatch(/hunter2/);
  });

  test('prints what a shell runs as it is meant', () => {
    const parent = new Parent();
    const { stdout } = parent.run('configure_enclave.ts', withSecrets(parent));
    const inShell = () =>
      spawnSync('sh', {
        input: stdout,
        encoding: 'utf8',
        cwd: parent.dir,
        env: { PATH: parent.path, STAND_INS: parent.dir },
      });
    expect(inShell().status).toBe(0);
    const calls = parent.calls('aws');
    expect(calls.find((call) => call.includes('authorize'))).toMatch(
      /--group-id sg-1 --protocol tcp --port 3000 --cidr 203.0.113.0\/24$/,
    );
    expect(calls.find((call) => call.includes('put-role-policy'))).toMatch(/"Resource":"arn:secret"\}\]\}$/);
    const isChange = (call: string) => / (create|put|authorize|add|run)-/.test(call);
    expect(inShell().status).toBe(0);
    expect(parent.calls('aws').slice(calls.length).filter(isChange)).toEqual([]);
    expect(calls.find((call) => call.includes('run-instances'))).toMatch(
      /--image-id ami-1 .*--security-group-ids sg-1/,
    );
  });

  test('with --apply makes what is missing, and run again makes nothing', () => {
    const parent = new Parent();
    const args = [...withSecrets(parent), '--apply'];
    const first = parent.run('configure_enclave.ts', args);
    expect(first).toMatchObject({ status: 0, stderr: '' });
    expect(first.stdout).toBe(`the security group: made (sg-1)
the way in on port 3000 from 203.0.113.0/24: made
the role: made
the secret: made (arn:secret)
the role's right to read the secret: made
the instance profile: made
the system image of Amazon Linux: there (ami-1)
the instance: made (i-1)
`);
    const before = parent.calls().length;
    const second = parent.run('configure_enclave.ts', args);
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

  test('goes on where it was stopped', () => {
    const parent = new Parent();
    parent.set('denied', 'create-role');
    const { status, stderr } = parent.run('configure_enclave.ts', [...ARGS, '--apply']);
    expect(status).toBe(1);
    expect(stderr).toMatch(/PROGRAM_FAILED: aws iam create-role failed: .*UnauthorizedOperation/);
    parent.set('denied', '');
    expect(parent.run('configure_enclave.ts', [...ARGS, '--apply']).stdout).toMatch(
      /the security group: there \(sg-1\)[\s\S]*the role: made[\s\S]*the instance: made/,
    );
  });

  test.each([
    [[], /--region is missing or wrong/],
    [['--region', 'eu-west-1; rm -rf /', '--key-name', 'me', '--cidr', '0.0.0.0/0'], /--region/],
    [['--region', 'eu-west-1', '--key-name', 'me', '--cidr', 'all'], /--cidr/],
    [[...ARGS, '--name', 'A B'], /--name/],
    [[...ARGS, '--secrets', 'nowhere.json'], /there is no nowhere.json/],
  ])('refuses %j', (args, message) => {
    const { status, stderr } = new Parent().run('configure_enclave.ts', args as string[]);
    expect(status).toBe(1);
    expect(stderr).toMatch(message);
  });
});
