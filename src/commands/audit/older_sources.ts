/** The commits that earlier versions of an application's contract may have been published from. */

import { iterateEvents } from 'sui-enclave/sui';
import { NodeRefusedError, SuiError } from 'sui-enclave/sui/errors';
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import type { Source } from 'sui-enclave/sui/structs';
import { UsageError } from '../command_line.ts';
import { printable } from '../printable.ts';
import type { Chain } from '../sui/chain.ts';

/** What is read of a commit for its Move packages alone. */
export type OlderSource = Pick<Source, 'url' | 'commit' | 'folder'>;

/** Of a config's events: each costs a fetch. */
const MAX_COMMITS = 20;

/**
 * A commit that the auditor names, as `<commit>` or `<commit>:<folder>`, in the repository and folder of the config's
 * source where it says no other.
 *
 * @throws UsageError
 */
export function parseOlderSource(text: string, source: Source | null): OlderSource {
  const [, commit, named] = /^([0-9a-f]{40}|[0-9a-f]{64})(?::([\w./-]*))?$/.exec(text) ?? [];
  if (commit !== undefined) {
    return { url: source?.url ?? '', commit, folder: named ?? source?.folder ?? '' };
  }
  throw new UsageError(
    `--older-source ${printable(text)} is not a commit: give its whole hash, and :<folder> if the application was in another folder`,
  );
}

/**
 * The commits that a config has named so far, the latest first, without the present one. None where the node lists no
 * events: an auditor can name them.
 *
 * @throws SuiError
 */
export async function formerSources(config: EnclaveConfig, { client }: Chain): Promise<OlderSource[]> {
  const { enclavePackage, application, id } = config;
  const sources: Source[] = [];
  try {
    for (const name of ['EnclaveConfigCreated', 'PcrsUpdated'] as const) {
      for await (const { data } of iterateEvents(client, { enclavePackage, application, name })) {
        if (data.configId === id && data.source !== null) sources.push(data.source);
      }
    }
  } catch (error) {
    const isUnable = error instanceof NodeRefusedError && error.status === 'UNIMPLEMENTED';
    if (!isUnable && !(error instanceof SuiError && error.code === 'SUI_NODE_ANSWER')) throw error;
  }
  const key = ({ url, commit, folder }: OlderSource) => `${url} ${commit} ${folder}`;
  const named = new Map(sources.reverse().map((source) => [key(source), source]));
  if (config.source !== null) named.delete(key(config.source));
  return [...named.values()].slice(0, MAX_COMMITS);
}
