/** The questions of the example dapp: one click or key never answers two of them. */
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

/** Returns the visible question. */
async function renderQuestion() {
  const { results } = await renderHook(useQuestion);
  return () => results.at(-1);
}

test('the second click of a double click leaves the next question open', async () => {
  const shown = await renderQuestion();
  const answered = vi.fn();
  await complete(() => void confirmation.ask(request('first')).then(answered));
  const first = shown();
  await complete(() => first?.answer(true));
  expect(answered).toHaveBeenLastCalledWith(true);
  await complete(() => void confirmation.ask(request('second')).then(answered));
  await complete(() => first?.answer(true));
  expect(shown()?.request.wallet).toBe('second');
  expect(shown()?.id).not.toBe(first?.id);
  expect(answered).toHaveBeenCalledTimes(1);
  await complete(() => shown()?.answer(false));
  expect(answered).toHaveBeenLastCalledWith(false);
  expect(shown()).toBeUndefined();
});

test('a question that another question replaces is refused', async () => {
  const shown = await renderQuestion();
  const answered = vi.fn();
  await complete(() => void confirmation.ask(request('first')).then(answered));
  await complete(() => void confirmation.ask(request('second')));
  expect(answered).toHaveBeenLastCalledWith(false);
  expect(shown()?.request.wallet).toBe('second');
  await complete(() => shown()?.answer(false));
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
