/**
 * Extracts files from a container image in an OCI archive, without running or unpacking the rest. Such an
 * archive is a tar with the OCI image layout, as `skopeo copy … oci-archive:` and `docker save` since version
 * 25 write it. The archive is not trusted: blobs must match their digests. Links, paths outside of the image,
 * and sizes that no image has are refused.
 */
import { createHash, type Hash } from 'node:crypto';
import { on } from 'node:events';
import { closeSync, createReadStream, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline, Readable, Writable } from 'node:stream';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { isEnclaveError } from 'sui-enclave/errors';
import { Parser, type ReadEntry } from 'tar';
import * as v from 'valibot';
import { ProverToolError } from './errors.ts';

/** Maximum size of the archive, and of all its unpacked layers together, in bytes. */
const MAX_BYTES = 8 * 1024 ** 3;
const MAX_ENTRIES = 500_000;
/** Maximum size of index, manifest and configuration in bytes. They usually have some kilobytes. */
const MAX_JSON_BYTES = 256 * 1024;
const MAX_JSON_BLOBS = 256;
const MAX_LAYERS = 128;

const Digest = v.pipe(v.string(), v.regex(/^sha256:[0-9a-f]{64}$/));
const Descriptor = v.object({
  mediaType: v.string(),
  digest: Digest,
  platform: v.optional(v.object({ architecture: v.string(), os: v.string() })),
});
const Index = v.object({ manifests: v.pipe(v.array(Descriptor), v.minLength(1), v.maxLength(MAX_LAYERS)) });
const Manifest = v.object({ layers: v.pipe(v.array(Descriptor), v.maxLength(MAX_LAYERS)) });

type Descriptor = v.InferOutput<typeof Descriptor>;

const INDEX_TYPES = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
];
/** Decompressors by the media type of a layer. */
const DECOMPRESSORS: Readonly<Record<string, 'none' | 'gzip' | 'zstd'>> = {
  'application/vnd.oci.image.layer.v1.tar': 'none',
  'application/vnd.oci.image.layer.v1.tar+gzip': 'gzip',
  'application/vnd.oci.image.layer.v1.tar+zstd': 'zstd',
  'application/vnd.docker.image.rootfs.diff.tar': 'none',
  'application/vnd.docker.image.rootfs.diff.tar.gzip': 'gzip',
};

export interface ExtractionTarget {
  /** Folder in the image, such as `app/binaries`. */
  readonly folder: string;
  /** Files in the folder, with the maximum size of each in bytes. */
  readonly files: Readonly<Record<string, number>>;
}

export interface Extracted {
  /** Digest of the image's manifest. */
  readonly digest: string;
  readonly files: readonly { readonly name: string; readonly bytes: number; readonly sha256: string }[];
}

const invalid = (problem: string) => new ProverToolError('ARCHIVE_INVALID', problem);

/**
 * @param out an empty folder, to which the files are written
 * @throws ProverToolError
 */
export async function extractFromImage(
  archive: string,
  target: ExtractionTarget,
  out: string,
): Promise<Extracted> {
  const status = statSync(archive);
  if (!status.isFile()) throw invalid('the archive is not a regular file');
  if (status.size > MAX_BYTES) throw tooLarge('the archive');
  const { digest, layers } = await readManifest(archive);
  const contents = await readLayers(archive, layers, target, out);
  const files = Object.keys(target.files).map((name) => {
    const file = findFile(name, contents);
    if (file === undefined) {
      throw new ProverToolError('GENERATOR_MISSING', `the image has no file ${target.folder}/${name}`);
    }
    return { name, ...file };
  });
  for (const { name, spool } of files) renameSync(spool, join(out, name));
  for (const { spool } of contents.flatMap((layer) => [...layer.files.values()]))
    rmSync(spool, { force: true });
  return { digest, files: files.map(({ name, bytes, sha256 }) => ({ name, bytes, sha256 })) };
}

// --- The archive ---

/** Yields the entries of a tar archive in order. If the caller does not read an entry, it is skipped. */
async function* readEntries(tar: Readable): AsyncGenerator<ReadEntry> {
  const parser = new Parser({ strict: true, zstd: false });
  const entries = on(parser, 'entry', { close: ['end'] });
  // The parser is not one of Node's streams, and errors after the last entry would have no listener.
  parser.on('error', () => {});
  const sink = new Writable({
    write(chunk, _encoding, done) {
      if (parser.write(chunk)) done();
      else parser.once('drain', done);
    },
    final(done) {
      parser.end();
      done();
    },
  });
  pipeline(tar, sink, (error) => error && parser.emit('error', error));
  let count = 0;
  try {
    for await (const [entry] of entries as AsyncIterable<[ReadEntry]>) {
      count += 1;
      if (count > MAX_ENTRIES) throw tooLarge('the number of files');
      yield entry;
      entry.resume();
    }
  } catch (error) {
    if (isEnclaveError(error)) throw error;
    throw invalid('the archive, or a layer in it, is damaged or incomplete');
  } finally {
    tar.destroy();
  }
}

