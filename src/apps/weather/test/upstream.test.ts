/** Tests which answers contain a valid temperature; other failures of the service are in app.test.ts. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createUpstream } from 'sui-enclave-service/upstream';
import { expect, onTestFinished, test } from 'vitest';
import { BOUNDS, WeatherService } from '../upstream.ts';

/** Reads from a service whose answer has these properties, or this body. */
async function read(members: object | string) {
  const current = typeof members === 'string' ? members : JSON.stringify({ current: members });
  const server = createServer((_request, response) => response.end(current));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return await new WeatherService(createUpstream(`http://127.0.0.1:${port}`)(BOUNDS)).read('Paris', 'key');
}

test.each([
  [100, 100n],
  [99.9, 99n],
  [0, 0n],
])('%d °C is %d', async (temp_c, temperature) => {
  expect(await read({ temp_c, last_updated_epoch: 1_700_000_000 })).toEqual({
    temperature,
    timestampMs: 1_700_000_000_000n,
  });
});

// JSON.stringify makes 0 of it.
test.each(['-0', '-0.0'])('%s °C is 0', async (text) => {
  const answer = `{"current":{"temp_c":${text},"last_updated_epoch":1700000000}}`;
  expect(await read(answer)).toMatchObject({ temperature: 0n });
});

test.each([
  [100.1, 'WEATHER_MALFORMED'],
  [-0.1, 'WEATHER_BELOW_ZERO'],
  [-0.4, 'WEATHER_BELOW_ZERO'],
  [-100, 'WEATHER_BELOW_ZERO'],
  [-100.1, 'WEATHER_MALFORMED'],
])('%d °C is rejected with %s', async (temp_c, code) => {
  await expect(read({ temp_c, last_updated_epoch: 1_700_000_000 })).rejects.toMatchObject({ code });
});

test.each([1e11 + 1, -1, 1.5, '1700000000', null, undefined])(
  '%o is not a time',
  async (last_updated_epoch) => {
    await expect(read({ temp_c: 13, last_updated_epoch })).rejects.toMatchObject({
      code: 'WEATHER_MALFORMED',
    });
  },
);
