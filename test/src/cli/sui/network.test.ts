import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connect } from '../../../../src/cli/sui/network.ts';
import { ANSWER_TOO_LARGE, toSendError } from '../../../../src/library/sui/failures.ts';
import { readConfig, UnknownOutcomeError } from '../../../../src/library/sui/index.ts';
import { ChainFixture } from './chain_fixture.ts';

describe('the choice of a node', () => {
  test.each(['mainnet', 'testnet', 'devnet'] as const)(
    'is the public node of --network %s, over https',
    (network) => {
      expect(connect(network, undefined).description).toBe(
        `${network} (https://fullnode.${network}.sui.io:443)`.replace(':443', ''),
      );
    },
  );

  test('is the node of --rpc-url in place of the public node', () => {
    expect(connect('mainnet', 'https://sui.example/v2').description).toBe('mainnet (https://sui.example/v2)');
    expect(connect(undefined, 'https://sui.example').description).toBe('https://sui.example');
  });

  test('is refused without either option', () => {
    expect(() => connect(undefined, undefined)).toThrow(expect.objectContaining({ code: 'NO_NETWORK' }));
  });

  test.each(['http://127.0.0.1:9000', 'http://localhost:9000', 'http://[::1]:9000'])(
    'may be %s, which is this machine',
    (url) => {
      expect(connect(undefined, url).description).toBe(url);
    },
  );

  test.each([
    ['http://sui.example', 'or an http URL of this machine'],
    ['http://127.0.0.1.sui.example', 'or an http URL of this machine'],
    ['ftp://127.0.0.1', 'https URL'],
    ['fullnode', 'https URL'],
    ['https://user:secret@sui.example', 'no user name'],
    ['https://sui.example?key=secret', 'no user name, query or fragment'],
  ])('is refused for the URL %s', (url, message) => {
    expect(() => connect(undefined, url)).toThrow(message);
    expect(() => connect(undefined, url)).not.toThrow('secret');
  });

  test.each([
    ['localnet', 'https://sui.example', true],
    ['localnet', 'http://127.0.0.1:9000', false],
    [undefined, 'http://127.0.0.1:9000', false],
    ['testnet', 'http://127.0.0.1:9000', true],
  ] as const)('%s at %s is a real network: %s', (network, url, isReal) => {
    expect(connect(network, url).isReal).toBe(isReal);
  });
});

describe('a node that does not answer', () => {
  let fixture: ChainFixture;
  beforeEach(async () => {
    fixture = await ChainFixture.start();
  });
  afterEach(() => fixture.close());

  test('fails the request after the time-out', async () => {
    fixture.node.faults.set('BatchGetObjects', 'hang');
    const { client } = connect(undefined, fixture.node.url, 100);
    await expect(readConfig(client, `0x${'1'.repeat(64)}`)).rejects.toMatchObject({
      code: 'SUI_NODE_UNREACHABLE',
    });
  });
});

describe('an answer without end', () => {
  const CHUNK = new Uint8Array(1024 * 1024);
  let written = 0;

  /** Sends a message of 2 GiB, as fast as the client reads it. */
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/grpc-web+proto' });
    response.write(Uint8Array.of(0, 0x7f, 0xff, 0xff, 0xff));
    const writeChunks = () => {
      let isDrained = true;
      for (; isDrained && !response.destroyed && written < 2048; written += 1) {
        isDrained = response.write(CHUNK);
      }
    };
    response.on('drain', writeChunks);
    writeChunks();
  });
  beforeEach(async () => {
    written = 0;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => void server.close());

  test('is cut off at the maximum size', async () => {
    const { client } = connect(undefined, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    await expect(readConfig(client, `0x${'1'.repeat(64)}`)).rejects.toMatchObject({
      code: 'SUI_NODE_ANSWER',
      message: expect.stringContaining('too large'),
    });
    expect(written).toBeLessThan(64);
  });

  test('leaves the outcome of a sent transaction unknown', () => {
    const thrown = Object.assign(new Error(ANSWER_TOO_LARGE), { code: 'INTERNAL', methodName: 'x' });
    expect(toSendError(thrown, 'digest')).toBeInstanceOf(UnknownOutcomeError);
  });
});
