/**
 * Compares a server's answers with recorded answers, so that no change of the framework around Express
 * changes an answer by accident. The server has endpoints and routes of an application. To record the answers
 * again, run `npm test -- recorded -u`.
 */
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { Router } from 'express';
import * as v from 'valibot';
import { expect, test } from 'vitest';
import { text } from '../../../../src/library/wire/bcs.ts';
import { signedType } from '../../../../src/library/wire/intent.ts';
import { struct } from '../../../../src/library/wire/struct.ts';
import { type ApplicationModule, endpoint, processData } from '../../../../src/server/application/app.ts';
import { ServerError } from '../../../../src/service/errors.ts';
import { closed } from '../../../closed.ts';
import { startServer } from '../../server/support.ts';

const RECORD = fileURLToPath(new URL('../../../fixtures/http/recorded_answers.txt', import.meta.url));

const Word = signedType(0, struct('Word', { word: text }));

function createModule(): ApplicationModule {
  const router = Router();
  router.get('/text', (_request, response) => void response.type('txt').send('hello'));
  router.get('/echo/:name', (request, response) => {
    const { method, url, originalUrl, baseUrl, path, params, query, ip, headers } = request;
    response.json({ method, url, originalUrl, baseUrl, path, params, query, ip, host: headers.host });
  });
  router.all('/all', (request, response) => void response.json({ method: request.method }));
  router.delete('/thing', (_request, response) => void response.status(204).end());
  router.get('/redirect', (_request, response) => response.redirect('/x/text'));
  router.get('/stream', (_request, response) => {
    response.write('one,');
    response.end('two');
  });
  router.get('/throw', () => {
    throw new Error('hunter2');
  });
  router.get('/refuse', () => {
    throw new ServerError('INVALID_INPUT', 'name is missing');
  });
  router.get('/pass', (_request, _response, next) => next());
  return {
    signs: [Word],
    create: ({ sign }) => ({
      endpoints: [
        processData({
          payload: v.strictObject({ word: v.string() }),
          handle: async ({ word }) => sign(Word, 1n, { word }),
        }),
        endpoint({ method: 'GET', path: '/plain', handle: async () => ({ plain: true }) }),
      ],
      routes: { prefix: '/x', router },
    }),
  };
}

const ask = (line: string, head = '', body = '') => `${line} HTTP/1.1\r\nHost: x\r\n${head}\r\n${body}`;
const JSON_TYPE = 'Content-Type: application/json\r\n';
const sized = (line: string, body: string, head = '') =>
  ask(line, `${head}Content-Length: ${body.length}\r\n`, body);
const PREFLIGHT = 'Origin: https://a.example\r\nAccess-Control-Request-Method: POST\r\n';
const WORD = '{"payload":{"word":"a"}}';

