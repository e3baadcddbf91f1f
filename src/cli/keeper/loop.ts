/** Repeats rounds until it is stopped, and logs what changes. */
import { type Alert, formatLine } from './alerts.ts';
import { type Pauses, pauseAfter } from './pauses.ts';
import type { Report } from './round.ts';

export interface Loop extends Pauses {
  round(stop: AbortSignal): Promise<Report>;
  /** Called after each round, with undefined if the round failed unexpectedly. */
  note(report: Report | undefined): void;
  /** Writes a line, without keys or secrets. */
  log(line: string): void;
  /** Waits for a number of milliseconds, or until `stop` is aborted. */
  pause(ms: number, stop: AbortSignal): Promise<void>;
}

/**
 * Repeats rounds. Ends when `stop` is aborted, after the transaction in flight. After failures, pauses are
 * longer.
 */
export async function repeat(loop: Loop, stop: AbortSignal): Promise<void> {
  let failures = 0;
  const saidOf = alertLog(loop.log);
  while (!stop.aborted) {
    let report: Report | undefined;
    try {
      report = await loop.round(stop);
      for (const line of formatLines(report)) loop.log(line);
      // A round that was stopped early has not looked at everything, so alerts that it lacks may not be over.
      if (!stop.aborted) saidOf(report.alerts);
    } catch {
      // The error's message may contain anything, so it is not logged.
      loop.log('alert INTERNAL: an internal error');
    }
    loop.note(report);
    failures = report === undefined || report.hasFailed ? failures + 1 : 0;
    await loop.pause(pauseAfter(failures, loop), stop);
  }
}

/** Returns a line for each action of a round. */
export function formatLines({ done }: Report): string[] {
  return done.map(({ kind, subject, result }) => {
    const verb = kind === 'register' ? 'registered' : 'destroyed';
    if (result === 'simulated') return `would have ${verb} ${subject}`;
    return `${verb} ${subject}${result === 'theirs' ? ', by another keeper' : ''}`;
  });
}

/** Logs each alert when it begins and when it ends. */
function alertLog(log: (line: string) => void): (alerts: readonly Alert[]) => void {
  let lasting = new Set<string>();
  return (alerts) => {
    const present = new Map(alerts.map((alert) => [`${alert.code} ${alert.subject}`, alert]));
    for (const [name, alert] of present) if (!lasting.has(name)) log(formatLine(alert));
    for (const name of lasting) if (!present.has(name)) log(`over: ${name}`);
    lasting = new Set(present.keys());
  };
}
