import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SuiGraphQLClient } from '@mysten/sui/graphql';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { Transaction } from '@mysten/sui/transactions';
import { describe, expect, onTestFinished, test } from 'vitest';
import { toSendError } from '../../../../src/library/sui/failures.ts';
import {
  NodeRefusedError,
  readConfig,
  SuiError,
  sendTransaction,
  toExecutionError,
  toSuiError,
} from '../../../../src/library/sui/index.ts';

const ID = `0x${'1'.repeat(64)}`;

/** Starts a server that is not a Sui node. @returns its URL */
async function startServer(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((_, response) => answer(response));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function createClient(answer: (response: ServerResponse) => void): Promise<SuiGrpcClient> {
  return new SuiGrpcClient({ network: 'custom', baseUrl: await startServer(answer) });
}

async function createGraphql(answer: (response: ServerResponse) => void): Promise<SuiGraphQLClient> {
  return new SuiGraphQLClient({ network: 'custom', url: await startServer(answer) });
}

function buildTransaction(client: SuiGraphQLClient): Promise<unknown> {
  const tx = new Transaction();
  tx.setSender(ID);
  return tx.build({ client });
}

/** Returns a GraphQL answer that has only errors. */
function answerErrors(...messages: string[]) {
  return (response: ServerResponse) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ data: null, errors: messages.map((message) => ({ message })) }));
  };
}

describe('the reader of an object reports', () => {
  test.each<[string, string, (response: ServerResponse) => void]>([
    [
      'a proxy whose node is down',
      'SUI_NODE_UNREACHABLE',
      (response) => response.writeHead(503).end('<html>'),
    ],
    ['a web page', 'SUI_NODE_REFUSED', (response) => response.writeHead(200).end('<html>')],
    [
      'an empty answer',
      'SUI_NODE_REFUSED',
      (response) => response.writeHead(200, { 'content-type': 'application/grpc-web' }).end(),
    ],
    ['an HTTP error', 'SUI_NODE_REFUSED', (response) => response.writeHead(404).end()],
  ])('%s in place of a Sui node', async (_, code, answer) => {
    await expect(readConfig(await createClient(answer), ID)).rejects.toMatchObject({ code });
    await expect(readConfig(await createGraphql(answer), ID)).rejects.toMatchObject({ code });
  });

  test('a missing server', async () => {
    const url = 'http://127.0.0.1:1';
    const code = 'SUI_NODE_UNREACHABLE';
    const grpc = new SuiGrpcClient({ network: 'custom', baseUrl: url });
    await expect(readConfig(grpc, ID)).rejects.toMatchObject({ code });
    const graphql = new SuiGraphQLClient({ network: 'custom', url });
    await expect(readConfig(graphql, ID)).rejects.toMatchObject({ code });
  });

  test('a server that does not answer in time', async () => {
    const url = await startServer(() => undefined);
    const slow: typeof fetch = (url, init) => fetch(url, { ...init, signal: AbortSignal.timeout(50) });
    const code = 'SUI_NODE_UNREACHABLE';
    const grpc = new SuiGrpcClient({ network: 'custom', baseUrl: url, fetch: slow });
    await expect(readConfig(grpc, ID)).rejects.toMatchObject({ code });
    const graphql = new SuiGraphQLClient({ network: 'custom', url, fetch: slow });
    await expect(readConfig(graphql, ID)).rejects.toMatchObject({ code });
  });
});

describe('a GraphQL node', () => {
  test.each([
    ['SUI_EQUIVOCATION', [`Object (${ID}, v1) already locked by a different transaction: k#1`]],
    [
      'SUI_OBJECT_CHANGED',
      ['Transaction needs to be rebuilt because an object is not available for consumption'],
    ],
    ['SUI_GAS', ['Unable to perform gas selection due to insufficient SUI balance']],
    ['SUI_OBJECT_NOT_FOUND', [`Could not find the referenced object ${ID}`]],
    ['SUI_NODE_REFUSED', ['Request too deep']],
    ['SUI_NODE_REFUSED', ['Request too deep', 'and too long']],
  ])('refuses with %s', async (code, messages) => {
    const [text = '?'] = code === 'SUI_OBJECT_NOT_FOUND' ? [ID] : messages;
    await expect(readConfig(await createGraphql(answerErrors(...messages)), ID)).rejects.toMatchObject({
      code,
      message: expect.stringContaining(text),
    });
  });

  test('explains an abort of the simulation by the name of its constant', async () => {
    const effects = {
      status: 'FAILURE',
      executionError: {
        message: 'Error in 1st command, from …',
        abortCode: '13',
        identifier: 'ERetired',
        module: { name: 'enclave', package: { address: ID } },
        function: { name: 'assert_signed' },
      },
    };
    const data = { simulateTransaction: { effects: { transaction: { effects } } } };
    const client = await createGraphql((response) => response.end(JSON.stringify({ data })));
    const error = await buildTransaction(client).catch(toSuiError);
    expect(error).toMatchObject({
      code: 'SUI_MOVE_ABORT',
      abort: 'enclave::ERetired',
      location: `${ID}::enclave::assert_signed`,
    });
  });

  test('that answers a build without the requested data causes SUI_NODE_ANSWER', async () => {
    const client = await createGraphql((response) => response.end('{"data":{}}'));
    const error = await buildTransaction(client).catch(toSuiError);
    expect(error).toMatchObject({ code: 'SUI_NODE_ANSWER' });
  });

  test('that answers a read without the requested data causes SUI_NODE_ANSWER', async () => {
    const client = await createGraphql((response) => response.end('{"data":{}}'));
    await expect(readConfig(client, ID)).rejects.toMatchObject({ code: 'SUI_NODE_ANSWER' });
  });

  test.each([
    ['an error', answerErrors('Internal error occurred')],
    ['an HTTP error', (response: ServerResponse) => response.writeHead(429).end()],
    ['a web page', (response: ServerResponse) => response.end('<html>')],
    [
      'no effects',
      (response: ServerResponse) => response.end('{"data":{"executeTransaction":{"effects":null}}}'),
    ],
  ])('that answers a send with %s leaves the outcome open', async (_, answer) => {
    const sending = sendTransaction(await createGraphql(answer), {
      transaction: Uint8Array.of(1),
      signatures: [''],
      lookUpMs: 20,
    });
    await expect(sending).rejects.toMatchObject({ code: 'SUI_UNKNOWN_OUTCOME' });
  });
});

