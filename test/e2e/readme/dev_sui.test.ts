/** The block of "On one machine" in src/library/sui/README.md, run as written against the service of `make dev-sui`. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type DevSui, startDevSui } from '../../../src/commands/dev/sui/service.ts';
import { DevelopmentTrust } from '../../../src/testing/development_trust.ts';
import { scriptProcess } from '../../src/commands/sui/run_script.ts';
import { startWeather } from '../../src/server/support.ts';

const README = readFileSync(new URL('../../../src/library/sui/README.md', import.meta.url), 'utf8');
const [, block = ''] = /^## On one machine$.*?```sh\n(.*?)```/ms.exec(README) ?? [];

const out = mkdtempSync(join(tmpdir(), 'dev-sui-'));
let service: DevSui;
beforeAll(async () => {
  service = await startDevSui({ port: 0, faucetPort: 0, folder: pathToFileURL(`${out}/`), env: {} });
});
afterAll(async () => {
  await service.close();
  rmSync(out, { recursive: true });
});

test('from publish to an answer of the rotated enclave, every line does what it says', async () => {
  const { node } = service;
  // Another process of the same root, as make dev is.
  const trust = () => DevelopmentTrust.load(pathToFileURL(`${out}/`), 'weather');
  trust().save();
  const enclaves = [await startWeather({ nsm: trust().nsm }), await startWeather({ nsm: trust().nsm })];
  const [first = '', second = ''] = enclaves.map(({ server }) => server.url);
  const [head = '', ...lines] = block.split('\n').filter((line) => line !== '');
  expect(head).toBe('export SUI_PRIVATE_KEY=$(cat out/dev-sui.key)');
  const env = {
    SUI_PRIVATE_KEY: readFileSync(join(out, 'dev-sui.key'), 'utf8').trim(),
    DEPLOYMENTS: join(out, 'deployments'),
  };
  const variables: Record<string, string> = {};
  const run = async (line: string) => {
    const [, name = '', rest = ''] = /^npm run (\w+) -- (.*)$/.exec(line) ?? [];
    const args = [...rest.matchAll(/"([^"]*)"(?=\s|$)|'([^']*)'|(\S+)/g)].map(
      ([, a, b, c]) => a ?? b ?? c ?? '',
    );
    const given = args.map((arg) =>
      arg
        .replace(/^\$(\w+)$/, (_, variable: string) => variables[variable] ?? '')
        .replace('http://127.0.0.1:3000', first)
        .replace('http://127.0.0.1:3001', second)
        .replace(/^out\//, `${out}/`),
    );
    const result = await scriptProcess(name, [...given, '--rpc-url', node.url, '--json'], env);
    expect(result.exit, `${name}: ${result.out}${result.err}`).toBe(0);
    return [name, result.json()] as const;
  };
  let latest: Record<string, unknown> = {};
  const done: string[] = [];
  for (const line of lines) {
    const [, property = '', variable = ''] = /^# prints the (\w+): (\w+)$/.exec(line) ?? [];
    if (variable === '') {
      const [name, json] = await run(line);
      done.push(name);
      expect(json, name).toMatchObject({ status: 'done' });
      latest = json;
    } else variables[variable] = String(latest[property]);
  }
  expect(done).toEqual([
    'publish',
    'create_config',
    'register_enclave',
    'status',
    'update_weather',
    'rotate',
    'submit',
  ]);
  // Each Move call of these, once simulated and once executed.
  expect(node.executor.vm?.runs).toBe(12);
  expect(
    node.ledger.owned(service.account.address).filter(({ type }) => type.endsWith('::WeatherNFT')),
  ).toHaveLength(2);
}, 120_000);
