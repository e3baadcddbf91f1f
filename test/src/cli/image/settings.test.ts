import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  listForwards,
  makeEnvironment,
  makeHosts,
  makeSettings,
} from '../../../../src/cli/image/settings.ts';

const SERVER_ENV = readFileSync(new URL('../../../../enclave/server.env', import.meta.url), 'utf8');
const MANIFEST = { endpoints: ['api.weatherapi.com', 'example.org'], secrets: ['API_KEY'] };

describe("the image's settings", () => {
  test('start the server as in production, and forward each endpoint to a port of the parent', () => {
    expect(
      makeSettings(MANIFEST, makeEnvironment('weather', MANIFEST, SERVER_ENV, false)),
    ).toBe(`env APP=weather
env HOST=127.0.0.1
env PORT=3000
env NSM_REQUIRED=true
env CLOCK_REQUIRED=true
env CLOCK_STATE=/run/clock/state
env LAST_END=/run/last_end
forward tcp:127.0.0.64:443 vsock:8101
forward tcp:127.0.0.65:443 vsock:8102
secrets
`);
  });

  test('ask for no secrets if the application declares no secrets', () => {
    const none = { endpoints: [], secrets: [] };
    const settings = makeSettings(none, makeEnvironment('dice', none, SERVER_ENV, false));
    expect(settings).not.toMatch(/secrets|forward/);
  });

  test("name the application's own certificate authority, if any", () => {
    expect(makeEnvironment('weather', MANIFEST, SERVER_ENV, true)).toContain(
      'NODE_EXTRA_CA_CERTS=/app/ca.pem',
    );
  });

  test("contain the application's own settings, with any values", () => {
    const clients = 'SALT_CLIENTS=[{"issuer": "https://id.example.com", "a": "b=c # d"}]';
    expect(makeEnvironment('salt', MANIFEST, `${SERVER_ENV}\n# a comment\n${clients}\n`, false)).toContain(
      clients,
    );
  });

  test.each([
    ['PORT=x', /PORT is set twice/],
    ['APP=salt', /APP is set twice/],
    ['METRICS_PORT=0', /METRICS_PORT must be a fixed port in an image/],
    ['LOG_LEVEL=loud', /LOG_LEVEL must be/],
    ['LOG_LEVEL', /a line must be NAME=value: LOG_LEVEL$/],
    [' LOG_LEVEL=info', /a line must be NAME=value/],
    ['export LOG_LEVEL=info', /a line must be NAME=value/],
    ['CORS_ORIGINS="https://a.example"', /CORS_ORIGINS: quotes would be part of the value: leave them out$/],
    ["NOTE='a b'", /NOTE: quotes would be part/],
    ['BODY_LIMIT_BYTES=2048 # small', /BODY_LIMIT_BYTES: a comment would be part of the value/],
    ['NOTE=[1] # two things', /NOTE: a comment would be part/],
    ['NOTE=x\t# y', /NOTE: a comment would be part/],
    ['API_KEY=hunter2', /API_KEY must not be here: .* image, which is public/],
    ['API_KEY_FILE=/secure/key', /API_KEY_FILE must not be here/],
  ])('stop the build if they contain %s', (line, message) => {
    expect(() => makeEnvironment('weather', MANIFEST, `${SERVER_ENV}${line}\n`, false)).toThrow(message);
  });

  test.each(['NOTE="', 'NOTE=say "a" or "b"', 'NOTE=a#b', 'NOTE=#1', 'NOTE=["a", "b"]', 'API_KEYS=2'])(
    'may have quotes and special characters within a value: %s',
    (line) => {
      expect(makeEnvironment('weather', MANIFEST, `${SERVER_ENV}${line}\n`, false)).toContain(line);
    },
  );

  test('are refused without repeating the value', () => {
    for (const line of ['API_KEY=hunter2', 'NOTE="hunter2"', 'NOTE=hunter2 # x', 'note=hunter2']) {
      expect(() => makeEnvironment('weather', MANIFEST, line, false)).toThrow(/^((?!hunter2).)*$/);
    }
  });
});

test('/etc/hosts resolves the names of endpoints to the addresses of their forwards', () => {
  expect(makeHosts(MANIFEST)).toBe(
    '127.0.0.1 localhost\n127.0.0.64 api.weatherapi.com\n127.0.0.65 example.org\n',
  );
  expect(listForwards(MANIFEST)[1]).toEqual({ host: 'example.org', address: '127.0.0.65', port: 8102 });
});
