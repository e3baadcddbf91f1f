/**
 * Runs the commands of src/library/sui/README.md, exactly as written, against a Sui node and enclaves on
 * loopback.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import * as library from '../../../src/library/sui/index.ts';
import { ChainFixture, TESTNET_CHAIN } from '../../src/cli/sui/chain_fixture.ts';
import { scriptProcess } from '../../src/cli/sui/run_script.ts';
import { startWeather } from '../../src/server/support.ts';

const README = readFileSync(new URL('../../../src/library/sui/README.md', import.meta.url), 'utf8');

function findSection(title: string): string {
  return README.split(/^## /m).find((part) => part.startsWith(title)) ?? '';
}

interface Line {
  readonly env: Record<string, string>;
  readonly name: string;
  readonly args: string[];
}

/** Returns each line that runs a script, parsed into its environment, the script's name and its arguments. */
function readCommands(title: string): Line[] {
  const blocks = [...findSection(title).matchAll(/```sh\n(.*?)```/gs)].map(([, block = '']) => block);
  const lines = blocks
    .join('')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [, variable, value = '', name = '', commandLine = ''] =
      /^(?:(\w+)=(\S+) )?(?:npx --offline sui-enclave|npm run) ([\w:]+)(?: --)? (.*)$/.exec(line) ?? [];
    const args = [...commandLine.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
      (match) => match.slice(1).find(Boolean) ?? '',
    );
    return { env: variable === undefined ? {} : { [variable]: value }, name, args };
  });
}

let fixture: ChainFixture;
beforeAll(async () => {
  fixture = await ChainFixture.start(scriptProcess);
});
afterAll(() => fixture.close());