describe('toSuiError', () => {
  test('returns a SuiError unchanged', () => {
    const error = new SuiError('SUI_VALUE', 'no');
    expect(toSuiError(error)).toBe(error);
  });

  test('rethrows an error that does not concern a node', () => {
    const bug = new TypeError('undefined is not a function');
    expect(() => toSuiError(bug)).toThrow(bug);
    expect(() => toSuiError('text')).toThrow('text');
  });
});

describe('toSendError', () => {
  test('returns a clear refusal unchanged', () => {
    const refused = new NodeRefusedError('INVALID_ARGUMENT', 'no');
    expect(toSendError(refused, 'digest')).toBe(refused);
  });

  test.each([null, 'UNKNOWN', 'INTERNAL', 'DATA_LOSS', 'ABORTED', 'RESOURCE_EXHAUSTED'])(
    'treats the status %s as an unknown outcome',
    (status) => {
      const cause = new NodeRefusedError(status, 'no');
      expect(toSendError(cause, 'digest')).toMatchObject({
        code: 'SUI_UNKNOWN_OUTCOME',
        digest: 'digest',
        cause,
      });
    },
  );

  test.each(['ABORTED', 'RESOURCE_EXHAUSTED'])('does not trust a text that comes with %s', (code) => {
    const message = 'Transaction needs to be rebuilt because object is not available for consumption';
    const error = Object.assign(new Error(message), { code, methodName: 'ExecuteTransaction' });
    expect(toSuiError(error).code).toBe('SUI_OBJECT_CHANGED');
    expect(toSendError(error, 'digest').code).toBe('SUI_UNKNOWN_OUTCOME');
    const refused = Object.assign(error, { code: 'INVALID_ARGUMENT' });
    expect(toSendError(refused, 'digest').code).toBe('SUI_OBJECT_CHANGED');
  });

  test('treats an unknown error as an unknown outcome', () => {
    expect(toSendError(new Error('stumbled over\u001b[2J the answer'), 'digest')).toMatchObject({
      code: 'SUI_UNKNOWN_OUTCOME',
      message: expect.stringContaining('(stumbled over [2J the answer)'),
    });
  });
});

describe('toExecutionError', () => {
  test('names an abort by its number when the node does not name its constant', () => {
    const location = { package: ID, module: 'nitro_attestation', functionName: 'load_nitro_attestation' };
    const abort = { abortCode: '2', location };
    expect(toExecutionError({ $kind: 'MoveAbort', message: 'MoveAbort', MoveAbort: abort })).toMatchObject({
      code: 'SUI_MOVE_ABORT',
      abort: 'nitro_attestation::2',
      message: expect.stringContaining('it expired'),
    });
  });

  test('names an abort by its code, regardless of its number, or by its name if it has no code', () => {
    const location = { package: ID, module: 'enclave', functionName: 'assert_signed' };
    const createAbort = (cleverError: object) =>
      toExecutionError({
        $kind: 'MoveAbort',
        message: 'MoveAbort',
        MoveAbort: { abortCode: '9223372268062277633', location, cleverError },
      } as Parameters<typeof toExecutionError>[0]);
    for (const cleverError of [
      { errorCode: 13 },
      { errorCode: 13, constantName: 'ERetired' },
      { constantName: 'ERetired' },
    ]) {
      expect(createAbort(cleverError)).toMatchObject({
        abort: 'enclave::ERetired',
        message: expect.stringContaining('permanently retired'),
      });
    }
  });

  test('describes an abort without a location', () => {
    const failure = toExecutionError({
      $kind: 'MoveAbort',
      message: 'MoveAbort',
      MoveAbort: { abortCode: '7' },
    });
    expect(failure.message).toBe('a check of the contract failed (?::7, in an unknown place)');
  });

  test('distinguishes too little gas from other failures', () => {
    expect(toExecutionError({ $kind: 'Unknown', message: 'InsufficientGas', Unknown: null }).code).toBe(
      'SUI_GAS',
    );
    expect(toExecutionError({ $kind: 'Unknown', message: 'FunctionNotFound', Unknown: null }).code).toBe(
      'SUI_EXECUTION',
    );
  });
});
