/** Fetches locked files into a cache. The cache names a file by its SHA-256, and has only complete files. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { platformFetch } from 'sui-enclave/fetch';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { replaceFile } from 'sui-enclave-service/replace_file';
import type { Lock, LockedFile } from './lock.ts';
import type { Mirrors } from './mirrors.ts';

const MAX_DOWNLOADS = 8;
const TIMEOUT_MS = 300_000;
/** Status codes that the Fetch standard calls "redirect status". It allows 20 redirects. */
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
const MAX_REDIRECTS = 20;

/**
 * Fetches the files that the cache lacks.
 *
 * @returns the paths in the cache, in the order of `files`
 * @throws ImageError: INPUTS_GONE, PACKAGE_CHANGED
 */
export async function fetchAll(
  files: readonly LockedFile[],
  lock: Pick<Lock, 'archive_time'>,
  mirrors: Mirrors,
  cache: string,
): Promise<string[]> {
  mkdirSync(cache, { recursive: true });
  const paths: string[] = [];
  const missingFiles: string[] = [];
  const pendingEntries = [...files.entries()];
  const work = async () => {
    for (let entry = pendingEntries.shift(); entry; entry = pendingEntries.shift()) {
      const [index, file] = entry;
      const fetched = await fetchOne(file, lock, mirrors, cache);
      if (fetched.path !== undefined) paths[index] = fetched.path;
      else missingFiles.push(fetched.reason);
    }
  };
  await Promise.all(Array.from({ length: MAX_DOWNLOADS }, work));
  if (missingFiles.length > 0)
    throw new ImageError('INPUTS_GONE', formatMissingInputs(missingFiles.sort(), mirrors));
  return paths;
}

async function fetchOne(
  file: LockedFile,
  { archive_time }: Pick<Lock, 'archive_time'>,
  { archives, snapshot }: Mirrors,
  cache: string,
): Promise<{ readonly path: string } | { readonly path?: undefined; readonly reason: string }> {
  const path = join(cache, file.sha256);
  // The digest is checked again: the cache may have changed since it was written.
  if (existsSync(path) && sha256(readFileSync(path)) === file.sha256) return { path };
  const sources = archives[file.archive].map((base) => `${base}/${file.path}`);
  if (snapshot) sources.push(`${snapshot}/archive/${file.archive}/${archive_time}/${file.path}`);
  const failures: string[] = [];
  for (const url of sources) {
    const bytes = await download(url.replaceAll('+', '%2B'), file.size).catch((error: Error) => {
      failures.push(`${new URL(url).host}: ${error.message}`);
      return undefined;
    });
    if (bytes === undefined) continue;
    if (sha256(bytes) !== file.sha256) {
      throw new ImageError(
        'PACKAGE_CHANGED',
        `${file.name} ${file.version} from ${new URL(url).host} is not the file of the lock: its SHA-256 differs`,
      );
    }
    replaceFile(path, bytes);
    return { path };
  }
  return { reason: `${file.name} ${file.version} (${failures.join('; ') || 'no source is known'})` };
}

/** @param missingFiles a line for each file that no source has */
export function formatMissingInputs(
  missingFiles: readonly string[],
  { snapshot, isOffline }: Mirrors,
): string {
  const advice = isOffline
    ? 'The archive of inputs lacks them: it belongs to another version or application.'
    : `Build from the out/inputs.tar of an earlier build (--inputs)${snapshot ? '' : ", set DEBIAN_SNAPSHOT to the address of Debian's snapshot archive, which keeps every version,"} or run npx --offline sui-enclave update_lock for the present versions: the registers then change, and the lock must be committed.`;
  return `${missingFiles.length === 1 ? 'this input is' : 'these inputs are'} gone from every source that was reached:\n${missingFiles.map((line) => `  ${line}`).join('\n')}\n${advice}`;
}

async function download(url: string, size: number): Promise<Buffer> {
  const response = await request(url, AbortSignal.timeout(TIMEOUT_MS)).catch(() => {
    throw new Error('no answer');
  });
  if (response.status !== 200 || !response.body) {
    await response.body?.cancel();
    throw new Error(`status ${response.status}`);
  }
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    length += chunk.length;
    if (length > size) break;
    chunks.push(chunk);
  }
  if (length !== size) throw new Error(`${length > size ? 'more' : 'fewer'} bytes than the lock states`);
  return Buffer.concat(chunks);
}

/**
 * Sends a request and follows redirects, since mirrors redirect to other hosts. The digest of the file is
 * checked later.
 */
async function request(url: string, signal: AbortSignal): Promise<Response> {
  let currentUrl = url;
  for (let count = 0; count <= MAX_REDIRECTS; count += 1) {
    const response = await platformFetch(currentUrl, { signal, redirect: 'manual' });
    const location = response.headers.get('location');
    if (!REDIRECTS.includes(response.status) || location === null) return response;
    await response.body?.cancel();
    currentUrl = new URL(location, currentUrl).href;
  }
  throw new Error('too many redirects');
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
