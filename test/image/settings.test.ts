import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { forwardsOf, makeEnvironment, makeHosts, makeSettings } from '../../scripts/image/settings.ts';

const SERVER_ENV = readFileSync(new URL('../../enclave/server.env', import.meta.url), 'utf8');
const MANIFEST = { endpoints: ['api.weatherapi.com', 'example.org'], secrets: ['API_KEY'] };

describe("the image's settings", () => {
  test('start the server as in production, and lead each endpoint to a port of the parent', () => {
    expect(makeSettings(MANIFEST, makeEnvironment('weather', SERVER_ENV, false))).toBe(`env APP=weather
env HOST=127.0.0.1
env PORT=3000
env NSM_REQUIRED=true
env CLOCK_STATE=/run/clock
env LAST_END=/run/last_end
forward tcp:127.0.0.64:443 vsock:8101
forward tcp:127.0.0.65:443 vsock:8102
secrets
`);
  });

  test('ask for no secrets where the application has none', () => {
    const settings = makeSettings({ endpoints: [], secrets: [] }, makeEnvironment('dice', SERVER_ENV, false));
    expect(settings).not.toMatch(/secrets|forward/);
  });

  test("name the application's own certificate authority where it has one", () => {
    expect(makeEnvironment('weather', SERVER_ENV, true)).toContain('NODE_EXTRA_CA_CERTS=/app/ca.pem');
  });

  test("hold the application's own ones, whatever is in their values", () => {
    const clients = 'SALT_CLIENTS=[{"issuer": "https://id.example.com", "a": "b=c # d"}]';
    expect(makeEnvironment('salt', `${SERVER_ENV}\n# a comment\n${clients}\n`, false)).toContain(clients);
  });

  test.each([
    ['PORT=x', /PORT is set twice/],
    ['APP=salt', /APP is set twice/],
    ['LOG_LEVEL=loud', /LOG_LEVEL must be/],
    ['LOG_LEVEL', /a line must be NAME=value: LOG_LEVEL$/],
    [' LOG_LEVEL=info', /a line must be NAME=value/],
    ['export LOG_LEVEL=info', /a line must be NAME=value/],
  ])('that the server would refuse stop the build: %s', (line, message) => {
    expect(() => makeEnvironment('weather', `${SERVER_ENV}${line}\n`, false)).toThrow(message);
  });
});

test('the names of endpoints lead to their bridges', () => {
  expect(makeHosts(MANIFEST)).toBe(
    '127.0.0.1 localhost\n127.0.0.64 api.weatherapi.com\n127.0.0.65 example.org\n',
  );
  expect(forwardsOf(MANIFEST)[1]).toEqual({ host: 'example.org', address: '127.0.0.65', port: 8102 });
});
