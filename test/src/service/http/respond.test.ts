import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

const MODULE = new URL('../../../../src/service/http/respond.ts', import.meta.url).href;

test('atEndOfTurn runs tasks in order, including tasks that other tasks add, and tasks after one that throws', () => {
  const code = `
    import { atEndOfTurn } from '${MODULE}';
    process.on('uncaughtException', (error) => console.log(error.message));
    atEndOfTurn(() => { console.log('first'); atEndOfTurn(() => console.log('added')); });
    atEndOfTurn(() => { throw new Error('thrown'); });
    atEndOfTurn(() => console.log('last'));
    setTimeout(() => atEndOfTurn(() => console.log('later')), 100);`;
  const args = ['--input-type=module', '-e', code];
  const output = execFileSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 });
  expect(output.trim().split('\n')).toEqual(['first', 'thrown', 'last', 'added', 'later']);
});
