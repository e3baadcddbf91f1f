/** Tests when the next question is asked. The test ends the pauses itself. */
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { confirmInTurn } from '../../../../src/library/wallet/confirm.ts';
import type { ConfirmRequest } from '../../../../src/library/wallet/index.ts';

const question = (wallet: string): ConfirmRequest => ({
  kind: 'message',
  wallet,
  address: '0x1',
  chain: 'sui:localnet',
  message: new Uint8Array(),
});

/** Sets up questions that the test answers, and pauses that it ends. */
function setUp() {
  const questions: string[] = [];
  const answers: ((answer: boolean) => void)[] = [];
  const pauses: { readonly ms: number; readonly end: () => void }[] = [];
  const askUser = confirmInTurn(
    ({ wallet }) => {
      questions.push(wallet);
      return new Promise((resolve) => answers.push(resolve));
    },
    (ms) => new Promise((end) => pauses.push({ ms, end })),
  );
  const answer = async (yes: boolean) => {
    answers.shift()?.(yes);
    await turn();
  };
  const endPause = async () => {
    const { ms = 0, end } = pauses.shift() ?? {};
    end?.();
    await turn();
    return ms;
  };
  return { askUser, questions, pauses, answer, endPause };
}

test.each([true, false])('after the answer %s, the next question waits half a second', async (yes) => {
  const { askUser, questions, answer, endPause } = setUp();
  const answers = ['a', 'b', 'c'].map((name) => askUser(question(name)));
  const outcomes = Promise.allSettled(answers);
  for (const expected of [['a'], ['a', 'b'], ['a', 'b', 'c']]) {
    await turn();
    expect(questions).toEqual(expected);
    await answer(yes);
    expect(questions).toEqual(expected);
    expect(await endPause()).toBe(500);
  }
  const status = yes ? 'fulfilled' : 'rejected';
  expect((await outcomes).map((outcome) => outcome.status)).toEqual([status, status, status]);
});

test('a question after the answer to the last one also waits for the pause', async () => {
  const { askUser, questions, answer, endPause } = setUp();
  const first = askUser(question('a'));
  await turn();
  await answer(true);
  await first;
  const second = askUser(question('b'));
  await turn();
  expect(questions).toEqual(['a']);
  await endPause();
  expect(questions).toEqual(['a', 'b']);
  await answer(true);
  await second;
});

test('a question that is cancelled before it is asked does not delay the next question', async () => {
  const { askUser, questions, pauses, answer } = setUp();
  const cancelledQuestion = askUser(question('a'), AbortSignal.abort(new Error('left')));
  await expect(cancelledQuestion).rejects.toThrow('left');
  const next = askUser(question('b'));
  await turn();
  expect([questions, pauses]).toEqual([['b'], []]);
  await answer(true);
  await next;
});
