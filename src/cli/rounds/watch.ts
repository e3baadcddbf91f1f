/** Runs rounds as a service: until a signal, with metrics on loopback. */
import { endOnSignal } from 'sui-enclave-service/signals';
import type { Context, Result } from '../command.ts';
import { pause } from '../pause.ts';
import { type Loop, type RoundAlert, type RoundReport, repeat } from './loop.ts';
import type { RoundMetrics } from './metrics.ts';
import type { Pauses } from './pauses.ts';

export interface Watched<Alert extends RoundAlert, Report extends RoundReport<Alert>>
  extends Pick<Loop<Alert, Report>, 'round' | 'formatDone' | 'formatAlert'> {
  readonly file: Omit<Pauses, 'random'> & { readonly metricsPort?: number | undefined };
  readonly metrics: RoundMetrics<Report>;
}

/** Repeats rounds until SIGTERM or SIGINT, and then ends after the transaction in flight. */
export async function watch<Alert extends RoundAlert, Report extends RoundReport<Alert>>(
  { file, metrics, ...rounds }: Watched<Alert, Report>,
  { io }: Context,
): Promise<Result> {
  const { metricsPort } = file;
  const listener = metricsPort === undefined ? undefined : await metrics.serve(metricsPort);
  const stop = new AbortController();
  const loop = {
    ...file,
    ...rounds,
    random: Math.random,
    note: (report: Report | undefined) => metrics.note(report, Date.now()),
    log: (line: string) => io.log(line),
    pause,
  };
  const watching = repeat(loop, stop.signal);
  endOnSignal(async () => {
    stop.abort();
    await watching;
  });
  await watching;
  listener?.close();
  return { json: { status: 'ended' } };
}
