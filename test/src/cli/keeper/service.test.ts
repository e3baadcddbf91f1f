/**
 * Tests that the systemd unit of the keeper runs a command line that the command accepts, and has no more
 * rights than needed.
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { decodeSuiPrivateKey } from '@mysten/sui/cryptography';
import { expect, onTestFinished, test } from 'vitest';
import { hasSystemd, verifyUnits } from '../../../systemd_units.ts';
import { startServer } from '../../server/support.ts';
import { callScript } from '../run.ts';
import { KeeperFixture } from './keeper_fixture.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const NAME = 'sui-enclave-keep.service';
const UNIT = readFileSync(join(ROOT, 'src/cli/keeper', NAME), 'utf8');
const PROVISION = readFileSync(join(ROOT, 'src/cli/provision/sui-enclave-provision.service'), 'utf8');
const readValues = (key: string) =>
  [...UNIT.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value);

function createFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'service-'));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  return dir;
}

test('the unit runs a command that registers an enclave, with the files that systemd provides', async () => {
  const fixture = await KeeperFixture.start();
  onTestFinished(() => fixture.close());
  const [program, script, ...args] = (readValues('ExecStart')[0] ?? '').split(' ');
  expect(program).toBe('/opt/sui-enclave/node_modules/.bin/node');
  expect(existsSync(join(ROOT, script ?? ''))).toBe(true);

  const { key } = fixture.operator;
  const CREDENTIALS_DIRECTORY = createFolder();
  expect(readValues('LoadCredential').map((line) => line.split(':')[0])).toEqual(['sui.keystore']);
  const { secretKey } = decodeSuiPrivateKey(key.getSecretKey());
  const keystore = join(CREDENTIALS_DIRECTORY, 'sui.keystore');
  writeFileSync(keystore, JSON.stringify([Buffer.from([0, ...secretKey]).toString('base64')]));
  chmodSync(keystore, 0o440);
  const { url } = await startServer({ nsm: fixture.chain.nsm });
  const etc = createFolder();
  const STATE_DIRECTORY = createFolder();
  writeFileSync(join(etc, 'keeper.yaml'), JSON.stringify(fixture.content([url])));
  copyFileSync(fixture.chain.file('root.pem'), join(etc, 'root.pem'));
  const expandedArgs = args.map((arg) =>
    arg
      // biome-ignore lint/suspicious/noTemplateCurlyInString: systemd's
      .replace('${KEEPER_ADDRESS}', key.toSuiAddress())
      // biome-ignore lint/suspicious/noTemplateCurlyInString: systemd's
      .replace('${CREDENTIALS_DIRECTORY}', CREDENTIALS_DIRECTORY)
      // biome-ignore lint/suspicious/noTemplateCurlyInString: systemd's
      .replace('${STATE_DIRECTORY}', STATE_DIRECTORY)
      .replace('/etc/sui-enclave', etc),
  );

  const { status, stdout } = await callScript('keeper/keep.ts', [...expandedArgs, '--once']);
  expect([status, stdout]).toEqual([0, expect.stringMatching(new RegExp(`\nregistered ${url}\n$`))]);
  // The service can only read this folder.
  expect(readdirSync(etc).sort()).toEqual(['keeper.yaml', 'root.pem']);
  expect(JSON.parse(readFileSync(join(STATE_DIRECTORY, 'record.json'), 'utf8')).signed).toHaveLength(1);
});

test('the unit has the restrictions of the provisioning watcher, and no others', () => {
  const readRestrictions = (unit: string) =>
    unit
      .slice(unit.indexOf('# No user'))
      .split('\n')
      .filter((line) => !line.startsWith('#'));
  expect(readRestrictions(UNIT)).toEqual(readRestrictions(PROVISION));
  // A mistake in the files ends the service; after any other error it starts again.
  expect([readValues('Restart'), readValues('RestartPreventExitStatus')]).toEqual([['on-failure'], ['2']]);
});

test.runIf(hasSystemd)('systemd accepts the unit', () => {
  expect(verifyUnits({ [NAME]: UNIT })).toEqual([0, '']);
});
