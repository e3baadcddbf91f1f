import { expect, test } from 'vitest';
import { abortable, pause } from '../../../src/library/waiting.ts';

test('an abort signal ends a pause, and any other wait', async () => {
  const reason = new Error('the user left');
  await expect(pause(60_000, AbortSignal.timeout(1))).rejects.toMatchObject({ name: 'TimeoutError' });
  await expect(abortable(new Promise(() => {}), AbortSignal.abort(reason))).rejects.toBe(reason);
  const { signal } = new AbortController();
  await expect(abortable(Promise.reject(reason), signal)).rejects.toBe(reason);
  expect(await abortable(Promise.resolve(1), signal)).toBe(1);
});
