/**
 * Tests which errors of an application's own routes are the caller's fault, and what the caller and the log
 * see of them.
 */
import { AxiosHeaders } from 'axios';
import express, { Router } from 'express';
import createError from 'http-errors';
import { describe, expect, test } from 'vitest';
import { ConfigError } from '../../../../src/library/errors.ts';
import { ServerError } from '../../../../src/service/errors.ts';
import { asRefusal } from '../../../../src/service/http/route_errors.ts';
import { upstreamError } from '../../../../src/service/upstream_answer.ts';
import { startServer } from '../../server/support.ts';
import { HOSTILE_THROWN } from '../hostile_thrown.ts';

const KEY = 'hunter2/+';

async function start(thrown: unknown) {
  const router = Router();
  router.get('/throws', () => {
    throw thrown;
  });
  router.get('/later', async () => {
    throw thrown;
  });
  router.get('/next', (_request, _response, next) => next(thrown));
  router.post('/json', express.json({ limit: 10 }), (_request, response) => void response.json({}));
  const server = await startServer({
    module: { signs: [], create: () => ({ routes: { prefix: '/x', router } }) },
    manifest: { endpoints: [], secrets: ['KEY'] },
    secrets: { KEY },
  });
  const answers = async () =>
    await Promise.all(
      ['/x/throws', '/x/later', '/x/next'].map(async (path) => {
        const answer = await server.get(path);
        return [answer.status, await answer.json()];
      }),
    );
  return { ...server, answers };
}

const createErrorWith = (message: string, properties: object) =>
  Object.assign(new Error(message), properties);
const refusal = { status: 404, statusCode: 404, expose: true };

describe("an error that is the caller's fault", () => {
  test.each<[number, string, string, unknown]>([
    [400, 'INVALID_INPUT', 'no name', createError(400, 'no name')],
    [401, 'REQUEST_REFUSED', 'who are you?', createError(401, 'who are you?')],
    [403, 'REQUEST_REFUSED', 'not you', createError(403, 'not you')],
    [404, 'NOT_FOUND', 'Not Found', createError(404)],
    [404, 'NOT_FOUND', 'no such thing', createError(404, new Error('no such thing'))],
    [404, 'NOT_FOUND', 'made by hand', createErrorWith('made by hand', refusal)],
    [405, 'METHOD_NOT_ALLOWED', 'Method Not Allowed', new createError.MethodNotAllowed()],
    [413, 'BODY_TOO_LARGE', 'Payload Too Large', createError(413)],
    [418, 'REQUEST_REFUSED', "I'm a Teapot", createError(418)],
    [499, 'REQUEST_REFUSED', 'odd', createError(499, 'odd')],
    [409, 'REQUEST_REFUSED', 'refused: Conflict', createError(409, 'hidden', { expose: false })],
    [499, 'REQUEST_REFUSED', 'refused: 499', createError(499, 'hidden', { expose: false })],
    [
      400,
      'INVALID_INPUT',
      'the key is [Redacted], or [Redacted]',
      createError(400, `the key is ${KEY}, or ${encodeURIComponent(KEY)}`),
    ],
  ])('has the status %i, the code %s and its message: %s', async (status, code, message, thrown) => {
    const { answers, printed } = await start(thrown);
    const expected = [status, { error: message, code }];
    expect(await answers()).toEqual([expected, expected, expected]);
    expect(printed()).not.toMatch(/request failed|hidden|hunter2/);
    expect(printed()).toMatch(new RegExp(`"level":"info".*"status":${status},"code":"${code}"`));
  });

  test('of a body parser shows the caller its message', async () => {
    const { post, printed } = await start(undefined);
    const malformed = await post('/x/json', '{"a":x}');
    expect([malformed.status, await malformed.json()]).toMatchObject([400, { code: 'INVALID_INPUT' }]);
    const large = await post('/x/json', { a: 'long enough' });
    expect([large.status, await large.json()]).toEqual([
      413,
      { error: 'request entity too large', code: 'BODY_TOO_LARGE' },
    ]);
    expect(printed()).not.toContain('request failed');
  });

  test('with a long message shows the caller only the beginning', () => {
    const { message } = asRefusal(createError(400, 'x'.repeat(1_000_000)), (text) => text) as Error;
    expect(message.length).toBeLessThan(10_000);
  });
});

describe('an error is answered with INTERNAL, without its message:', () => {
  const upstream = () =>
    createErrorWith('hunter2', { isAxiosError: true, config: {}, status: 404, response: {}, request: {} });
  const createUpstreamError = () => upstreamError('status', { headers: new AxiosHeaders() }, { status: 404 });
  test.each<[string, unknown]>([
    ['of the server', createError(500, 'hunter2')],
    ['of the server, which is exposed', createError(503, 'hunter2', { expose: true })],
    ['of an upstream', upstream()],
    ['of an upstream, with the properties of an http-errors error', Object.assign(upstream(), refusal)],
    ['that http-errors made from an error of an upstream', createError(404, upstream())],
    ['of upstream()', createUpstreamError()],
    ['that http-errors made from an error of upstream()', createError(404, createUpstreamError())],
    ['with a cause', createError(404, 'hunter2', { cause: upstream() })],
    ['with a response', createErrorWith('hunter2', { ...refusal, response: undefined })],
    ['with a request', createErrorWith('hunter2', { ...refusal, request: undefined })],
    ['with a status alone', createErrorWith('hunter2', { status: 404 })],
    ['with two different statuses', createErrorWith('hunter2', { ...refusal, status: 403 })],
    ['without expose', createErrorWith('hunter2', { status: 404, statusCode: 404 })],
    [
      'with a status that is a text',
      createErrorWith('hunter2', { ...refusal, status: '404', statusCode: '404' }),
    ],
    ['with a status of success', createErrorWith('hunter2', { ...refusal, status: 200, statusCode: 200 })],
    [
      'with a fractional status',
      createErrorWith('hunter2', { ...refusal, status: 404.5, statusCode: 404.5 }),
    ],
    ['of this project', Object.assign(new ConfigError('a port is missing'), refusal)],
    ['that is not an Error', { ...refusal, message: 'hunter2' }],
    ...HOSTILE_THROWN.map(([name, make]): [string, unknown] => [name, make()]),
  ])('%s', async (_name, thrown) => {
    const { answers, printed } = await start(thrown);
    const expected = [500, { error: 'an internal error; see the log', code: 'INTERNAL' }];
    expect(await answers()).toEqual([expected, expected, expected]);
    expect(printed()).not.toContain('hunter2');
    expect(printed()).toContain('request failed');
  });
});

test("the error handler keeps the application's own errors, and a challenge that the router has set", async () => {
  const serverError = new ServerError('OVERLOADED', 'try again', { retryAfterSeconds: 7 });
  const { get } = await start(serverError);
  expect((await get('/x/throws')).headers.get('retry-after')).toBe('7');
  const router = Router();
  router.get('/', (_request, response, next) => {
    response.set('www-authenticate', 'Basic realm="x"').set('etag', '"a"');
    next(createError(401));
  });
  const module = { signs: [], create: () => ({ routes: { prefix: '/x', router } }) };
  const server = await startServer({ module, manifest: { endpoints: [], secrets: [] } });
  const { headers } = await server.get('/x');
  expect([headers.get('www-authenticate'), headers.get('etag')]).toEqual(['Basic realm="x"', null]);
});
