/** Lists the commits that earlier versions of an application's contract may have been published from. */

import { iterateEvents } from 'sui-enclave/sui';
import { NodeRefusedError, SuiError } from 'sui-enclave/sui/errors';
import type { EnclaveConfig } from 'sui-enclave/sui/objects';
import type { Source } from 'sui-enclave/sui/structs';
import { UsageError } from 'sui-enclave-cli/command_line';
import { printable } from 'sui-enclave-cli/printable';
import type { Chain } from 'sui-enclave-cli/sui/chain';

/** Commit from which an audit reads only the Move packages. */
export type OlderSource = Pick<Source, 'url' | 'commit' | 'folder'>;

/** Maximum number of commits from a config's events: each requires a fetch. */
const MAX_COMMITS = 20;

/** Time limit for the events, in milliseconds: the list of a hostile node might never end. */
const LIST_MS = 5 * 60_000;

/**
 * Returns a commit that the auditor names, as `<commit>` or `<commit>:<folder>`. The commit is in the
 * repository of the config's source. Without a folder in the text, the folder is the one
 * of the config's source too.
 *
 * @throws UsageError
 */
export function parseOlderSource(text: string, source: Source | null): OlderSource {
  const [, commit, folder] = /^([0-9a-f]{40}|[0-9a-f]{64})(?::([\w./-]*))?$/.exec(text) ?? [];
  if (commit !== undefined) {
    return { url: source?.url ?? '', commit, folder: folder ?? source?.folder ?? '' };
  }
  throw new UsageError(
    `--older-source ${printable(text)} is not a commit: pass its whole hash, and :<folder> if the application was in another folder`,
  );
}

/**
 * Returns the commits that a config has named so far, the latest first, without the current one. The list
 * is empty if the node does not list events. If listing takes too long, it has the commits that the node
 * listed in time. An auditor can name further commits.
 *
 * @param listMs time limit for the events, in milliseconds
 * @throws SuiError
 */
export async function formerSources(
  config: EnclaveConfig,
  { client }: Chain,
  listMs = LIST_MS,
): Promise<OlderSource[]> {
  const { enclavePackage, application, id } = config;
  const key = ({ url, commit, folder }: OlderSource) => `${url} ${commit} ${folder}`;
  const currentKey = config.source && key(config.source);
  /** Sources by their keys, the latest last. */
  const sources = new Map<string, OlderSource>();
  const signal = AbortSignal.timeout(listMs);
  try {
    for (const name of ['EnclaveConfigCreated', 'PcrsUpdated'] as const) {
      for await (const { data } of iterateEvents(client, { enclavePackage, application, name, signal })) {
        if (data.configId !== id || data.source === null || key(data.source) === currentKey) continue;
        sources.delete(key(data.source));
        sources.set(key(data.source), data.source);
        const [oldest = ''] = sources.keys();
        if (sources.size > MAX_COMMITS) sources.delete(oldest);
      }
    }
  } catch (error) {
    const isUnable = error instanceof NodeRefusedError && error.status === 'UNIMPLEMENTED';
    const isBadAnswer = error instanceof SuiError && error.code === 'SUI_NODE_ANSWER';
    if (!signal.aborted && !isUnable && !isBadAnswer) throw error;
  }
  return [...sources.values()].reverse();
}
