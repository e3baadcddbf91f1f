/**
 * Runs the pages' commands that need `make dev-sui` against its service, with the URLs and the folder of the
 * test.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { DevelopmentTrust } from '../../../src/testing/development_trust.ts';
import { type DevSui, startDevSui } from '../../../src/toolchain/dev/sui/service.ts';
import { scriptProcess } from '../../src/cli/sui/run_script.ts';
import { startWeather } from '../../src/server/support.ts';

const EXPORT = 'export SUI_PRIVATE_KEY=$(cat out/dev-sui.key)';

/** Returns the commands of the page's block that begins with the export of the key of `make dev-sui`. */
function readLines(page: string): string[] {
  const text = readFileSync(new URL(`../../../${page}`, import.meta.url), 'utf8');
  const blocks = [...text.matchAll(/```sh\n(.*?)```/gs)].map(([, block = '']) => block.trim().split('\n'));
  const [lines = [], ...more] = blocks.filter(([head]) => head === EXPORT);
  expect(more, `${page}: one block`).toEqual([]);
  return lines.slice(1);
}

let out: string;
let service: DevSui;
beforeEach(async () => {
  out = mkdtempSync(join(tmpdir(), 'dev-sui-'));
  service = await startDevSui({ port: 0, faucetPort: 0, folder: pathToFileURL(`${out}/`), env: {} });
});
afterEach(async () => {
  await service.close();
  rmSync(out, { recursive: true });
});

/** Starts an emulated enclave under the same root, as make dev does in another process. */
async function startEnclave(): Promise<string> {
  const trust = DevelopmentTrust.load(pathToFileURL(`${out}/`), 'weather');
  trust.save();
  const { server } = await startWeather({ nsm: trust.nsm });
  return server.url;
}

type Variables = Readonly<Record<string, string>>;

/**
 * Runs a line `npx --offline sui-enclave name …`.
 *
 * @param urls the enclaves' URLs, by the URLs on the page that they replace
 */
async function runLine(line: string, urls: Variables, variables: Variables = {}) {
  const [, name = '', commandLine = ''] = /^npx --offline sui-enclave (\w+) (.*)$/.exec(line) ?? [];
  const args = [...commandLine.matchAll(/"([^"]*)"(?=\s|$)|'([^']*)'|(\S+)/g)].map(
    ([, a, b, c]) => a ?? b ?? c ?? '',
  );
  const commandArguments = args.map((arg) =>
    (urls[arg] ?? arg)
      .replace(/^\$(\w+)$/, (_, variable: string) => variables[variable] ?? '')
      .replace(/^out\//, `${out}/`),
  );
  const env = {
    SUI_PRIVATE_KEY: readFileSync(join(out, 'dev-sui.key'), 'utf8').trim(),
    DEPLOYMENTS: join(out, 'deployments'),
  };
  const { exit, json, err } = await scriptProcess(
    name,
    [...commandArguments, '--rpc-url', service.node.url, '--json'],
    env,
  );
  return { name, exit, json: json(), err };
}

/**
 * Runs each line, which must succeed, and sets the variables from comments like `# prints the property:
 * VARIABLE`.
 *
 * @returns the names of the commands
 */
async function follow(lines: readonly string[], urls: Variables): Promise<string[]> {
  const variables: Record<string, string> = {};
  let latest: Record<string, unknown> = {};
  const commandNames: string[] = [];
  for (const line of lines) {
    const [, property = '', variable = ''] = /^# prints the (\w+): (\w+)$/.exec(line) ?? [];
    if (variable !== '') {
      variables[variable] = String(latest[property]);
      continue;
    }
    const { name, exit, json, err } = await runLine(line, urls, variables);
    expect(exit, `${name}: ${err}`).toBe(0);
    expect(json, name).toMatchObject({ status: 'done' });
    commandNames.push(name);
    latest = json;
  }
  return commandNames;
}

function mintedReadings() {
  const { node, account } = service;
  return node.ledger.owned(account.address).filter(({ type }) => type.endsWith('::WeatherNFT'));
}

const FIRST = 'http://127.0.0.1:3000';

test('the commands of "On one machine" publish a package, and finally submit an answer of the rotated enclave', async () => {
  const urls = { [FIRST]: await startEnclave(), 'http://127.0.0.1:3001': await startEnclave() };
  expect(await follow(readLines('src/library/sui/README.md'), urls)).toEqual([
    'publish',
    'create_config',
    'register_enclave',
    'status',
    'update_weather',
    'rotate',
    'submit',
  ]);
  expect(mintedReadings()).toHaveLength(2);
}, 120_000);

test('the commands of "From a signed reading to an object on Sui" mint a reading, and another after the enclave restarts and is registered', async () => {
  const lines = readLines('scripts/docs/START.md');
  const commandNames = await follow(lines, { [FIRST]: await startEnclave() });
  expect(commandNames).toEqual(['publish', 'create_config', 'register_enclave', 'submit', 'status']);
  expect(mintedReadings()).toHaveLength(1);

  // The restarted enclave has a new key.
  const urls = { [FIRST]: await startEnclave() };
  const findLine = (name: string) =>
    lines.find((line) => line.startsWith(`npx --offline sui-enclave ${name} `)) ?? '';
  expect((await runLine(findLine('submit'), urls)).json).toMatchObject({ code: 'NOT_REGISTERED' });
  expect(mintedReadings()).toHaveLength(1);
  await follow([findLine('register_enclave'), findLine('submit')], urls);
  expect(mintedReadings()).toHaveLength(2);
}, 120_000);
