/**
 * The systemd unit of the watcher runs a command line that the command accepts, and has no more rights than
 * needed.
 */
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { hasSystemd, verifyUnits } from '../../../systemd_units.ts';
import { newProvisioner, nsm, startVault, VALUES } from '../../server/provisioner.ts';
import { callScript } from '../run.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const NAME = 'sui-enclave-provision.service';
const UNIT = readFileSync(join(ROOT, 'src/cli/provision', NAME), 'utf8');
const readValues = (key: string) =>
  [...UNIT.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value);

function createFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'service-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
}

test('the unit runs a command that provisions, with the files that systemd provides', async () => {
  const [program, script, ...args] = (readValues('ExecStart')[0] ?? '').split(' ');
  expect(program).toBe('/opt/sui-enclave/node_modules/.bin/node');
  expect(existsSync(join(ROOT, script ?? ''))).toBe(true);
  expect(args.pop()).toBe('--watch');

  const me = newProvisioner();
  const { url } = await startVault({ provisioners: [me.hex] });
  const CREDENTIALS_DIRECTORY = createFolder();
  const contents: Record<string, string> = {
    'secrets.json': JSON.stringify(VALUES),
    'provisioner.pem': me.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
  // Only these two files are credentials.
  expect(readValues('LoadCredential').map((line) => line.split(':')[0])).toEqual(Object.keys(contents));
  for (const [name, content] of Object.entries(contents)) {
    writeFileSync(join(CREDENTIALS_DIRECTORY, name), content);
    // If the service's user has access by an access control list, the group's bits are its mask (acl(5)).
    chmodSync(join(CREDENTIALS_DIRECTORY, name), 0o440);
  }
  const etc = createFolder();
  writeFileSync(join(etc, 'nitro.pcrs'), nsm.pcrsFile());
  writeFileSync(join(etc, 'root.pem'), nsm.rootPem());
  const commandLine = args.map((arg) =>
    arg
      // biome-ignore lint/suspicious/noTemplateCurlyInString: systemd's
      .replace('${ENCLAVE_URL}', url)
      // biome-ignore lint/suspicious/noTemplateCurlyInString: systemd's
      .replace('${CREDENTIALS_DIRECTORY}', CREDENTIALS_DIRECTORY)
      .replace('/etc/sui-enclave', etc),
  );
  const run = async (env: Record<string, string>) =>
    await callScript('provision/provision.ts', [...commandLine, '--root', join(etc, 'root.pem')], { env });
  expect((await run({})).stderr).toMatch(/^SECRETS_FILE: .* is open to other users/);
  expect(await run({ CREDENTIALS_DIRECTORY })).toMatchObject({ status: 0, stderr: '' });
});

test('the unit has no user, no files and no privileges of its own', () => {
  for (const key of ['DynamicUser', 'NoNewPrivileges', 'ProtectHome', 'PrivateTmp', 'PrivateDevices']) {
    expect(readValues(key), key).toEqual(['yes']);
  }
  expect(readValues('ProtectSystem')).toEqual(['strict']);
  expect(readValues('CapabilityBoundingSet')).toEqual(['']);
  expect([readValues('LimitCORE'), readValues('MemorySwapMax')]).toEqual([['0'], ['0']]);
  // A mistake in the files ends the service; after any other error it starts again.
  expect([readValues('Restart'), readValues('RestartPreventExitStatus')]).toEqual([['on-failure'], ['2']]);
});

test.runIf(hasSystemd)('the unit is accepted by systemd', () => {
  expect(verifyUnits({ [NAME]: UNIT })).toEqual([0, '']);
});