/** Returns the path of an entry in a form that can be compared. @throws ProverToolError */
function normalizePath({ path }: ReadEntry): string {
  const parts = path.replace(/^(\.?\/)+/, '').split('/');
  if (parts.at(-1) === '') parts.pop();
  if (parts.some((part) => part === '' || part === '.' || part === '..')) {
    throw new ProverToolError(
      'ARCHIVE_UNSAFE',
      `the path ${JSON.stringify(path.slice(0, 100))} is outside of the image, or is not in its shortest form`,
    );
  }
  return parts.join('/');
}

/** Yields the files of the archive, each with its path. */
async function* readFiles(archive: string): AsyncGenerator<[path: string, entry: ReadEntry]> {
  const seen = new Set<string>();
  for await (const entry of readEntries(createReadStream(archive))) {
    // The root folder has no path of its own.
    const path = entry.path === './' ? '' : normalizePath(entry);
    if (entry.type === 'Directory') continue;
    if (entry.type !== 'File') {
      throw new ProverToolError(
        'ARCHIVE_UNSAFE',
        `${JSON.stringify(path.slice(0, 100))} is not a plain file`,
      );
    }
    if (seen.has(path)) throw invalid(`the archive has ${path} twice`);
    seen.add(path);
    yield [path, entry];
  }
}

async function readContent(entry: ReadEntry): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of entry) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/**
 * Returns the manifest of the only image for amd64, the platform of published generators.
 *
 * @throws ProverToolError
 */
async function readManifest(archive: string): Promise<{ digest: string; layers: readonly Descriptor[] }> {
  const smallBlobs = new Map<string, Buffer>();
  let index: Buffer | undefined;
  for await (const [path, entry] of readFiles(archive)) {
    if (entry.size > MAX_JSON_BYTES || smallBlobs.size > MAX_JSON_BLOBS) continue;
    if (path === 'index.json') index = await readContent(entry);
    else if (path.startsWith('blobs/sha256/')) smallBlobs.set(path, await readContent(entry));
  }
  if (index === undefined) {
    throw invalid(
      'the file has no index.json, so it is not an OCI archive: make one with skopeo copy docker://… oci-archive:FILE, or with docker save of Docker 25 or newer',
    );
  }
  const findBlob = (digest: string) => {
    const blob = smallBlobs.get(formatBlobPath(digest));
    if (blob === undefined)
      throw invalid(`the archive lacks the blob ${digest}, or the blob is too large for a manifest`);
    if (digest !== `sha256:${createHash('sha256').update(blob).digest('hex')}`) throw changedBlob(digest);
    return blob;
  };
  let image = onlyImage(parse(Index, index, 'index.json').manifests);
  if (INDEX_TYPES.includes(image.mediaType)) {
    image = onlyImage(parse(Index, findBlob(image.digest), 'the index of the platforms').manifests);
  }
  const { layers } = parse(Manifest, findBlob(image.digest), 'the manifest');
  return { digest: image.digest, layers };
}

function onlyImage(manifests: readonly Descriptor[]): Descriptor {
  const candidates = manifests.filter(
    ({ platform }) =>
      platform === undefined || (platform.os === 'linux' && platform.architecture === 'amd64'),
  );
  const [image] = candidates;
  if (image !== undefined && candidates.length === 1) return image;
  throw invalid(`the archive must have one image for linux/amd64, and has ${candidates.length}`);
}

function parse<Output>(schema: v.GenericSchema<unknown, Output>, json: Buffer, label: string): Output {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), json.toString());
  if (!parsed.success) throw invalid(`${label} is not what the OCI image layout defines`);
  return parsed.output as Output;
}

const formatBlobPath = (digest: string) => `blobs/sha256/${digest.slice('sha256:'.length)}`;

function changedBlob(digest: string): ProverToolError {
  return invalid(`the blob ${digest} has another digest: it was changed, or is damaged`);
}

function tooLarge(label: string): ProverToolError {
  return new ProverToolError('ARCHIVE_TOO_LARGE', `${label} is too large for an image with a generator`);
}

// --- Layers ---

/** Changes that a layer makes to the requested folder. */
interface Layer {
  readonly files: Map<string, { readonly bytes: number; readonly sha256: string; readonly spool: string }>;
  /** Names that this layer removes from lower layers. */
  readonly removed: Set<string>;
  /** Whether this layer hides the whole folder of lower layers. */
  hides: boolean;
}

async function readLayers(
  archive: string,
  layers: readonly Descriptor[],
  target: ExtractionTarget,
  out: string,
): Promise<Layer[]> {
  const byPath = new Map(layers.map((layer) => [formatBlobPath(layer.digest), layer]));
  const layersByDigest = new Map<string, Layer>();
  const total = { bytes: 0 };
  for await (const [path, entry] of readFiles(archive)) {
    const layer = byPath.get(path);
    if (layer !== undefined)
      layersByDigest.set(layer.digest, await readLayer(entry, layer, target, out, total));
  }
  return layers.map(({ digest }) => {
    const layer = layersByDigest.get(digest);
    if (layer === undefined) throw invalid(`the archive lacks the layer ${digest}`);
    return layer;
  });
}

