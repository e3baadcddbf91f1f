/** Tests the settings of the front end: their defaults, and values with which it refuses to start. */
import { describe, expect, test } from 'vitest';
import { readFrontendConfig } from '../../../../src/prover/frontend/config.ts';
import { readDebug } from '../../../../src/prover/frontend/debug.ts';
import { vector } from '../support.ts';
import { fileWith, OUR_KEY } from './support.ts';

const PROVER_URI = 'http://backend:8080/input';
const read = (env: Record<string, string> = {}, args: string[] = []) =>
  readFrontendConfig({ PROVER_URI, ...env }, args);
const development = () => ({
  VERIFYING_KEY: fileWith(JSON.stringify(OUR_KEY.vkey)),
  ALLOW_INSECURE_DEV_KEY: '1',
});

describe('the settings', () => {
  test('have the expected defaults', () => {
    const { port, host, timeoutSeconds, corsOrigins, backend, profile, keys, acceptsAnyClient, clients } =
      read();
    expect({ port, host, timeoutSeconds, corsOrigins, acceptsAnyClient }).toEqual({
      port: 8080,
      host: '127.0.0.1',
      timeoutSeconds: 15,
      corsOrigins: [],
      acceptsAnyClient: true,
    });
    expect([backend.href, profile.blocks, keys.own.network]).toEqual([PROVER_URI, 25, 'mainnet and testnet']);
    expect(keys.others.map(({ network }) => network)).toEqual(['devnet']);
    expect(clients.map(({ issuer }) => new URL(issuer).hostname)).toEqual([
      'accounts.google.com',
      'www.facebook.com',
      'id.twitch.tv',
      'appleid.apple.com',
    ]);
  });

  test('limit a request to 12 s, or to PROVER_TIMEOUT if that is less', () => {
    expect(read().answerSeconds).toBe(12);
    expect(read({ PROVER_TIMEOUT: '5' }).answerSeconds).toBe(5);
    expect(read({ PROVER_TIMEOUT: '60', ANSWER_SECONDS: '60' }).answerSeconds).toBe(60);
  });

  test('take the port from the command line, and otherwise from the environment', () => {
    expect(read({ PROVER_PORT: '9000' }).port).toBe(9000);
    expect(read({ PROVER_PORT: '9000' }, ['9001']).port).toBe(9001);
  });

  test('take the devnet key, with the issuers of devnet', () => {
    const { keys, clients } = read({ VERIFYING_KEY: 'test' });
    expect([keys.own.network, keys.others.map(({ network }) => network)]).toEqual([
      'devnet',
      ['mainnet and testnet'],
    ]);
    expect(clients).toHaveLength(7);
  });

  test('recognise a published key in a file', () => {
    const path = fileWith(JSON.stringify(vector('zkLogin-test.vkey')));
    expect(read({ VERIFYING_KEY: path }).keys.own.network).toBe('devnet');
  });

  test('allow a development key, and with it the small circuit', () => {
    const { keys, profile } = read({ ...development(), CIRCUIT_SIZE: 'small' });
    expect([keys.own.network, keys.others.length, profile.blocks]).toEqual(['development', 2, 8]);
  });

  test('contain a list of clients', () => {
    const { clients, acceptsAnyClient } = read({
      CLIENTS: '[{"issuer":"accounts.google.com","client_id":"mine","presenters":["app"]}]',
    });
    expect(acceptsAnyClient).toBe(false);
    expect(clients).toMatchObject([
      { issuer: 'https://accounts.google.com', clientId: 'mine', presenters: ['app'] },
    ]);
  });
});

