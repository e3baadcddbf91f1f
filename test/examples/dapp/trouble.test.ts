/** Tests the texts that the example dapp has for errors. */
import { expect, test } from 'vitest';
import { enclaveTrouble, otherTrouble, staleTrouble } from '../../../examples/dapp/src/trouble.ts';
import { AttestationError } from '../../../src/library/attestation/index.ts';
import {
  AnswerTimeError,
  ClientError,
  EnclaveRefusedError,
  EnclaveUnreachableError,
} from '../../../src/library/client/index.ts';
import { SuiError } from '../../../src/library/sui/index.ts';
import { ZkLoginError } from '../../../src/library/zklogin/index.ts';

const URL = 'https://weather.example';
const refused = (status: number) =>
  new EnclaveRefusedError('process_data', {
    status,
    serverCode: null,
    serverMessage: 'there is no such place',
    retryAfterSeconds: null,
  });

test.each([
  ['silent', new EnclaveUnreachableError(URL, 'timeout', null, {})],
  ['silent', refused(502)],
  ['lying', new AttestationError('POLICY_PCRS', 'other registers')],
  ['lying', new AttestationError('CHAIN_ROOT', 'another root')],
  ['lying', new ClientError('CLIENT_SIGNATURE', 'not signed')],
  ['lying', new ClientError('CLIENT_EXPECT', 'of another place')],
  ['lying', new AnswerTimeError('CLIENT_STALE', 5n, 10)],
  ['other', refused(400)],
  ['other', new ClientError('CLIENT_OPTION', "a mistake of the page's own")],
  ['other', new AttestationError('POLICY_INVALID', "a mistake of the page's own")],
  ['other', new TypeError('a bug')],
])('the kind is %s for the error %s', (kind, error) => {
  const trouble = enclaveTrouble(error, URL);
  expect(trouble.kind).toBe(kind);
  expect(trouble.advice).toMatch(/\.$/);
  if ('code' in error) expect(trouble.detail).toBe(`${error.code}: ${error.message}`);
});

test('silent, lying and stale enclaves have different titles and advice', () => {
  const troubles = [
    enclaveTrouble(refused(503), URL),
    enclaveTrouble(new ClientError('CLIENT_SIGNATURE', 'not signed'), URL),
    staleTrouble('unregistered'),
    staleTrouble('retired'),
  ];
  expect(new Set(troubles.map(({ advice }) => advice)).size).toBe(4);
  expect(new Set(troubles.map(({ title }) => title)).size).toBe(3);
});

test('a refusal by a wallet or a node has its own text if the user can do something about it', () => {
  const notSigned = otherTrouble(new ZkLoginError('ZKLOGIN_NOT_CONFIRMED', 'no'));
  expect(notSigned).toMatchObject({ kind: 'other', title: 'You did not sign' });
  expect(otherTrouble(new SuiError('SUI_GAS', 'no')).title).toBe('Your account has too little SUI');
  expect(otherTrouble(new SuiError('SUI_VALUE', 'a value')).text).toBe('a value');
  expect(otherTrouble('text').text).toBe('text');
});
