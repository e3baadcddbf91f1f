/** A test's server has no network, as in an enclave, unless the test asks for it. */
import { once } from 'node:events';
import { connect, type LookupFunction } from 'node:net';
import { expect, test } from 'vitest';
import { startServer } from '../../../src/testing/start_server.ts';

/** Connects to another machine by a name that is never resolved. @returns the message of the failure */
async function connectElsewhere(): Promise<string> {
  const lookup: LookupFunction = (_name, _options, callback) => callback(new Error('looked up'), '');
  const [{ message }] = await once(connect({ host: 'feed.invalid', port: 443, lookup }), 'error');
  return message;
}

test('while a server runs, connections to other machines fail with an error that names upstream()', async () => {
  const server = await startServer();
  expect((await server.get('/health_check')).status).toBe(200);
  expect(await connectElsewhere()).toMatch(
    /^a connection to feed\.invalid .* send requests to it by upstream\(\)/,
  );
});

test('startServer allows connections to other machines with allowNetwork', async () => {
  await startServer({ allowNetwork: true });
  expect(await connectElsewhere()).toBe('looked up');
});
