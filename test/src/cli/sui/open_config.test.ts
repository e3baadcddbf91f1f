/**
 * Tests commands for an open config: the images that it may allow, who registers, and what `status` prints.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { Ed25519Keypair } from '@mysten/sui/keypairs/ed25519';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parsePcrs } from '../../../../src/library/sui/index.ts';
import { startServer } from '../../server/support.ts';
import { ChainFixture, ofApplication, ofConfig, PACKAGE } from './chain_fixture.ts';
import { script } from './run_script.ts';

const stranger = new Ed25519Keypair();
let fixture: ChainFixture;
let capId: string;
beforeAll(async () => {
  fixture = await ChainFixture.start();
  capId = fixture.publish();
  fixture.node.ledger.give(stranger.toSuiAddress(), 1_000_000_000n);
});
afterAll(() => fixture.close());

const countSent = () => fixture.node.ledger.executed.length;
const readDeployment = () => JSON.parse(readFileSync(fixture.file('deployments/localnet.json'), 'utf8'));

async function run(name: string, args: readonly string[], signer = fixture.admin) {
  const env = { SUI_PRIVATE_KEY: signer.getSecretKey(), DEPLOYMENTS: fixture.file('deployments') };
  return await script(name, [...args, '--network', 'localnet', '--rpc-url', fixture.node.url, '--json'], env);
}

async function done(name: string, args: readonly string[], signer = fixture.admin) {
  const { exit, out, err, json } = await run(name, args, signer);
  expect(exit, out + err).toBe(0);
  return json();
}

/** Writes the record of the build of a PCR file, as `sui-enclave dev` does. */
function writeBuildRecord(name: string, changes: object): void {
  const registers = parsePcrs(readFileSync(fixture.file(`${name}.pcrs`), 'utf8'));
  const content = { application: 'dice', commit: null, unchanged_tree: null, channel: 'development' };
  writeFileSync(
    fixture.file(`${name}.measurements.json`),
    JSON.stringify({ ...content, registers, ...changes }),
  );
}

function creationArguments(...args: string[]): string[] {
  const ids = [...ofApplication(PACKAGE, PACKAGE, 'weather', 'WEATHER'), '--cap', capId];
  return [...ids, 'main', '--pcrs', fixture.file('dev.pcrs'), ...args];
}

/** Expects that a command is refused before anything is sent. */
async function expectRefusal(name: string, args: readonly string[], code: string): Promise<string> {
  const before = countSent();
  const { exit, out, json } = await run(name, args);
  expect(exit, out).toBe(2);
  expect(json()).toMatchObject({ code });
  expect(countSent()).toBe(before);
  return out;
}

describe('create_config --open', () => {
  test('refuses an image if no record says which secrets it needs', async () => {
    await expectRefusal('create_config', creationArguments('--open'), 'SECRETS_UNKNOWN');
    writeBuildRecord('dev', {});
    expect(await expectRefusal('create_config', creationArguments('--open'), 'SECRETS_UNKNOWN')).toContain(
      'older build',
    );
    const registers = parsePcrs(readFileSync(fixture.file('other.pcrs'), 'utf8'));
    writeBuildRecord('dev', { secrets: [], registers });
    await expectRefusal('create_config', creationArguments('--open'), 'SECRETS_UNKNOWN');
    writeBuildRecord('dev', { secrets: 'none' });
    await expectRefusal('create_config', creationArguments('--open'), 'SECRETS_UNKNOWN');
  });

  test('refuses an image that needs secrets, and names them', async () => {
    writeBuildRecord('dev', { secrets: ['API_KEY', 'TOKEN'] });
    expect(await expectRefusal('create_config', creationArguments('--open'), 'OPEN_SECRETS')).toContain(
      'API_KEY, TOKEN',
    );
  });

  test('creates an open config of an image without secrets, and records that it is open', async () => {
    writeBuildRecord('dev', { secrets: [] });
    const { config, isOpen } = await done('create_config', creationArguments('--open'));
    expect(isOpen).toBe(true);
    expect(readDeployment().applications.weather.config).toEqual({
      id: config,
      name: 'main',
      version: 0,
      isOpen: true,
    });
    expect(await done('create_config', creationArguments('--open'))).toMatchObject({
      status: 'unchanged',
      config,
      isOpen,
    });
    expect(await expectRefusal('create_config', creationArguments(), 'DEPLOYMENT')).toContain(
      "is open, and this can't change",
    );
  });

  test('must be left out for an image that needs secrets', async () => {
    writeBuildRecord('dev', { secrets: ['API_KEY'] });
    const file = readFileSync(fixture.file('deployments/localnet.json'));
    const { isOpen } = await done('create_config', creationArguments('--again'));
    expect(isOpen).toBe(false);
    expect(readDeployment().applications.weather.config).not.toHaveProperty('isOpen');
    expect(await expectRefusal('create_config', creationArguments('--open'), 'OPEN_SECRETS')).toContain(
      'API_KEY',
    );
    writeBuildRecord('dev', { secrets: [] });
    expect(await expectRefusal('create_config', creationArguments('--open'), 'DEPLOYMENT')).toContain(
      "is not open, and this can't change",
    );
    writeFileSync(fixture.file('deployments/localnet.json'), file);
  });
});

