import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { EXPLAINED_ABORTS, explainAbort } from '../../../src/sui/aborts.ts';

function errorsOf(module: string): { name: string; text: string }[] {
  const path = new URL(`../../../move/enclave/sources/${module}.move`, import.meta.url);
  const constants = readFileSync(path, 'utf8').matchAll(
    /#\[error\]\s*const (E\w+): vector<u8> =\s*b"([^"]*)";/g,
  );
  return [...constants].map(([, name = '', text = '']) => ({ name, text }));
}

describe('the explanations of aborts', () => {
  const inSources = ['enclave', 'pcrs'].flatMap((module) =>
    errorsOf(module).map(({ name }) => `${module}::${name}`),
  );

  test('cover every error of the Move sources, and no other', () => {
    expect(inSources.length).toBeGreaterThan(10);
    expect([...EXPLAINED_ABORTS].sort()).toEqual(inSources.sort());
  });

  test.each(inSources)('%s says more than its constant', (abort) => {
    const [module = '', name = ''] = abort.split('::');
    const { text } = errorsOf(module).find((error) => error.name === name) ?? {};
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
  ])('nitro_attestation::%s, a plain number of the framework, %s', (number, words) => {
    expect(explainAbort({ module: 'nitro_attestation', number }).explanation).toContain(words);
  });

  test('an unknown error is explained by its own message, or by a general one', () => {
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
