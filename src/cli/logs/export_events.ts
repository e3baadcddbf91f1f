/** `sui-enclave export_events`: writes the closed events of the journal to a file. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { EnclaveError } from 'sui-enclave/errors';
import { quantity } from 'sui-enclave/wording';
import { endOnSignal } from 'sui-enclave-service/signals';
import { command, type Io, runAsProcess } from '../command.ts';
import { path } from '../values.ts';
import { RELAY_UNIT, readEntry, UNIT_STATES } from './closed_events.ts';
import { appendEvents, checkEventsFile, type Paths, readCursor } from './events_file.ts';

/** `journalctl` can't be started, or has ended by itself. */
export class JournalError extends EnclaveError {
  readonly code = 'JOURNAL';
}

/** Shortest time between two reports of refused lines, in milliseconds. */
const REPORT_MS = 60_000;

export const main = command({
  name: 'export_events',
  purpose: `Follows the journal of a parent instance until SIGTERM, and appends its closed events to a file: the events of the
enclaves, and the starts, stops and failures of the units. Each has fixed fields, and anything else stays in the journal.`,
  example: 'events.jsonl --once',
  arguments: { file: { schema: path } },
  options: {
    cursor: {
      value: '<file>',
      help: 'the file with the place in the journal up to which events are written (default: <file>.cursor)',
      schema: path,
    },
    once: { help: 'write the events that the journal has, and end' },
  },
  notes: "exit codes: 0 ended by a signal, or all written; 1 journalctl failed; 2 a file can't be used",
  async run({ args, options }, { env, io }) {
    const paths = { events: args.file, cursor: options.cursor ?? `${args.file}.cursor` };
    const cursor = readCursor(paths);
    checkEventsFile(paths);
    const journal = spawn('journalctl', formatArguments(cursor, options.once === true), {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let isStopped = false;
    const ended = waitForEnd(journal).catch((error: unknown) => {
      return isStopped ? undefined : error;
    });
    const stop = () => {
      isStopped = true;
      journal.kill('SIGKILL');
    };
    if (!options.once) {
      endOnSignal(async () => {
        stop();
        await ended;
      });
    }
    try {
      const events = await copyEvents(journal.stdout, paths, io);
      const failure = await ended;
      if (failure !== undefined) throw failure;
      return {
        json: { status: 'done', events },
        text: `Wrote ${quantity(events, 'event')} to ${paths.events}.`,
      };
    } finally {
      stop();
    }
  },
});

/** Returns the arguments that select the relay's entries, and systemd's entries about states of units. */
function formatArguments(cursor: string | undefined, isOnce: boolean): string[] {
  const fields = ['MESSAGE', 'MESSAGE_ID', 'UNIT', '_PID', '_SYSTEMD_UNIT'];
  return [
    ...(isOnce ? [] : ['--follow', '--no-tail']),
    '--output=json',
    `--output-fields=${fields.join(',')}`,
    ...(cursor === undefined ? [] : [`--after-cursor=${cursor}`]),
    `_SYSTEMD_UNIT=${RELAY_UNIT}`,
    '+',
    '_PID=1',
    ...Object.keys(UNIT_STATES).map((id) => `MESSAGE_ID=${id}`),
  ];
}

/** Waits for the end of journalctl. @throws JournalError if it could not be started, or failed */
async function waitForEnd(journal: ChildProcess): Promise<void> {
  const [code, signal] = await once(journal, 'exit').catch((cause: NodeJS.ErrnoException) => {
    throw new JournalError(`journalctl could not be started: ${cause.code}`, { cause });
  });
  if (code !== 0) throw new JournalError(`journalctl ended with ${signal ?? `exit code ${code}`}`);
}

/** Copies the events of journalctl's output to the file. @returns their number @throws EventsFileError */
async function copyEvents(output: Readable, paths: Paths, io: Pick<Io, 'error'>): Promise<number> {
  const report = createReport(io);
  let partial = '';
  let written = 0;
  for await (const chunk of output.setEncoding('utf8')) {
    const texts = `${partial}${chunk}`.split('\n');
    partial = texts.pop() ?? '';
    const entries = texts.flatMap((text) => readEntry(text) ?? []);
    const lines = entries.flatMap(({ line }) => line ?? []);
    const lastEntry = entries.at(-1);
    if (lastEntry !== undefined) appendEvents(paths, lines, lastEntry.cursor);
    written += lines.length;
    report(entries.filter(({ isRefused }) => isRefused).length);
  }
  return written;
}

/** Returns a function that reports, once a minute at most, how many lines were not closed events. */
function createReport({ error }: Pick<Io, 'error'>): (refused: number) => void {
  let total = 0;
  let reportedAt = Number.NEGATIVE_INFINITY;
  return (refused) => {
    total += refused;
    if (total === 0 || performance.now() - reportedAt < REPORT_MS) return;
    error(`left in the journal, since only closed events are copied: ${quantity(total, 'line')} of enclaves`);
    reportedAt = performance.now();
    total = 0;
  };
}

if (import.meta.main) await runAsProcess(main);
