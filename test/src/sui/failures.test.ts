import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SuiGrpcClient } from '@mysten/sui/grpc';
import { describe, expect, onTestFinished, test } from 'vitest';
import { sendErrorOf } from '../../../src/sui/failures.ts';
import { failureOf, NodeRefusedError, readConfig, SuiError, suiErrorOf } from '../../../src/sui/index.ts';

const ID = `0x${'1'.repeat(64)}`;

/** A server that is not a Sui node. */
async function clientOf(answer: (response: ServerResponse) => void): Promise<SuiGrpcClient> {
  const server = createServer((_, response) => answer(response));
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void server.close());
  return new SuiGrpcClient({
    network: 'custom',
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  });
}

describe('an answer that is not from a Sui node', () => {
  test.each<[string, string, (response: ServerResponse) => void]>([
    [
      'a proxy whose node is down',
      'SUI_NODE_UNREACHABLE',
      (response) => response.writeHead(503).end('<html>'),
    ],
    ['a page', 'SUI_NODE_REFUSED', (response) => response.writeHead(200).end('<html>')],
    [
      'nothing',
      'SUI_NODE_REFUSED',
      (response) => response.writeHead(200, { 'content-type': 'application/grpc-web' }).end(),
    ],
    ['an HTTP error', 'SUI_NODE_REFUSED', (response) => response.writeHead(404).end()],
  ])('%s', async (_, code, answer) => {
    await expect(readConfig(await clientOf(answer), ID)).rejects.toMatchObject({ code });
  });
});

describe('suiErrorOf', () => {
  test('returns a SuiError unchanged', () => {
    const error = new SuiError('SUI_VALUE', 'no');
    expect(suiErrorOf(error)).toBe(error);
  });

  test('rethrows an error that is not about a node', () => {
    const bug = new TypeError('undefined is not a function');
    expect(() => suiErrorOf(bug)).toThrow(bug);
    expect(() => suiErrorOf('text')).toThrow('text');
  });
});

describe('sendErrorOf', () => {
  test('returns a clear refusal unchanged', () => {
    const refused = new NodeRefusedError('INVALID_ARGUMENT', 'no');
    expect(sendErrorOf(refused, 'digest')).toBe(refused);
  });

  test.each([null, 'UNKNOWN', 'INTERNAL', 'DATA_LOSS'])(
    'treats the status %s as an unknown outcome',
    (status) => {
      const cause = new NodeRefusedError(status, 'no');
      expect(sendErrorOf(cause, 'digest')).toMatchObject({
        code: 'SUI_UNKNOWN_OUTCOME',
        digest: 'digest',
        cause,
      });
    },
  );

  test('treats an unknown error as an unknown outcome', () => {
    expect(sendErrorOf(new Error('stumbled over\u001b[2J the answer'), 'digest')).toMatchObject({
      code: 'SUI_UNKNOWN_OUTCOME',
      message: expect.stringContaining('(stumbled over [2J the answer)'),
    });
  });
});

describe('failureOf', () => {
  test('names an abort by its number when the node does not name its constant', () => {
    const location = { package: ID, module: 'nitro_attestation', functionName: 'load_nitro_attestation' };
    const abort = { abortCode: '2', location };
    expect(failureOf({ $kind: 'MoveAbort', message: 'MoveAbort', MoveAbort: abort })).toMatchObject({
      code: 'SUI_MOVE_ABORT',
      abort: 'nitro_attestation::2',
      message: expect.stringContaining('it expired'),
    });
  });

  test('names an abort by its code, whatever the number is, and by its name where there is no code', () => {
    const location = { package: ID, module: 'enclave', functionName: 'assert_signed' };
    const abortOf = (cleverError: object) =>
      failureOf({
        $kind: 'MoveAbort',
        message: 'MoveAbort',
        MoveAbort: { abortCode: '9223372268062277633', location, cleverError },
      } as Parameters<typeof failureOf>[0]);
    for (const cleverError of [
      { errorCode: 13 },
      { errorCode: 13, constantName: 'ERetired' },
      { constantName: 'ERetired' },
    ]) {
      expect(abortOf(cleverError)).toMatchObject({
        abort: 'enclave::ERetired',
        message: expect.stringContaining('retired for ever'),
      });
    }
  });

  test('describes an abort without a location', () => {
    const failure = failureOf({ $kind: 'MoveAbort', message: 'MoveAbort', MoveAbort: { abortCode: '7' } });
    expect(failure.message).toBe('a check of the contract failed (?::7, in an unknown place)');
  });

  test('distinguishes too little gas from other failures', () => {
    expect(failureOf({ $kind: 'Unknown', message: 'InsufficientGas', Unknown: null }).code).toBe('SUI_GAS');
    expect(failureOf({ $kind: 'Unknown', message: 'FunctionNotFound', Unknown: null }).code).toBe(
      'SUI_EXECUTION',
    );
  });
});
