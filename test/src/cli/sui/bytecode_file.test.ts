/**
 * Publishes a package's bytecode from a file, but only from the file that `compile` wrote for this package
 * and network.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { digestBytecodeFile } from '../../../../src/cli/sui/bytecode_file.ts';
import {
  compileModule,
  enclaveModules,
  type Lineage,
  publishLineage,
  upgradeLineage,
} from '../../devnet/package_lineage.ts';
import { callScript } from '../run.ts';
import { ChainFixture } from './chain_fixture.ts';

let fixture: ChainFixture;
let file: string;
let digest: string;
let content: Record<string, unknown>;

beforeAll(async () => {
  fixture = await ChainFixture.start();
  file = fixture.file('weather.json');
  const { status, stdout } = await callScript(
    '../toolchain/move/compile_command.ts',
    ['weather', '--network', 'localnet', '--out', file, '--json'],
    { env: { SUI_FRAMEWORK_DIR: fixture.framework() } },
  );
  expect(status).toBe(0);
  digest = JSON.parse(stdout).digest;
  content = JSON.parse(readFileSync(file, 'utf8'));
});
afterAll(() => fixture.close());

const publish = (...options: string[]) =>
  fixture.run('publish', 'weather', '--network', 'localnet', ...options);

/** Writes a changed file. @returns the options with its path and its digest */
function writeChanged(changes: Record<string, unknown>): string[] {
  const changedFile = fixture.file('changed.json');
  writeFileSync(changedFile, JSON.stringify({ ...content, ...changes }));
  return ['--bytecode', changedFile, '--digest', digestBytecodeFile(readFileSync(changedFile))];
}

const publishChanged = (changes: Record<string, unknown>) => publish('--again', ...writeChanged(changes));

test('compile prints the SHA-256 of the file, which names chain, framework, dependencies and modules', () => {
  expect(digest).toBe(digestBytecodeFile(readFileSync(file)));
  expect(content).toMatchObject({
    chain: 'localnet',
    framework: expect.stringContaining("Sui's framework in "),
    is_stub: false,
    packages: ['enclave', 'weather'],
    dependencies: expect.arrayContaining([expect.stringMatching(/^0x0{63}[12]$/)]),
  });
});

test('compile refuses the stub of the framework', async () => {
  const { status, stdout } = await callScript('../toolchain/move/compile_command.ts', [
    'weather',
    '--network',
    'testnet',
    '--json',
  ]);
  expect(JSON.parse(stdout)).toMatchObject({ code: 'STUB_FRAMEWORK' });
  expect(status).toBe(1);
});

test('the file is published without a compiler, and its digest is printed', async () => {
  const { exit, json } = await publish('--bytecode', file, '--digest', digest);
  expect(json()).toMatchObject({ status: 'done', modules: (content['modules'] as string[]).length });
  expect(json()['notes']).toContainEqual(expect.stringContaining(digest));
  expect(exit).toBe(0);
});

test('the shared objects that the package creates at its publication are recorded in the deployment file', async () => {
  const board = await compileModule(`module own::board;
public struct Board has key { id: UID }
public struct Ticket has key { id: UID }
fun init(ctx: &mut TxContext) {
    transfer::share_object(Board { id: object::new(ctx) });
    transfer::transfer(Ticket { id: object::new(ctx) }, ctx.sender());
}
`);
  const modules = board.map((module) => Buffer.from(module).toString('base64'));
  const { exit, json, out } = await publishChanged({ modules });
  expect(exit, out).toBe(0);
  const deployments = JSON.parse(readFileSync(fixture.file('deployments/localnet.json'), 'utf8'));
  const { package: packageId, objects } = deployments.applications.weather;
  expect(packageId).toBe(json()['package']);
  expect(objects).toEqual([
    { id: expect.stringMatching(/^0x[0-9a-f]{64}$/), type: `${packageId}::board::Board` },
  ]);
});

test('an upgrade records the version of move/enclave that the package links to', {
  timeout: 60_000,
}, async () => {
  const first = await publishLineage(fixture, await enclaveModules());
  const second = await upgradeLineage(fixture, first, await enclaveModules());
  const modules = (await compileModule('module own::app;')).map((module) =>
    Buffer.from(module).toString('base64'),
  );
  const linkTo = ({ packageId }: Lineage) => ({
    modules,
    packages: ['weather'],
    dependencies: [...(content['dependencies'] as string[]), packageId],
  });
  const readEntry = () =>
    JSON.parse(readFileSync(fixture.file('deployments/localnet.json'), 'utf8')).applications.weather;
  await publishChanged(linkTo(first));
  expect(readEntry()).toMatchObject({ version: 1, enclavePackage: first.packageId });
  const options = ['weather', '--network', 'localnet', ...writeChanged(linkTo(second))];
  const upgraded = await fixture.done('upgrade', ...options);
  expect(readEntry()).toMatchObject({
    package: upgraded['package'],
    version: 2,
    enclavePackage: second.packageId,
  });
});

test.each([
  ['a file without a digest', () => publish('--bytecode', file)],
  ['a digest without a file', () => publish('--digest', digest)],
])('%s is refused', async (_name, run) => {
  const { exit, json } = await run();
  expect([exit, json()['code']]).toEqual([2, 'USAGE']);
});

describe('a bytecode file is refused before anything is sent:', () => {
  test.each<[string, () => Promise<{ exit: number | null; json(): Record<string, unknown> }>, string]>([
    [
      'whose digest is not the one in --digest',
      () => publish('--bytecode', file, '--digest', '0'.repeat(64)),
      'BYTECODE_FILE',
    ],
    ['for another chain', () => publishChanged({ chain: 'testnet' }), 'BYTECODE_FILE'],
    ['of another package', () => publishChanged({ packages: ['weather', 'enclave'] }), 'BYTECODE_FILE'],
    ['with an unknown property', () => publishChanged({ owner: '0x1' }), 'BYTECODE_FILE'],
    ['with a module that is not base64', () => publishChanged({ modules: ['!'] }), 'BYTECODE_FILE'],
    ['without modules', () => publishChanged({ modules: [] }), 'BYTECODE_FILE'],
    ['with a short id', () => publishChanged({ dependencies: ['0x2'] }), 'BYTECODE_FILE'],
    [
      'with control characters in the description of the framework',
      () => publishChanged({ framework: '\u001b[2J' }),
      'BYTECODE_FILE',
    ],
    ['of more than a mebibyte', () => publishChanged({ modules: ['A'.repeat(1_100_000)] }), 'BYTECODE_FILE'],
    [
      'compiled against the stub, even on the model of a node',
      () => publishChanged({ is_stub: true }),
      'STUB_FRAMEWORK',
    ],
  ])('%s', async (_name, run, code) => {
    const executedBefore = fixture.node.ledger.executed.length;
    const { exit, json } = await run();
    expect(json()).toMatchObject({ code });
    expect(exit).toBe(code === 'BYTECODE_FILE' ? 2 : 1);
    expect(fixture.node.ledger.executed.length).toBe(executedBefore);
  });

  test('that is not JSON', async () => {
    const brokenFile = fixture.file('broken.json');
    writeFileSync(brokenFile, '{');
    const { json } = await publish('--bytecode', brokenFile, '--digest', digestBytecodeFile('{'));
    expect(json()).toMatchObject({ code: 'BYTECODE_FILE' });
  });

  test('that is missing', async () => {
    const { json } = await publish('--bytecode', fixture.file('none.json'), '--digest', digest);
    expect(json()).toMatchObject({ code: 'UNREADABLE_FILE' });
  });
});
