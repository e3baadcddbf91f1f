/** Tests which answers contain a valid temperature; other failures of the service are in app.test.ts. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createUpstream } from 'sui-enclave-service/upstream';
import { expect, onTestFinished, test } from 'vitest';
import { BOUNDS, WeatherService } from '../upstream.ts';

/** Reads from a service whose answer has these properties, or this body. */
async function read(members: object | string) {
  const body = typeof members === 'string' ? members : JSON.stringify({ current: members });
  const server = createServer((_request, response) => response.end(body));
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

test.each([100, 99.9, 0, -0.4, -100])('%d °C is a reading', async (temp_c) => {
  expect(await read({ temp_c, last_updated_epoch: 1_700_000_000 })).toEqual({
    celsius: temp_c,
    timestampMs: 1_700_000_000_000n,
  });
});

test.each([100.1, -100.1])('%d °C is refused', async (temp_c) => {
  await expect(read({ temp_c, last_updated_epoch: 1_700_000_000 })).rejects.toMatchObject({
    code: 'WEATHER_MALFORMED',
  });
});

test.each([1e11 + 1, -1, 1.5, '1700000000', null, undefined])(
  '%o is refused as a time',
  async (last_updated_epoch) => {
    await expect(read({ temp_c: 13, last_updated_epoch })).rejects.toMatchObject({
      code: 'WEATHER_MALFORMED',
    });
  },
);
