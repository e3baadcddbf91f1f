import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ABORT_CODES, explainAbort } from '../../../../src/library/sui/aborts.ts';

function readErrors(module: string): { name: string; code: number; text: string }[] {
  const folder = module === 'feed' ? 'feed' : 'enclave';
  const path = new URL(`../../../../move/${folder}/sources/${module}.move`, import.meta.url);
  const constants = readFileSync(path, 'utf8').matchAll(
    /#\[error\(code = (\d+)\)\]\s*const (E\w+): vector<u8> =\s*b"([^"]*)";/g,
  );
  return [...constants].map(([, code, name = '', text = '']) => ({ name, code: Number(code), text }));
}

describe('the explanations of aborts', () => {
  const MODULES = ['enclave', 'pcrs', 'source', 'once', 'feed'];
  const errorNames = MODULES.flatMap((module) => readErrors(module).map(({ name }) => `${module}::${name}`));

  test('cover every error of the Move sources with its code, and nothing else', () => {
    expect(errorNames.length).toBeGreaterThan(20);
    const codes = MODULES.flatMap((module) =>
      readErrors(module).map(({ name, code }) => [`${module}::${name}`, code]),
    );
    expect(ABORT_CODES).toEqual(Object.fromEntries(codes));
  });

  test.each(MODULES)('have a different code for each error of %s', (module) => {
    const codes = readErrors(module).map(({ code }) => code);
    expect(new Set(codes).size).toBe(codes.length);
  });

  test('are found by the code if the node returns one, regardless of the number', () => {
    const { explanation } = explainAbort({ module: 'enclave', name: 'ERetired', number: '1' });
    for (const abort of [{ code: 13 }, { code: 13, name: 'ERetired' }]) {
      expect(explainAbort({ module: 'enclave', ...abort, number: '2' })).toEqual({
        abort: 'enclave::ERetired',
        explanation,
      });
    }
  });

  test('are found by the code in the number, if the client returns only the number', () => {
    const number = String(0xc00dn << 48n);
    expect(explainAbort({ module: 'enclave', number }).abort).toBe('enclave::ERetired');
    expect(explainAbort({ module: 'dice', number }).abort).toBe('dice::13');
    expect(explainAbort({ module: 'enclave', number: 'not a number' }).abort).toBe('enclave::not a number');
  });

  test('are not used for a foreign error that only has the same number or code', () => {
    expect(explainAbort({ module: 'enclave', number: '13' })).toEqual({
      abort: 'enclave::13',
      explanation: 'a check of the contract failed',
    });
    const foreign = { module: 'enclave', code: 13, name: 'EClosed', text: 'We are closed', number: '13' };
    expect(explainAbort(foreign)).toEqual({ abort: 'enclave::EClosed', explanation: 'We are closed' });
    expect(explainAbort({ module: 'dice', code: 13, text: 'Roll again', number: '5' })).toEqual({
      abort: 'dice::13',
      explanation: 'Roll again',
    });
  });

  test.each(errorNames)('say more about %s than its constant does', (abort) => {
    const [module = '', name = ''] = abort.split('::');
    const { text } = readErrors(module).find((error) => error.name === name) ?? {};
    const explained = explainAbort({ module, name, text, number: '9223372268062277633' });
    expect(explained.abort).toBe(abort);
    expect(explained.explanation).not.toBe(text);
    expect(explained.explanation.length).toBeGreaterThan(20);
  });

  test.each([
    ['0', 'does not verify attestation'],
    ['1', 'can not be parsed'],
    ['2', 'does not verify'],
    ['3', 'lacks a register'],
  ])('contain for nitro_attestation::%s, a plain number of the framework: %s', (number, words) => {
    expect(explainAbort({ module: 'nitro_attestation', number }).explanation).toContain(words);
  });

  test('of unknown errors are their own messages, or a general one', () => {
    expect(explainAbort({ module: 'dice', name: 'ETooLow', text: 'Roll again', number: '1' })).toEqual({
      abort: 'dice::ETooLow',
      explanation: 'Roll again',
    });
    expect(explainAbort({ number: '7' })).toEqual({
      abort: '?::7',
      explanation: 'a check of the contract failed',
    });
  });
});
