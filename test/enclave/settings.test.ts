import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { makeEnvironment, makeSettings } from '../../src/cli/image/settings.ts';
import { canRun, INIT, temporaryFolder } from './init.ts';

const SERVER_ENV = readFileSync(new URL('../../enclave/server.env', import.meta.url), 'utf8');

function runInit(...args: string[]) {
  return spawnSync(INIT, args, { encoding: 'utf8' });
}

function parseSettings(text: string) {
  const path = join(temporaryFolder(), 'enclave.conf');
  writeFileSync(path, text);
  return runInit('settings', path);
}

describe.runIf(canRun)('init', () => {
  test('parses the settings that the build writes', () => {
    const manifest = { endpoints: ['api.weatherapi.com', 'example.org'], secrets: ['API_KEY'] };
    const text = makeSettings(manifest, makeEnvironment('weather', manifest, SERVER_ENV, true));
    expect(parseSettings(text)).toMatchObject({ status: 0, stdout: text, stderr: '' });
  });

  test('parses the settings of an image with metrics and events', () => {
    const manifest = { endpoints: [], secrets: [] };
    const env = `${SERVER_ENV}METRICS_PORT=9200\nEVENTS=true\n`;
    const text = makeSettings(manifest, makeEnvironment('weather', manifest, env, false));
    expect(text).toContain('\ninbound vsock:9100 tcp:127.0.0.1:9200\nevents\n');
    expect(parseSettings(text)).toMatchObject({ status: 0, stdout: text, stderr: '' });
  });

  test.each([
    'exec /bin/sh\n',
    'env NAME\n',
    'forward tcp:127.0.0.64:443\n',
    'forward vsock:443 vsock:8101\n',
    'forward tcp:127.0.0.64:443 tcp:10.0.0.1:443\n',
    'forward tcp:localhost:443 vsock:8101\n',
    'forward tcp:127.0.0.64:0 vsock:8101\n',
    'forward tcp:127.0.0.64:65536 vsock:8101\n',
    'forward tcp:127.0.0.64:443 vsock:3:8101\n',
    'forward tcp:127.0.0.64:443 vsock:8101x\n',
    'forward tcp::443 vsock:8101\n',
    'inbound vsock:9100\n',
    'inbound tcp:127.0.0.1:9100 vsock:9100\n',
    'inbound vsock:9100 vsock:9000\n',
    'inbound vsock:9100 tcp:127.0.0.1:0\n',
    'events 7779\n',
    'secrets now\n',
    'secrets',
    '\n',
  ])('rejects the line %j', (line) => {
    expect(parseSettings(`env A=b\n${line}`)).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/^settings: a line is not understood/),
    });
  });

  test.each([
    [],
    ['sh'],
    ['bridge'],
    ['bridge', 'tcp:127.0.0.1:1'],
    ['bridge', 'tcp:127.0.0.1:1', 'tcp:127.0.0.1:1', '5'],
    ['bridge', 'udp:1', 'tcp:127.0.0.1:1'],
    ['correction', 'moon', '0'],
    ['nsm-time', 'nonce'],
  ])('rejects the arguments %j', (...args) => {
    expect(runInit(...(args as string[]))).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^usage/),
    });
  });
});