describe('under the open config', () => {
  const root = () => ['--root', fixture.file('root.pem')];

  test('register_enclave needs no capability, and recognises an enclave that a stranger registered', async () => {
    const server = await startServer({ nsm: fixture.nsm });
    const byStranger = await done('register_enclave', [server.url, ...root()], stranger);
    expect(byStranger).toMatchObject({ status: 'done' });
    expect(byStranger).not.toHaveProperty('capability');
    const again = await done('register_enclave', [server.url, ...root()]);
    expect(again).toMatchObject({ status: 'unchanged', enclave: byStranger['enclave'] });
    const status = await script(
      'status',
      [server.url, ...root(), '--rpc-url', fixture.node.url, ...openConfigOptions()],
      {},
    );
    expect(status.exit).toBe(0);
    expect(status.out).toContain('where anyone may register enclaves');
    expect(await done('status', [server.url, ...root()])).toMatchObject({ config: { isOpen: true } });
  });

  test('register_enclave --unsigned prints the time limit within which the transaction must be sent', async () => {
    const server = await startServer({ nsm: fixture.createNsm('weather') });
    const args = [server.url, ...root(), '--unsigned', '--address', stranger.toSuiAddress()];
    const { notes } = await done('register_enclave', args, stranger);
    expect(notes).toContainEqual(expect.stringContaining('within 10 minutes'));
  });

  test('update_pcrs and rotate refuse an image that needs secrets, or whose secrets are unknown', async () => {
    const otherImage = ['--pcrs', fixture.file('other.pcrs')];
    await expectRefusal('update_pcrs', otherImage, 'SECRETS_UNKNOWN');
    writeBuildRecord('other', { secrets: ['API_KEY'] });
    await expectRefusal('update_pcrs', otherImage, 'OPEN_SECRETS');
    const next = fixture.createNsm('weather', 2);
    writeFileSync(fixture.file('next.pcrs'), next.pcrsFile());
    const server = await startServer({ nsm: next });
    const rotate = [server.url, ...root(), '--pcrs', fixture.file('next.pcrs')];
    await expectRefusal('rotate', rotate, 'SECRETS_UNKNOWN');
    writeBuildRecord('next', { secrets: ['API_KEY'] });
    await expectRefusal('rotate', rotate, 'OPEN_SECRETS');
    writeBuildRecord('next', { secrets: [] });
    expect(await done('rotate', rotate)).toMatchObject({ status: 'done' });
    expect(readDeployment().applications.weather.config).toMatchObject({ version: 1, isOpen: true });
  });
});

function openConfigOptions(): string[] {
  return ofConfig(readDeployment().applications.weather.config.id).slice(2);
}