test("the admin's path ends with an enclave of the new image, and every command of the lifecycle then succeeds", async () => {
  const { nsm, node } = fixture;
  const next = fixture.createNsm('next');
  writeFileSync(fixture.file('next.pcrs'), next.pcrsFile());
  const third = fixture.createNsm('third');
  writeFileSync(fixture.file('third.pcrs'), third.pcrsFile());
  const enclaves = [
    await startWeather({ nsm }),
    await startWeather({ nsm: next }),
    await startWeather({ nsm: third }),
    await startWeather({ nsm: third }),
  ];
  const [URL = '', NEW_URL = '', THIRD_URL = '', FOURTH_URL = ''] = enclaves.map(({ server }) => server.url);
  const variables: Record<string, string> = { URL, NEW_URL, OPERATOR: fixture.address };
  const root = ['--root', fixture.file('root.pem')];
  const pcrs = ['--pcrs', fixture.file('dev.pcrs')];
  // With these options, the commands need neither AWS, nor a built image, nor a person at the terminal.
  const extraArguments: Record<string, string[]> = {
    create_config: pcrs,
    register_enclave: root,
    submit: root,
    rotate: ['--pcrs', fixture.file('next.pcrs'), ...root],
    retire_config: ['--yes'],
    status: root,
    update_weather: root,
  };
  const prints: Record<string, [property: string, variable: string][]> = {
    create_config: [['config', 'CONFIG']],
    register_enclave: [['enclave', 'ENCLAVE']],
    rotate: [['enclave', 'SUCCESSOR']],
    add_registrar: [['registrar', 'REGISTRAR']],
  };
  const run = async ({ env, name, args }: Line) => {
    const commandArguments = args
      .map((arg) => arg.replace(/^\$(\w+)$/, (_, variable) => variables[variable] ?? ''))
      // On testnet, fakes of AWS would be refused, so localnet takes its place.
      .map((arg) => (arg === 'testnet' ? 'localnet' : arg));
    const framework = env['FRAMEWORK'] === 'fetch' ? { SUI_FRAMEWORK_DIR: fixture.framework() } : env;
    const DEPLOYMENTS = fixture.file('deployments');
    const key = { SUI_PRIVATE_KEY: fixture.admin.getSecretKey(), DEPLOYMENTS, ...framework };
    const furtherArguments = [...(extraArguments[name] ?? []), '--rpc-url', node.url, '--json'];
    const script = await scriptProcess(name, [...commandArguments, ...furtherArguments], key);
    expect(script.exit, `${name}: ${script.out}${script.err}`).toBe(0);
    for (const [property, variable] of prints[name] ?? [])
      variables[variable] = String(script.json()[property]);
    return script.json();
  };

  const lines = readCommands("The admin's path");
  expect(lines.map(({ name }) => name)).toEqual([
    'publish',
    'create_config',
    'register_enclave',
    'status',
    'update_weather',
    'submit',
    'rotate',
    'destroy_enclave',
  ]);
  for (const line of lines) expect(await run(line), line.name).toMatchObject({ status: 'done' });
  const { CONFIG = '', ENCLAVE, SUCCESSOR } = variables;
  expect(SUCCESSOR).not.toBe(ENCLAVE);
  expect(await fixture.done('status', '--config', CONFIG, NEW_URL, ...root)).toMatchObject({
    config: { configVersion: '1' },
    enclaves: [{ id: SUCCESSOR, stale: false }],
    destroyed: [ENCLAVE],
    answering: [{ trusted: true, registration: 'registered' }],
  });

  const lifecycle = readCommands('Lifecycle');
  expect(lifecycle.map(({ name }) => name)).toEqual([
    'update_config',
    'rotate',
    'end_overlap',
    'add_registrar',
    'register_enclave',
    'revoke_registrar',
    'retire_config',
    'upgrade',
  ]);
  extraArguments['rotate'] = ['--pcrs', fixture.file('third.pcrs'), ...root];
  for (const line of lifecycle) {
    // A restarted enclave has a new key.
    variables['NEW_URL'] = line.name === 'rotate' ? THIRD_URL : FOURTH_URL;
    expect(await run(line), line.name).toMatchObject({ status: 'done' });
  }
  expect(await fixture.done('status', '--config', CONFIG)).toMatchObject({
    config: { maxKeyAgeMs: String(168 * 3_600_000), registrars: [], isRetired: true },
    enclaves: expect.arrayContaining([expect.objectContaining({ id: variables['ENCLAVE'] })]),
  });
}, 240_000);

test("the contract author's path tests the package, and prints what publishing it would do", async () => {
  const [tests, publish] = readCommands("The contract author's path") as [Line, Line];
  expect([tests.name, publish.name]).toEqual(['test:move', 'publish']);
  const moveTests = await scriptProcess('../../../scripts/check/move', tests.args);
  expect(moveTests).toMatchObject({ exit: 0, out: expect.stringContaining('Test result: OK') });
  expect(publish.env).toEqual({ FRAMEWORK: 'fetch' });
  fixture.node.chainId = TESTNET_CHAIN;
  const env = { SUI_FRAMEWORK_DIR: fixture.framework() };
  const dryRun = await scriptProcess(
    'publish',
    [...publish.args, '--address', fixture.address, '--rpc-url', fixture.node.url],
    env,
  );
  expect(dryRun).toMatchObject({
    exit: 0,
    out: expect.stringContaining('The node simulated it without a failure'),
  });
});

test('the page states how many lines the pattern has', () => {
  const [, lines] = /Use `move\/weather` \((\d+) lines\) as the pattern/.exec(README) ?? [];
  const source = readFileSync(new URL('../../../move/weather/sources/weather.move', import.meta.url), 'utf8');
  expect(Number(lines)).toBe(source.trimEnd().split('\n').length);
});

test('the page names every function and every error code of the library', () => {
  for (const name of Object.keys(library)) {
    if (name.endsWith('Error') || name === 'parsePcrs') continue;
    expect(README).toContain(`\`${name}`);
  }
  for (const code of Object.keys(library.SUI_CODES)) expect(README).toContain(`\`${code}\``);
});
