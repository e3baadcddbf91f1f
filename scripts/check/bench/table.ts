import { Console } from 'node:console';
import { Writable } from 'node:stream';

/** The rows by name, as console.table prints them. */
export function formatTable(rows: Readonly<Record<string, object>>): string {
  let text = '';
  const stdout = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  new Console({ stdout }).table(rows);
  return text.trimEnd();
}
