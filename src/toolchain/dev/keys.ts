/** Reads single keys in the terminal of `dev` and `play`. */
import type { ReadStream } from 'node:tty';

export interface Key {
  /** Purpose of the key, as a verb with its object. */
  readonly purpose: string;
  run(): Promise<void> | void;
}

const CTRL_C = '\u0003';
const CTRL_D = '\u0004';

/**
 * Reads keys without Enter, if standard input is a terminal. Ctrl-C still ends the process. At every exit,
 * the terminal is set to read lines again.
 *
 * @param onError called with an error that `run` throws, which must not end the process
 * @returns whether keys are read
 */
export function listenForKeys(
  terminal: Pick<ReadStream, 'isTTY' | 'setRawMode' | 'on' | 'resume'>,
  keys: ReadonlyMap<string, Key>,
  onError: (error: unknown) => void,
): boolean {
  if (!terminal.isTTY) return false;
  process.on('exit', () => terminal.setRawMode(false));
  terminal.setRawMode(true);
  terminal.on('data', (data: Buffer) => {
    for (const character of data.toString('latin1')) {
      // In this mode the terminal sends no signals.
      if (character === CTRL_C || character === CTRL_D) process.kill(process.pid, 'SIGINT');
      const key = keys.get(character.toLowerCase());
      if (key !== undefined) runKey(key).catch(onError);
    }
  });
  terminal.resume();
  return true;
}

/**
 * Sets the terminal to read single keys again. A child process that shares the terminal restores, at its end,
 * the mode of its own start, and this process does not notice.
 */
export function readKeysAgain(terminal: Pick<ReadStream, 'isTTY' | 'setRawMode'>): void {
  if (!terminal.isTTY) return;
  // Node does nothing if it believes that the mode is set already.
  terminal.setRawMode(false);
  terminal.setRawMode(true);
}

async function runKey(key: Key): Promise<void> {
  await key.run();
}
