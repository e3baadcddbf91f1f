/** Waits, and ends early when `stop` is aborted. */
export function pause(ms: number, stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(end, ms);
    stop.addEventListener('abort', end);
    if (stop.aborted) end();

    function end(): void {
      clearTimeout(timer);
      stop.removeEventListener('abort', end);
      resolve();
    }
  });
}