async function readLayer(
  blob: ReadEntry,
  { digest, mediaType }: Descriptor,
  target: ExtractionTarget,
  out: string,
  total: { bytes: number },
): Promise<Layer> {
  const hash = createHash('sha256');
  const layer: Layer = { files: new Map(), removed: new Set(), hides: false };
  const tar = decompress(hashed(blob, hash), mediaType, total);
  for await (const entry of readEntries(tar)) {
    // Some layers have an entry for the root folder.
    if (/^(\.\/|\.|\/)$/.test(entry.path)) continue;
    await recordEntry(entry, normalizePath(entry), layer, target, out, digest);
  }
  // The bytes after the end of the tar archive are part of the blob.
  for await (const chunk of blob) hash.update(chunk as Buffer);
  if (digest !== `sha256:${hash.digest('hex')}`) throw changedBlob(digest);
  return layer;
}

async function* hashed(blob: ReadEntry, hash: Hash): AsyncGenerator<Buffer> {
  for await (const chunk of blob) {
    hash.update(chunk as Buffer);
    yield chunk as Buffer;
  }
}

/** Returns the layer as an uncompressed tar archive, and counts its bytes. */
function decompress(blob: AsyncIterable<Buffer>, mediaType: string, total: { bytes: number }): Readable {
  const compression = Object.hasOwn(DECOMPRESSORS, mediaType) ? DECOMPRESSORS[mediaType] : undefined;
  if (compression === undefined) throw invalid(`a layer has the unknown type ${mediaType.slice(0, 100)}`);
  const source = Readable.from(blob);
  const stream = {
    none: () => source,
    gzip: () => pipeTo(source, createGunzip()),
    zstd: () => pipeTo(source, createZstdDecompress()),
  }[compression]();
  return Readable.from(counted(stream, total));
}

function pipeTo<To extends NodeJS.ReadWriteStream & Readable>(source: Readable, to: To): To {
  source.once('error', (error) => to.destroy(error));
  return source.pipe(to);
}

async function* counted(tar: Readable, total: { bytes: number }): AsyncGenerator<Buffer> {
  let isFirst = true;
  for await (const chunk of tar as AsyncIterable<Buffer>) {
    total.bytes += chunk.length;
    if (total.bytes > MAX_BYTES) throw tooLarge('the unpacked size of the layers');
    // The reader of tar archives would unpack such a layer without counting its bytes.
    if (isFirst && chunk[0] === 0x1f && chunk[1] === 0x8b) throw invalid('a layer is compressed twice');
    isFirst = false;
    yield chunk;
  }
}

/** Records the effect of an entry on the requested folder (OCI image specification, "Whiteouts"). */
async function recordEntry(
  entry: ReadEntry,
  path: string,
  layer: Layer,
  { folder, files }: ExtractionTarget,
  out: string,
  digest: string,
): Promise<void> {
  const parents = folder.split('/').map((_, index, parts) => parts.slice(0, index + 1).join('/'));
  const [, dir = '', name = ''] = /^(?:(.*)\/)?([^/]+)$/.exec(path) ?? [];
  if (name === '.wh..wh..opq') {
    if (parents.includes(dir)) layer.hides = true;
    return;
  }
  if (name.startsWith('.wh.')) {
    const deletedPath = (dir === '' ? '' : `${dir}/`) + name.slice('.wh.'.length);
    if (parents.includes(deletedPath)) layer.hides = true;
    if (dir === folder) layer.removed.add(name.slice('.wh.'.length));
    return;
  }
  if (parents.includes(path) && entry.type !== 'Directory') throw linkError(path);
  const maxBytes = dir === folder && Object.hasOwn(files, name) ? files[name] : undefined;
  if (maxBytes === undefined) return;
  if (entry.type !== 'File') throw linkError(path);
  if (entry.size > maxBytes) throw tooLarge(path);
  const spool = join(out, `${digest.slice(-12)}-${name}`);
  layer.files.set(name, { spool, bytes: entry.size, sha256: await write(entry, spool) });
}

function linkError(path: string): ProverToolError {
  return new ProverToolError('ARCHIVE_UNSAFE', `${path} is a link or a device, not a file in a folder`);
}

/** Writes an entry to a file. @returns its SHA-256 in hexadecimal */
async function write(entry: ReadEntry, path: string): Promise<string> {
  const hash = createHash('sha256');
  const file = openSync(path, 'w', 0o600);
  try {
    for await (const chunk of entry) {
      hash.update(chunk as Buffer);
      writeSync(file, chunk as Buffer);
    }
  } finally {
    closeSync(file);
  }
  return hash.digest('hex');
}

/** Returns the file as the topmost layer leaves it; undefined if it does not exist there. */
function findFile(name: string, layers: readonly Layer[]) {
  for (const { files, removed, hides } of layers.toReversed()) {
    const file = files.get(name);
    if (file !== undefined) return file;
    if (hides || removed.has(name)) return undefined;
  }
  return undefined;
}
