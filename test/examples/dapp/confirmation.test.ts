/** Checks that one click or key never answers two questions of the example dapp. */
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { confirmation, useQuestion } from '../../../examples/dapp/src/wallet/confirmation.ts';
import { useArmed } from '../../../examples/dapp/src/wallet/use_armed.ts';
import type { ConfirmRequest } from '../../../src/library/wallet/index.ts';
import { complete, renderHook } from '../../src/library/react/render.ts';

const request = (wallet: string): ConfirmRequest => ({
  kind: 'message',
  wallet,
  address: '0x1',
  chain: 'sui:localnet',
  message: new Uint8Array(),
});

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
});

/** Returns a function that returns the visible question. */
async function renderQuestion() {
  const { results } = await renderHook(useQuestion);
  return () => results.at(-1);
}

test('the second click of a double click leaves the next question open', async () => {
  const readQuestion = await renderQuestion();
  const onAnswer = vi.fn();
  await complete(() => void confirmation.ask(request('first')).then(onAnswer));
  const first = readQuestion();
  await complete(() => first?.answer(true));
  expect(onAnswer).toHaveBeenLastCalledWith(true);
  await complete(() => void confirmation.ask(request('second')).then(onAnswer));
  await complete(() => first?.answer(true));
  expect(readQuestion()?.request.wallet).toBe('second');
  expect(readQuestion()?.id).not.toBe(first?.id);
  expect(onAnswer).toHaveBeenCalledTimes(1);
  await complete(() => readQuestion()?.answer(false));
  expect(onAnswer).toHaveBeenLastCalledWith(false);
  expect(readQuestion()).toBeUndefined();
});

test('a question that another question replaces is refused', async () => {
  const readQuestion = await renderQuestion();
  const onAnswer = vi.fn();
  await complete(() => void confirmation.ask(request('first')).then(onAnswer));
  await complete(() => void confirmation.ask(request('second')));
  expect(onAnswer).toHaveBeenLastCalledWith(false);
  expect(readQuestion()?.request.wallet).toBe('second');
  await complete(() => readQuestion()?.answer(false));
});

test('a question can be answered with yes after half a second, and not before', async () => {
  const { latest, unmount } = await renderHook(useArmed);
  expect(latest()).toBe(false);
  await complete(() => vi.advanceTimersByTime(499));
  expect(latest()).toBe(false);
  await complete(() => vi.advanceTimersByTime(1));
  expect(latest()).toBe(true);
  await unmount();
  expect(vi.getTimerCount()).toBe(0);
});
