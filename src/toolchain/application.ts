/** Loads an application for an author's commands. */
import { resolve } from 'node:path';
import { ConfigError } from 'sui-enclave/errors';
import { type LoadedApplication, loadFolder } from 'sui-enclave-server/load_application';
import { describeModuleFailure } from './module_failure.ts';

/**
 * Loads an application. If that fails, the author sees the cause. Only authors' commands show it: a server
 * with real secrets prints only the messages of its own errors.
 *
 * @param folder of the application, with `app.yaml` and `app.ts`
 * @throws ConfigError, with the position in the source if it is known
 */
export async function loadForAuthor(folder: string, name: string): Promise<LoadedApplication> {
  try {
    return await loadFolder(folder, name);
  } catch (cause) {
    const failure = cause instanceof ConfigError ? undefined : describeModuleFailure(cause, resolve(folder));
    if (failure === undefined) throw cause;
    throw new ConfigError(`the application can't be loaded\n${failure}`, { cause });
  }
}
