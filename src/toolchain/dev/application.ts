/**
 * Loads the parts of an application that development needs: its settings in an image, and the fakes of the
 * hosts that it calls.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseServerEnv } from 'sui-enclave-cli/image/settings';
import type { Fakes } from 'sui-enclave-testing/fakes';
import { reportFile } from './loaded_files.ts';

/** Name of the file with an application's fakes, in the application's folder. */
export const STAND_IN = 'stand_in.ts';

/**
 * Returns the settings that the image's build would put into the environment of the application.
 *
 * @throws ConfigError
 */
export function settingsInImage(folder: string, secrets: readonly string[]): Record<string, string> {
  const file = join(folder, 'server.env');
  reportFile(pathToFileURL(file));
  return existsSync(file) ? parseServerEnv(readFileSync(file, 'utf8'), secrets) : {};
}

/** Starts the application's fakes; returns undefined if it has none. */
export async function startFakes(folder: string): Promise<Fakes | undefined> {
  const file = join(folder, STAND_IN);
  const { href } = pathToFileURL(file);
  reportFile(new URL(href));
  if (!existsSync(file)) return undefined;
  const { start }: { start: () => Promise<Fakes> } = await import(href);
  return start();
}
