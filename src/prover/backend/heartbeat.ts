/** Ends an engine that hangs: one that does not answer, or that makes no progress. */
import { EngineError, type EngineWorker } from '../engine.ts';

/** Interval in milliseconds at which a worker is asked for its status. */
export const HEARTBEAT_MS = 1000;
/** Number of beats without an answer after which a worker counts as hung. */
const SILENT_BEATS = 3;
/** Number of beats without progress of a proof after which a worker counts as hung. */
const STUCK_BEATS = 30;

type Watched = Pick<EngineWorker, 'status' | 'kill' | 'ended'>;

/**
 * Asks a worker for its status until the worker has ended, and kills a worker that hangs. Counts beats and
 * not time: if the whole machine was paused, an answer is late although the worker does not hang.
 */
export function watch(worker: Watched, beatMs = HEARTBEAT_MS): void {
  const formatBeats = (count: number) => `${(count * beatMs) / 1000} s`;
  const kill = (problem: string) => worker.kill(new EngineError('hung', `the engine ${problem}`));
  let isAsking = false;
  let silentBeats = 0;
  let stuckBeats = 0;
  let lastProgress = -1;
  const ask = async () => {
    const { state, progress } = await worker.status();
    isAsking = false;
    stuckBeats = state === 'proving' && progress === lastProgress ? stuckBeats + 1 : 0;
    lastProgress = progress;
    if (stuckBeats === STUCK_BEATS) kill(`made no progress for ${formatBeats(stuckBeats)}`);
  };
  const beat = () => {
    silentBeats = isAsking ? silentBeats + 1 : 0;
    if (silentBeats === SILENT_BEATS) kill(`did not answer for ${formatBeats(silentBeats)}`);
    if (isAsking) return;
    isAsking = true;
    // This fails only if the worker has ended, which its owner handles.
    ask().catch(() => {});
  };
  const timer = setInterval(beat, beatMs);
  void worker.ended.then(() => clearInterval(timer));
}
