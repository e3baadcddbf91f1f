/** Waits until a promise settles or a signal ends the wait. Browser-safe. */

/**
 * Settles like the promise, or rejects with the signal's reason if the signal aborts first. The promise
 * itself continues.
 */
export async function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await promise;
  // The promise may still fail when its caller no longer waits for it.
  promise.catch(() => {});
  signal.throwIfAborted();
  return await new Promise<T>((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** Waits for a number of milliseconds. @throws the signal's reason */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await abortable(new Promise((resolve) => setTimeout(resolve, ms)), signal);
}
