import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { forwardsOf, makeHosts, makeSettings } from '../../scripts/image/settings.ts';

const SERVER_ENV = readFileSync(new URL('../../enclave/server.env', import.meta.url), 'utf8');
const MANIFEST = { endpoints: ['api.weatherapi.com', 'example.org'], secrets: ['API_KEY'] };

describe("the image's settings", () => {
  test('start the server as in production, and lead each endpoint to a port of the parent', () => {
    expect(makeSettings('weather', MANIFEST, SERVER_ENV, false)).toBe(`env APP=weather
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
    const settings = makeSettings('dice', { endpoints: [], secrets: [] }, SERVER_ENV, false);
    expect(settings).not.toMatch(/secrets|forward/);
  });

  test("name the application's own certificate authority where it has one", () => {
    expect(makeSettings('weather', MANIFEST, SERVER_ENV, true)).toMatch(
      /^env NODE_EXTRA_CA_CERTS=\/app\/ca.pem$/m,
    );
  });

  test('that the server would refuse stop the build', () => {
    expect(() => makeSettings('weather', MANIFEST, `${SERVER_ENV}PORT=x\n`, false)).toThrow(/PORT must be/);
  });
});

test('the names of endpoints lead to their bridges', () => {
  expect(makeHosts(MANIFEST)).toBe(
    '127.0.0.1 localhost\n127.0.0.64 api.weatherapi.com\n127.0.0.65 example.org\n',
  );
  expect(forwardsOf(MANIFEST)[1]).toEqual({ host: 'example.org', address: '127.0.0.65', port: 8102 });
});
