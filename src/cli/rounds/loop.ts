/** Repeats rounds until it is stopped, and logs their actions and alerts. */
import { type Pauses, pauseAfter } from './pauses.ts';

/** An alert of a round. */
export interface RoundAlert {
  readonly code: string;
  readonly subject: string;
}

/** The report of a round, as far as the loop reads it. */
export interface RoundReport<Alert extends RoundAlert> {
  readonly alerts: readonly Alert[];
  /** Whether the next round should come later. */
  readonly hasFailed: boolean;
}

export interface Loop<Alert extends RoundAlert, Report extends RoundReport<Alert>> extends Pauses {
  round(stop: AbortSignal): Promise<Report>;
  /** Called after each round, with undefined if the round failed unexpectedly. */
  note(report: Report | undefined): void;
  /** Returns a line for each action of a round. */
  formatDone(report: Report): string[];
  /** Returns the line of an alert that begins. */
  formatAlert(alert: Alert): string;
  /** Writes a line, without keys or secrets. */
  log(line: string): void;
  /** Waits for a number of milliseconds, or until `stop` is aborted. */
  pause(ms: number, stop: AbortSignal): Promise<void>;
}

/**
 * Repeats rounds. Ends when `stop` is aborted, after the transaction in flight. After failures, pauses are
 * longer.
 */
export async function repeat<Alert extends RoundAlert, Report extends RoundReport<Alert>>(
  loop: Loop<Alert, Report>,
  stop: AbortSignal,
): Promise<void> {
  let failures = 0;
  const logAlerts = createAlertLog(loop);
  while (!stop.aborted) {
    let report: Report | undefined;
    try {
      report = await loop.round(stop);
      for (const line of loop.formatDone(report)) loop.log(line);
      // A round that was stopped early has not checked everything, so an alert that it lacks may not be over.
      if (!stop.aborted) logAlerts(report.alerts);
    } catch {
      // The error's message may contain anything, so it is not logged.
      loop.log('alert INTERNAL: an internal error');
    }
    loop.note(report);
    failures = report === undefined || report.hasFailed ? failures + 1 : 0;
    await loop.pause(pauseAfter(failures, loop), stop);
  }
}

/** Logs each alert when it begins and when it ends. */
function createAlertLog<Alert extends RoundAlert>({
  log,
  formatAlert,
}: Pick<Loop<Alert, RoundReport<Alert>>, 'log' | 'formatAlert'>): (alerts: readonly Alert[]) => void {
  let lasting = new Set<string>();
  return (alerts) => {
    const present = new Map(alerts.map((alert) => [`${alert.code} ${alert.subject}`, alert]));
    for (const [name, alert] of present) if (!lasting.has(name)) log(formatAlert(alert));
    for (const name of lasting) if (!present.has(name)) log(`over: ${name}`);
    lasting = new Set(present.keys());
  };
}
