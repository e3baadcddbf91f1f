/** Ends an engine that hangs: one that does not answer, or that makes no progress. */
import { EngineError, type EngineWorker } from '../engine.ts';

/** Interval in milliseconds at which a worker is asked for its status. */
export const HEARTBEAT_MS = 1000;
/**
 * Number of beats after which a worker counts as hung: beats without an answer, or beats of a proof without
 * progress.
 */
const SILENT_BEATS = 3;
const STUCK_BEATS = 30;

type Watched = Pick<EngineWorker, 'status' | 'kill' | 'ended'>;

/**
 * Asks a worker for its status until the worker has ended. Counts beats instead of time, since after a pause
 * of the whole machine, an answer may only be late.
 */
export function watch(worker: Watched, beatMs = HEARTBEAT_MS): void {
  const beats = (count: number) => `${(count * beatMs) / 1000} s`;
  const end = (problem: string) => worker.kill(new EngineError('hung', `the engine ${problem}`));
  let isAsking = false;
  let silent = 0;
  let stuck = 0;
  let last = -1;
  const ask = async () => {
    const { state, progress } = await worker.status();
    isAsking = false;
    stuck = state === 'proving' && progress === last ? stuck + 1 : 0;
    last = progress;
    if (stuck === STUCK_BEATS) end(`made no progress for ${beats(stuck)}`);
  };
  const beat = () => {
    silent = isAsking ? silent + 1 : 0;
    if (silent === SILENT_BEATS) end(`did not answer for ${beats(silent)}`);
    if (isAsking) return;
    isAsking = true;
    // The worker has ended, and its owner knows that.
    ask().catch(() => {});
  };
  const timer = setInterval(beat, beatMs);
  void worker.ended.then(() => clearInterval(timer));
}
