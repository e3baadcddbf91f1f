/** Limits on the requests to an upstream. */
import { expect, test } from 'vitest';
import { createBudget } from '../../../src/service/budget.ts';
import { createUpstream } from '../../../src/service/upstream.ts';
import { host } from './hosts.ts';

test('a client sends no request beyond its budget, and refused requests do not count', async () => {
  let requestCount = 0;
  const { origin } = await host((_request, response) => {
    requestCount++;
    response.end('{}');
  });
  const client = createUpstream(origin)({ budget: createBudget({ UPSTREAM_CALLS_PER_MINUTE: '2' }) });
  await expect(client.get('//')).rejects.toMatchObject({ code: 'APPLICATION' });
  await expect(client.get('/', { signal: AbortSignal.abort() })).rejects.toThrow();
  await client.get('/');
  await client.get('/');
  // The count is not an interceptor: removing or adding interceptors does not avoid it.
  client.interceptors.request.clear();
  client.interceptors.request.use((config) => ({ ...config, url: '/other' }));
  await expect(client.get('/')).rejects.toMatchObject({
    code: 'UPSTREAM_BUDGET_EXCEEDED',
    retryAfterSeconds: 30,
  });
  expect(requestCount).toBe(2);
});
