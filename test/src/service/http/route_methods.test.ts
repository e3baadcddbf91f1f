/** Tests the preflights of browsers for an application's own routes. */
import express, { Router } from 'express';
import { describe, expect, test } from 'vitest';
import { methodsAt } from '../../../../src/service/http/route_methods.ts';
import { startServer } from '../../server/support.ts';

const emptyHandler = () => {};

function createRouter(): Router {
  const router = Router();
  router.get('/got', emptyHandler);
  router.put('/thing', emptyHandler).delete('/thing', emptyHandler);
  router.all('/all', emptyHandler);
  router.route(['/a', '/b']).patch(emptyHandler);
  router.get(/^\/re\d$/, emptyHandler);
  router.put('/items/:id', emptyHandler);
  const nested = Router();
  nested.put('/', emptyHandler).delete('/deep', emptyHandler);
  router.use('/nested/:id', nested);
  router.use('/static', express.static('/none'));
  router.use((_error: unknown, _request: unknown, _response: unknown, _next: unknown) => {});
  return router;
}

test.each([
  ['/got', 'GET, HEAD'],
  ['/thing', 'PUT, DELETE'],
  ['/all', 'GET, HEAD, POST, PUT, PATCH, DELETE'],
  ['/a', 'PATCH'],
  ['/b', 'PATCH'],
  ['/re7', 'GET, HEAD'],
  ['/items/7', 'PUT'],
  ['/items/%zz', 'GET, HEAD, POST'],
  ['/nested/7', 'PUT'],
  ['/nested/7/', 'PUT'],
  ['/nested/7/deep', 'DELETE'],
  ['/nested/7/none', 'GET, HEAD, POST'],
  ['/static', 'GET, HEAD, POST'],
  ['/static/a.txt', 'GET, HEAD, POST'],
  ['/none', 'GET, HEAD, POST'],
  ['/', 'GET, HEAD, POST'],
])('the router at %s has the methods %s', (path, methods) => {
  expect(methodsAt(createRouter(), path).join(', ')).toBe(methods);
});

const ORIGIN = 'https://a.example';

async function start(cors?: 'own', corsOrigins = ORIGIN) {
  const router = createRouter();
  router.options('/own', (_request, response) => {
    response.set('access-control-allow-methods', 'QUERY').sendStatus(204);
  });
  router.get(
    '/open',
    (_request, response) => void response.set('access-control-allow-origin', 'null').json({}),
  );
  const routes = { prefix: '/x', router, ...(cors && { cors }) };
  return await startServer({
    module: { signs: [], create: () => ({ routes }) },
    manifest: { endpoints: [], secrets: [] },
    env: { CORS_ORIGINS: corsOrigins },
  });
}

const preflight = { 'access-control-request-method': 'PUT', 'access-control-request-headers': 'x-a' };

describe('a preflight', () => {
  test.each([
    ['/x/thing', 'PUT, DELETE'],
    ['/x', 'GET, HEAD, POST'],
    ['/xy', 'GET, HEAD, POST'],
    ['/process_data', 'GET, HEAD, POST'],
  ])('of %s allows %s to the origins of the server', async (path, methods) => {
    const { url } = await start();
    const ask = (origin: string) =>
      fetch(url + path, { method: 'OPTIONS', headers: { origin, ...preflight } });
    const { status, headers } = await ask(ORIGIN);
    expect([status, headers.get('access-control-allow-origin')]).toEqual([204, ORIGIN]);
    expect(headers.get('access-control-allow-methods')).toBe(methods);
    expect(headers.get('access-control-allow-headers')).toBe('x-a');
    const otherAnswer = await ask('https://b.example');
    expect([otherAnswer.status, otherAnswer.headers.get('access-control-allow-methods')]).toEqual([
      204,
      null,
    ]);
  });

  test("with cors: 'own' reaches the router, but only below its prefix", async () => {
    const { url, get } = await start('own', '*');
    const ask = (path: string) =>
      fetch(url + path, { method: 'OPTIONS', headers: { origin: ORIGIN, ...preflight } });
    const ownAnswer = await ask('/x/own');
    expect([ownAnswer.status, ownAnswer.headers.get('access-control-allow-methods')]).toEqual([204, 'QUERY']);
    expect(ownAnswer.headers.get('access-control-allow-origin')).toBeNull();
    expect((await get('/x/open')).headers.get('access-control-allow-origin')).toBe('null');
    expect((await get('/x/none')).headers.get('access-control-allow-origin')).toBeNull();
    for (const path of ['/xy', '/process_data', '/']) {
      const { headers } = await ask(path);
      expect([path, headers.get('access-control-allow-origin')]).toEqual([path, '*']);
    }
  });

  test('with a value of cors other than own keeps the server from starting', async () => {
    const routes = { prefix: '/x', router: Router(), cors: 'any' as 'own' };
    const module = { signs: [], create: () => ({ routes }) };
    const startup = startServer({ module, manifest: { endpoints: [], secrets: [] } });
    await expect(startup).rejects.toMatchObject({ code: 'CONFIG' });
  });
});