/** Requests by name. Each has a connection of its own, which a last request closes: see exchange. */
const REQUESTS: Readonly<Record<string, string>> = {
  'GET /': ask('GET /'),
  'HEAD /': ask('HEAD /'),
  'GET / with a body': sized('GET /', 'body'),
  'OPTIONS /': ask('OPTIONS /'),
  'a preflight of /': ask('OPTIONS /', PREFLIGHT),
  'OPTIONS *': ask('OPTIONS *'),
  'POST /process_data': sized('POST /process_data', WORD, JSON_TYPE),
  'POST /process_data in chunks': ask(
    'POST /process_data',
    `${JSON_TYPE}Transfer-Encoding: chunked\r\n`,
    `5\r\n${WORD.slice(0, 5)}\r\n${(WORD.length - 5).toString(16)}\r\n${WORD.slice(5)}\r\n0\r\n\r\n`,
  ),
  'POST /process_data that expects 100-continue': sized(
    'POST /process_data',
    WORD,
    `${JSON_TYPE}Expect: 100-continue\r\n`,
  ),
  'POST /process_data without a body': ask('POST /process_data', JSON_TYPE),
  'POST /process_data that is not JSON': sized('POST /process_data', '{', JSON_TYPE),
  'POST /process_data as text': sized('POST /process_data', WORD, 'Content-Type: text/plain\r\n'),
  'POST /process_data, compressed': sized(
    'POST /process_data',
    WORD,
    `${JSON_TYPE}Content-Encoding: gzip\r\n`,
  ),
  'POST /process_data that is too large': ask(
    'POST /process_data',
    `${JSON_TYPE}Content-Length: 70000\r\n`,
    WORD,
  ),
  'POST /process_data with __proto__': sized(
    'POST /process_data',
    '{"payload":{"word":"a","__proto__":{"b":1}}}',
    JSON_TYPE,
  ),
  'GET /process_data': ask('GET /process_data'),
  'a preflight of /process_data': ask('OPTIONS /process_data', PREFLIGHT),
  'a preflight of another origin': ask('OPTIONS /process_data', PREFLIGHT.replace('a.', 'b.')),
  'POST /sealed that is not sealed': sized('POST /sealed', '{}', JSON_TYPE),
  'POST /secrets': sized('POST /secrets', '{}', JSON_TYPE),
  'GET /plain': ask('GET /plain'),
  'GET /plain of an origin': ask('GET /plain', 'Origin: https://a.example\r\n'),
  'GET /livez': ask('GET /livez'),
  'GET /readyz': ask('GET /readyz', 'Connection: close\r\n'),
  'GET /nothing': ask('GET /nothing'),
  'POST /nothing with a body': sized('POST /nothing', WORD),
  'GET /x': ask('GET /x'),
  'GET /x/text': ask('GET /x/text'),
  'GET /x/text of an origin': ask('GET /x/text', 'Origin: https://a.example\r\n'),
  'HEAD /x/text': ask('HEAD /x/text'),
  'POST /x/text': sized('POST /x/text', 'a'),
  'GET /x/text with a body': sized('GET /x/text', 'body'),
  'GET /x/echo': ask('GET /x/echo/a%20b?c=1&c=2&d[e]=3&__proto__=4'),
  'GET /x/all': ask('GET /x/all'),
  'PUT /x/all with a body': sized('PUT /x/all', 'body'),
  'PUT /x/all without a body': ask('PUT /x/all'),
  'PUT /x/all, compressed': sized('PUT /x/all', 'body', 'Content-Encoding: gzip\r\n'),
  'PUT /x/all, compressed, without a body': ask('PUT /x/all', 'Content-Encoding: gzip\r\n'),
  'PUT /x/all that is too large': ask('PUT /x/all', 'Content-Length: 70000\r\n', 'a'),
  'PUT /x/all that expects 100-continue': sized('PUT /x/all', 'body', 'Expect: 100-continue\r\n'),
  'DELETE /x/thing': ask('DELETE /x/thing'),
  'a preflight of /x/thing': ask('OPTIONS /x/thing', PREFLIGHT),
  'OPTIONS /x/thing': ask('OPTIONS /x/thing'),
  'GET /x/redirect': ask('GET /x/redirect'),
  'GET /x/stream': ask('GET /x/stream'),
  'GET /x/throw': ask('GET /x/throw'),
  'GET /x/refuse': ask('GET /x/refuse'),
  'GET /x/pass': ask('GET /x/pass'),
  'GET /x/nothing': ask('GET /x/nothing'),
  'GET /x/echo/%zz': ask('GET /x/echo/%zz'),
  'GET /xy': ask('GET /xy'),
  'GET of an absolute target': ask('GET http://x/x/text'),
  'no Host': 'GET /x/text HTTP/1.1\r\n\r\n',
  'HTTP/1.0': 'GET /x/text HTTP/1.0\r\n\r\n',
  'CONNECT x:1': ask('CONNECT x:1'),
  'three requests at once': `${ask('GET /x/text')}${sized('PUT /x/all', 'body')}${ask('GET /')}`,
};

/**
 * Sends these bytes, and then a last request that closes the connection. Returns everything that the server
 * sends, without the parts that differ each time.
 */
async function exchange(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  let received = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    received += chunk;
  });
  // `end` would close the client's side, which a server may treat in another way.
  socket.write(bytes);
  const lastRequest = 'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  socket.write(lastRequest);
  await closed(socket);
  return received
    .replace(/\r\n/g, '\n')
    .replace(/^(date|x-request-id|x-enclave-key): .*\n/gim, '$1: …\n')
    .replace(/"signature":"[0-9a-f]{128}"/g, '"signature":"…"');
}

test('requests are answered as they were recorded', async () => {
  const { url } = await startServer({
    module: createModule(),
    manifest: { endpoints: [], secrets: [] },
    env: { CORS_ORIGINS: 'https://a.example' },
  });
  const port = Number(new URL(url).port);
  let record = '';
  for (const [name, bytes] of Object.entries(REQUESTS)) {
    record += `=== ${name} ===\n${await exchange(port, bytes)}\n`;
  }
  await expect(record).toMatchFileSnapshot(RECORD);
});
