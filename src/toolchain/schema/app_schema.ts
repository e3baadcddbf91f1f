/** Creates the schema of an application: the inputs of its endpoints, and the types that it signs. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type AppSchema, readSchema } from 'sui-enclave/client';
import { ApplicationMistake } from 'sui-enclave/errors';
import { toSchemaType } from 'sui-enclave/wire/schema_type';
import { parseServerEnv } from 'sui-enclave-cli/image/settings';
import type { Endpoint } from 'sui-enclave-server';
import { createLog } from 'sui-enclave-service/log';
import { createUpstreams } from 'sui-enclave-service/upstream';
import type { Fakes } from 'sui-enclave-testing/fakes';
import { loadForAuthor } from '../application.ts';
import type { ApplicationFolder } from '../project.ts';
import { inputSchema } from './input_schema.ts';

/** Name of the schema's file, beside app.ts. */
export const SCHEMA_FILE = 'schema.json';
/** Name of the file with an application's fakes, which may contain settings that it can't start without. */
const FAKES_FILE = 'stand_in.ts';

/**
 * Runs `create` of the application with the settings of its server.env and its fakes. It gets no
 * variables of the environment.
 *
 * @returns the content of schema.json, which is always the same for the same application
 * @throws ConfigError of the application; ClientError: CLIENT_SCHEMA, if the schema is too large or too
 *   deeply nested
 */
export async function createSchemaFile({ name, folder }: ApplicationFolder): Promise<string> {
  const { manifest, module } = await loadForAuthor(folder, name);
  const fakes = await startFakes(folder);
  let endpoints: readonly Endpoint[];
  try {
    ({ endpoints = [] } = module.create({
      env: { ...readSettings(folder, manifest.secrets), ...fakes?.settings },
      log: createLog('silent', { write() {} }),
      upstream: createUpstreams(manifest, fakes?.origins),
      secret: () => unavailable('a secret'),
      sign: () => unavailable('the key'),
      latest: () => unavailable('a value'),
      emit: () => {},
    }));
  } finally {
    await fakes?.close();
  }
  const schema: AppSchema = {
    version: 1,
    signs: module.signs.map(toSchemaType),
    endpoints: endpoints.map(({ method, path, idempotent }) => ({ method, path, idempotent })),
    inputs: collectInputs(endpoints),
  };
  return `${JSON.stringify(readSchema(schema), null, 2)}\n`;
}

function collectInputs(endpoints: readonly Endpoint[]): AppSchema['inputs'] {
  const inputs = endpoints.flatMap(({ method, path, input }) =>
    input === undefined ? [] : [[`${method} ${path}`, { ...inputSchema(input) }] as const],
  );
  return Object.fromEntries(inputs);
}

function readSettings(folder: string, secrets: readonly string[]): Record<string, string> {
  const file = join(folder, 'server.env');
  return existsSync(file) ? parseServerEnv(readFileSync(file, 'utf8'), secrets) : {};
}

async function startFakes(folder: string): Promise<Fakes | undefined> {
  const file = join(folder, FAKES_FILE);
  if (!existsSync(file)) return undefined;
  const { start }: { start: () => Promise<Fakes> } = await import(pathToFileURL(file).href);
  return start();
}

function unavailable(member: string): never {
  throw new ApplicationMistake(`create() of the application uses ${member}, which only its handlers may use`);
}
