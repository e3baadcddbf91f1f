/** Creates tar archives and OCI archives for tests, including hostile archives. */
import { createHash } from 'node:crypto';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { Header } from 'tar';

export interface Member {
  readonly path: string;
  /** Type of the entry. Default: File. */
  readonly type?: 'File' | 'Directory' | 'SymbolicLink' | 'Link' | 'CharacterDevice';
  readonly content?: string | Buffer;
  readonly linkpath?: string;
  /** Size in the header. Default: the size of the content. */
  readonly size?: number;
}

const BLOCK = 512;

export function createTar(members: readonly Member[]): Buffer {
  const parts = members.flatMap(({ path, type = 'File', content = '', linkpath, size }) => {
    const data = Buffer.from(content);
    const header = new Header({
      path,
      type,
      mode: 0o755,
      size: size ?? data.length,
      ...(linkpath !== undefined && { linkpath }),
    });
    const block = Buffer.alloc(BLOCK);
    header.encode(block);
    return [block, data, Buffer.alloc((BLOCK - (data.length % BLOCK)) % BLOCK)];
  });
  return Buffer.concat([...parts, Buffer.alloc(2 * BLOCK)]);
}

const computeDigest = (blob: Buffer) => createHash('sha256').update(blob).digest('hex');
const formatPath = (blob: Buffer) => `blobs/sha256/${computeDigest(blob)}`;

const COMPRESSED = {
  tar: { type: 'application/vnd.oci.image.layer.v1.tar', compress: (tar: Buffer) => tar },
  gzip: { type: 'application/vnd.oci.image.layer.v1.tar+gzip', compress: (tar: Buffer) => gzipSync(tar) },
  zstd: { type: 'application/vnd.oci.image.layer.v1.tar+zstd', compress: zstdCompressSync },
} as const;

export interface Image {
  readonly layers: readonly (readonly Member[])[];
  readonly compression?: keyof typeof COMPRESSED;
  /** Puts the manifest into an index of platforms, beside a manifest for arm64. */
  readonly platforms?: boolean;
  /** Changes the members of the archive before it is written. */
  readonly change?: (members: Member[]) => Member[];
}

export function ociArchive({
  layers,
  compression = 'gzip',
  platforms = false,
  change = (all) => all,
}: Image): Buffer {
  const { type, compress } = COMPRESSED[compression];
  const blobs = layers.map((members) => compress(createTar(members)));
  const describe = (mediaType: string, blob: Buffer, extraFields: object = {}) => ({
    mediaType,
    digest: `sha256:${computeDigest(blob)}`,
    size: blob.length,
    ...extraFields,
  });
  const json = (value: object) => Buffer.from(JSON.stringify(value));
  const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = json({ schemaVersion: 2, layers: blobs.map((blob) => describe(type, blob)) });
  const otherIndex = json({ schemaVersion: 2, layers: [] });
  const on = (architecture: string) => ({ platform: { architecture, os: 'linux' } });
  const index = json({
    manifests: [describe(MANIFEST, otherIndex, on('arm64')), describe(MANIFEST, manifest, on('amd64'))],
  });
  const top = platforms
    ? describe('application/vnd.oci.image.index.v1+json', index)
    : describe(MANIFEST, manifest);
  const files = [manifest, otherIndex, index, ...blobs];
  const members: Member[] = [
    { path: 'blobs/', type: 'Directory' },
    ...[...new Map(files.map((blob) => [formatPath(blob), blob]))].map(([path, content]) => ({
      path,
      content,
    })),
    { path: 'oci-layout', content: '{"imageLayoutVersion":"1.0.0"}' },
    { path: 'index.json', content: json({ schemaVersion: 2, manifests: [top] }) },
  ];
  return createTar(change(members));
}
