/** The systemd unit of the poster runs a command line that the command accepts, with the keeper's rights. */
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import { hasSystemd, verifyUnits } from '../../../systemd_units.ts';
import { callScript } from '../run.ts';
import { PosterFixture } from './poster_fixture.ts';

vi.setConfig({ testTimeout: 120_000 });

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const NAME = 'sui-enclave-post.service';
const UNIT = readFileSync(join(ROOT, 'src/cli/poster', NAME), 'utf8');
const KEEP = readFileSync(join(ROOT, 'src/cli/keeper/sui-enclave-keep.service'), 'utf8');
const readValues = (key: string) =>
  [...UNIT.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value);

test('the unit runs a command that posts, with the files that systemd provides', async () => {
  const fixture = await PosterFixture.start();
  const enclave = await fixture.enclave();
  const [program, path = '', ...args] = (readValues('ExecStart')[0] ?? '').split(' ');
  expect([program, path]).toEqual(['/opt/sui-enclave/node_modules/.bin/node', 'src/cli/poster/post.ts']);
  expect(readValues('LoadCredential')).toEqual(['sui.keystore:/etc/sui-enclave/poster.keystore']);

  const key = fixture.createKey(1_000_000_000n);
  const [etc, credentials, state] = ['etc', 'credentials', 'state'].map((name) => fixture.chain.file(name));
  for (const folder of [etc, credentials, state]) mkdirSync(folder ?? '');
  const keystore = join(credentials ?? '', 'sui.keystore');
  writeFileSync(
    keystore,
    JSON.stringify([Buffer.from([0, ...fixture.decodeSecret({ key })]).toString('base64')]),
  );
  chmodSync(keystore, 0o440);
  writeFileSync(
    join(etc ?? '', 'poster.yaml'),
    JSON.stringify({ ...fixture.content([enclave.url]), root: 'root.pem' }),
  );
  copyFileSync(fixture.chain.file('root.pem'), join(etc ?? '', 'root.pem'));
  const variables = new Map([
    ['POSTER_ADDRESS', key.toSuiAddress()],
    ['CREDENTIALS_DIRECTORY', credentials ?? ''],
    ['STATE_DIRECTORY', state ?? ''],
  ]);
  const commandLine = args.map((arg) =>
    arg
      .replace(/\$\{(\w+)\}/g, (_, name: string) => variables.get(name) ?? '')
      .replace('/etc/sui-enclave', etc ?? ''),
  );
  const { status, stdout } = await callScript('poster/post.ts', [...commandLine, '--once']);
  expect([status, stdout]).toEqual([0, expect.stringMatching(/\nposted: /)]);
  expect(JSON.parse(readFileSync(join(state ?? '', 'record.json'), 'utf8')).signed).toHaveLength(1);
  expect(JSON.parse(readFileSync(join(state ?? '', 'transactions.json'), 'utf8'))).toMatchObject({
    newest: `${enclave.timestampMs}`,
    pending: [],
  });
});

test('the unit has the restrictions of the keeper, and no others', () => {
  const restrictions = (unit: string) =>
    unit
      .slice(unit.indexOf('# No user'))
      .split('\n')
      .filter((line) => !line.startsWith('#'));
  expect(restrictions(UNIT)).toEqual(restrictions(KEEP));
  expect([readValues('Restart'), readValues('RestartPreventExitStatus')]).toEqual([['on-failure'], ['2']]);
});

test.runIf(hasSystemd)('the unit is accepted by systemd', () => {
  expect(verifyUnits({ [NAME]: UNIT })).toEqual([0, '']);
});
