import { EventEmitter } from 'node:events';
import { expect, onTestFinished, test, vi } from 'vitest';
import { type Key, listenForKeys, readKeysAgain } from '../../../../src/toolchain/dev/keys.ts';

class Terminal extends EventEmitter {
  isTTY = true;
  readonly modes: boolean[] = [];
  setRawMode(isRaw: boolean) {
    this.modes.push(isRaw);
    return this as never;
  }
  resume() {
    return this as never;
  }
  press(text: string) {
    this.emit('data', Buffer.from(text));
  }
}

function listen(run: Key['run'] = () => {}) {
  const terminal = new Terminal();
  const errors: unknown[] = [];
  const before = process.listeners('exit');
  const areRead = listenForKeys(terminal as never, new Map([['r', { purpose: 'restart', run }]]), (error) =>
    errors.push(error),
  );
  const [atExit] = process.listeners('exit').filter((listener) => !before.includes(listener));
  onTestFinished(() => {
    if (atExit) process.removeListener('exit', atExit);
  });
  return { terminal, errors, areRead, atExit };
}

test('play reads single keys in either case, several at once, and ignores others', () => {
  const run = vi.fn();
  const { terminal, areRead } = listen(run);
  terminal.press('rRx\u00e9');
  expect([areRead, terminal.modes, run.mock.calls.length]).toEqual([true, [true], 2]);
});

test('play reports an error of a key, thrown at once or later, and continues to read', async () => {
  const run = vi
    .fn<() => Promise<void>>()
    .mockImplementationOnce(() => {
      throw new Error('at once');
    })
    .mockRejectedValueOnce(new Error('later'));
  const { terminal, errors } = listen(run);
  terminal.press('rrr');
  await expect.poll(() => errors).toEqual([new Error('at once'), new Error('later')]);
  expect(run).toHaveBeenCalledTimes(3);
});

test.each(['\u0003', '\u0004'])(
  'play ends the process at %j, as a terminal in line mode does',
  (character) => {
    const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
    onTestFinished(() => kill.mockRestore());
    listen().terminal.press(character);
    expect(kill).toHaveBeenCalledWith(process.pid, 'SIGINT');
  },
);

test('the terminal reads lines again when the process exits', () => {
  const { terminal, atExit } = listen();
  atExit?.(0);
  expect(terminal.modes).toEqual([true, false]);
});

test('without a terminal, no key is read and no mode is changed', () => {
  const terminal = new Terminal();
  terminal.isTTY = false;
  expect(listenForKeys(terminal as never, new Map(), () => {})).toBe(false);
  expect([terminal.modes, terminal.listenerCount('data')]).toEqual([[], 0]);
});

test('the terminal reads single keys again after a child process has set it to read lines', () => {
  const { terminal } = listen();
  readKeysAgain(terminal as never);
  expect(terminal.modes).toEqual([true, false, true]);
  terminal.isTTY = false;
  readKeysAgain(terminal as never);
  expect(terminal.modes).toHaveLength(3);
});