describe('the start is refused with an error that names the setting:', () => {
  const google = { issuer: 'https://accounts.google.com', client_id: 'mine' };
  test.each<[string, Record<string, string>, string[]?]>([
    ['PROVER_URI', { PROVER_URI: '' }],
    ['PROVER_URI', { PROVER_URI: 'http://backend:8080' }],
    ['PROVER_URI', { PROVER_URI: 'ftp://backend/input' }],
    ['PROVER_URI', { PROVER_URI: 'http://user:secret@backend/input' }],
    ['PROVER_URI', { PROVER_URI: 'http://backend/input#x' }],
    ['PROVER_URI', { PROVER_URI: 'http://backend//input' }],
    ['PROVER_URI', { PROVER_URI: 'http://backend/input?a\\b' }],
    ['PROVER_TIMEOUT', { PROVER_TIMEOUT: '0' }],
    ['PROVER_TIMEOUT', { PROVER_TIMEOUT: '15s' }],
    ['PROVER_PORT', { PROVER_PORT: 'http' }],
    ['PROVER_PORT', {}, ['http']],
    ['the command line', {}, ['8080', '8081']],
    ['VERIFYING_KEY', { VERIFYING_KEY: '/nowhere.json' }],
    ['CIRCUIT_SIZE', { CIRCUIT_SIZE: 'medium' }],
    ['CIRCUIT_SIZE', { CIRCUIT_SIZE: 'small' }],
    ['ALLOW_INSECURE_DEV_KEY', { ALLOW_INSECURE_DEV_KEY: 'yes' }],
    ['CORS_ORIGINS', { CORS_ORIGINS: 'https://wallet.example/path' }],
    ['CLIENTS', { CLIENTS: 'x' }],
    ['CLIENTS', { CLIENTS: '[]' }],
    ['CLIENTS', { CLIENTS: JSON.stringify([{ ...google, seed: 1 }]) }],
    ['CLIENTS, 0.client_id', { CLIENTS: JSON.stringify([{ ...google, client_id: 'a'.repeat(144) }]) }],
    ['CLIENTS, 0.issuer', { CLIENTS: JSON.stringify([{ ...google, issuer: 'a"b' }]) }],
    ['CLIENTS', { CLIENTS: JSON.stringify([google, google]) }],
    ['CLIENTS', { CLIENTS: JSON.stringify([{ issuer: 'https://id.example', client_id: 'mine' }]) }],
    ['CLIENTS', { CLIENTS: JSON.stringify([{ ...google, jwks_url: 'https://evil.example/keys' }]) }],
    ['ANSWER_SECONDS', { ANSWER_SECONDS: '16' }],
    ['ANSWER_SECONDS', { ANSWER_SECONDS: '0' }],
    ['PROOF_SECONDS', { PROOF_SECONDS: '0' }],
    ['NODE_TLS_REJECT_UNAUTHORIZED', { NODE_TLS_REJECT_UNAUTHORIZED: '0' }],
  ])('%s: %o', (name, env, args) => {
    expect(() => read(env, args)).toThrow(
      expect.objectContaining({ code: 'CONFIG', message: expect.stringContaining(name) }),
    );
  });

  test.each(['x', '{"protocol":"groth16"}', 'null'])('VERIFYING_KEY, a file with %s', (content) => {
    expect(() => read({ VERIFYING_KEY: fileWith(content) })).toThrow(/VERIFYING_KEY is not a vkey.json/);
  });

  test('ALLOW_INSECURE_DEV_KEY, without which no unpublished key is used', () => {
    const { VERIFYING_KEY } = development();
    expect(() => read({ VERIFYING_KEY })).toThrow(/ALLOW_INSECURE_DEV_KEY=1/);
    expect(() => read({ VERIFYING_KEY, ALLOW_INSECURE_DEV_KEY: '0' })).toThrow(/ALLOW_INSECURE_DEV_KEY=1/);
  });
});

test.each<[string, boolean, boolean]>([
  ['', false, false],
  ['zkLogin:info,jwks', true, true],
  ['zkLogin:info jwks', true, true],
  ['*', true, true],
  ['*,-jwks', true, false],
  ['zkLogin:*', true, false],
  ['zkLogin', false, false],
  ['express:*,jwks', false, true],
  ['.*', false, false],
])('DEBUG=%s selects lines', (setting, info, jwks) => {
  const isLogged = readDebug(setting);
  expect([isLogged('zkLogin:info'), isLogged('jwks')]).toEqual([info, jwks]);
});
