/**
 * Writes all output of an audit's process: texts that libraries print, warn of or throw may come from an
 * attacker.
 */
import { EXIT, type Io } from 'sui-enclave-cli/command';
import { boundLines, escapeControls, printable } from 'sui-enclave-cli/printable';

/** Maximum number of lines that are not the command's own. */
const MAX_LINES = 100;
const MAX_LINE = 300;

/** Limits of a text that the command prints in one piece, and of its lines. */
const MAX_TEXT = { lines: 2000, characters: 2000 };

type Callback = (error?: Error | null) => void;

/**
 * Reserves standard output and standard error for the command. Afterwards, warnings and other
 * writes go to standard error. Both the number of these lines and their lengths are limited, and they contain
 * only printable ASCII. An uncaught error ends the process without a verdict.
 *
 * @param asJson whether standard output is one JSON document, which must not be cut
 */
export function takeOutput(io: Io, asJson: boolean): Io {
  const [out, error] = [process.stdout, process.stderr].map((stream) => stream.write.bind(stream));
  let count = 0;
  const writeForeign = (text: string) => {
    for (const line of text.split(/\r?\n/).filter((nonEmpty) => nonEmpty !== '')) {
      count += 1;
      if (count <= MAX_LINES) error?.(`${printable(line, MAX_LINE)}\n`);
      else if (count === MAX_LINES + 1) error?.('… more was left out\n');
    }
  };
  const write = (chunk: string | Uint8Array, encoding?: unknown, callback?: Callback) => {
    writeForeign(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8'));
    const done = typeof encoding === 'function' ? (encoding as Callback) : callback;
    // The callback must run after all earlier writes.
    return out?.('', () => done?.()) ?? true;
  };
  for (const stream of [process.stdout, process.stderr]) stream.write = write as typeof stream.write;
  // Node's own listener would write warnings unchanged.
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => writeForeign(`${name}: ${message}`));
  const commandIo: Io = {
    ...io,
    log: (text) => void out?.(`${asJson ? text : toPlain(text)}\n`),
    error: (text) => void error?.(`${toPlain(text)}\n`),
  };
  let isEnding = false;
  process.on('uncaughtException', (fault) => {
    // This error may have occurred while the first one was written.
    if (isEnding) process.exit(EXIT.notTried);
    isEnding = true;
    const { code, error: message } = { code: 'INTERNAL', error: printable(String(fault), MAX_LINE) };
    writeForeign(String((fault as Error | undefined)?.stack));
    if (asJson) commandIo.log(JSON.stringify({ verdict: 'none', code, error: message }, null, 2));
    else commandIo.error(`NO VERDICT (${code}): ${message}`);
    out?.('', () => error?.('', () => process.exit(EXIT.notTried)));
  });
  return commandIo;
}

function toPlain(text: string): string {
  return boundLines(escapeControls(text), MAX_TEXT);
}
