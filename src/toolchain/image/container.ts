/** Builds a Containerfile with the first program of a list that is installed. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ImageError } from 'sui-enclave-cli/image/errors';

export interface ContainerBuild {
  readonly file: string;
  readonly context: string;
  readonly args: Readonly<Record<string, string>>;
  /** Folder that gets the files of the last stage, or the name of an image to keep. */
  readonly output: string | { readonly image: string };
  /** Builds without the cache of earlier builds. */
  readonly fresh?: boolean;
}

interface Builder {
  readonly name: string;
  command(build: ContainerBuild): string[];
  /** Wraps a command so that it has no network, if the program itself has no option for that. */
  isolate?(command: readonly string[]): string[];
  /** Returns the command that removes the built image. Only its files are needed. */
  remove?(id: string): string[];
}

const ID_FILE = 'image-id';

const commonArguments = ({ file, args, output }: ContainerBuild) => [
  '--file',
  file,
  ...(typeof output === 'string' ? ['--output', `type=local,dest=${output}`] : ['--tag', output.image]),
  ...Object.entries(args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]),
];
// A build inside a container, or without user namespaces, allows no other isolation.
const buildahArguments = (build: ContainerBuild) => [
  '--isolation',
  'chroot',
  '--timestamp',
  '0',
  ...(typeof build.output === 'string' ? ['--iidfile', join(build.output, ID_FILE)] : []),
  ...(build.fresh ? ['--no-cache'] : ['--layers']),
  ...commonArguments(build),
  build.context,
];

/**
 * Runs a command in a network namespace of its own, from which it reaches nothing, not even this machine. The
 * option `--network=none` does not work together with the isolation above. Without root, the program itself
 * creates the user namespace that this requires.
 */
const withoutNetwork = (program: string) => (command: readonly string[]) => [
  ...(process.getuid?.() === 0 ? [] : [program, 'unshare']),
  'unshare',
  '--net',
  '--',
  ...command,
];

/** The programs in the order of preference: the first two need no daemon. */
const BUILDERS: readonly Builder[] = [
  {
    name: 'buildah',
    command: (build) => ['buildah', 'build', ...buildahArguments(build)],
    isolate: withoutNetwork('buildah'),
    remove: (id) => ['buildah', 'rmi', id],
  },
  {
    name: 'podman',
    command: (build) => ['podman', 'build', ...buildahArguments(build)],
    isolate: withoutNetwork('podman'),
    remove: (id) => ['podman', 'rmi', id],
  },
  {
    name: 'docker',
    command: (build) => [
      'docker',
      'buildx',
      'build',
      '--platform',
      'linux/amd64',
      '--provenance=false',
      '--network=none',
      ...(build.fresh ? ['--no-cache'] : []),
      ...(typeof build.output === 'string' ? [] : ['--load']),
      ...commonArguments(build),
      build.context,
    ],
  },
];

/** @throws ImageError: NO_BUILDER */
export function findBuilder(): Builder {
  const builder = BUILDERS.find(({ name }) => isInstalled(name));
  if (builder) return builder;
  throw new ImageError(
    'NO_BUILDER',
    'building an image needs a program that builds containers: apt-get install buildah (or podman, or docker with buildx)',
  );
}

/**
 * Builds without a network: all files come from the context.
 *
 * @throws ImageError: NO_BUILDER, also if the machine does not let the program build without a network;
 *   COMMAND_FAILED if the build fails
 */
export function buildContainer(build: ContainerBuild): void {
  const builder = findBuilder();
  // podman was tested only for builds that write files, not for builds that keep an image.
  const isTested =
    builder.name === 'buildah' || (builder.name === 'podman' && typeof build.output === 'string');
  console.error(`Building with ${builder.name}${isTested ? '' : ', which was never tested for this'}.`);
  const { isolate = (command) => [...command] } = builder;
  if (builder.isolate && !succeeds(isolate(['true']))) {
    throw new ImageError(
      'NO_BUILDER',
      `${builder.name} can't build here without a network: it needs root with CAP_SYS_ADMIN, or a user with subordinate ids (/etc/subuid), and unshare (util-linux)`,
    );
  }
  const [command, ...args] = isolate(builder.command(build)) as [string, ...string[]];
  const { status } = spawnSync(command, args, { stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new ImageError('COMMAND_FAILED', `${builder.name} failed: see above`);
  if (build.fresh && builder.remove && typeof build.output === 'string') {
    const idFile = join(build.output, ID_FILE);
    const [program, ...removal] = builder.remove(readFileSync(idFile, 'utf8').trim()) as [
      string,
      ...string[],
    ];
    spawnSync(program, removal, { stdio: 'ignore' });
  }
}

function isInstalled(name: string): boolean {
  return succeeds([name, ...(name === 'docker' ? ['buildx', 'version'] : ['--version'])]);
}

function succeeds([program, ...args]: readonly string[]): boolean {
  return spawnSync(program ?? '', args, { stdio: 'ignore' }).status === 0;
}
