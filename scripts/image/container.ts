/** The program that builds the Containerfile: whichever this machine has. */
import { execFileSync, spawnSync } from 'node:child_process';
import { CommandFailed } from './errors.ts';

export interface ContainerBuild {
  readonly file: string;
  readonly context: string;
  readonly args: Readonly<Record<string, string>>;
  /** Folder that gets the files of the last stage. */
  readonly output: string;
  /** Uses nothing of earlier builds. */
  readonly fresh?: boolean;
}

interface Builder {
  readonly name: string;
  command(build: ContainerBuild): string[];
}

const common = ({ file, args, output }: ContainerBuild) => [
  ...['--file', file, '--output', `type=local,dest=${output}`],
  ...Object.entries(args).flatMap(([name, value]) => ['--build-arg', `${name}=${value}`]),
];
// A build inside a container, or without user namespaces, has no other isolation.
const buildah = (build: ContainerBuild) => [
  ...['--isolation', 'chroot', '--timestamp', '0'],
  ...(build.fresh ? ['--no-cache'] : ['--layers']),
  ...common(build),
  build.context,
];

/** In the order of preference: the first two need no daemon. */
const BUILDERS: readonly Builder[] = [
  { name: 'buildah', command: (build) => ['buildah', 'build', ...buildah(build)] },
  { name: 'podman', command: (build) => ['podman', 'build', ...buildah(build)] },
  {
    name: 'docker',
    command: (build) => [
      ...['docker', 'buildx', 'build', '--platform', 'linux/amd64', '--provenance=false'],
      ...(build.fresh ? ['--no-cache'] : []),
      ...common(build),
      build.context,
    ],
  },
];

/** @throws CommandFailed where there is no such program, or the build fails */
export function buildContainer(build: ContainerBuild): void {
  const builder = BUILDERS.find(({ name }) => works(name));
  if (!builder) {
    throw new CommandFailed(
      'building an image needs buildah (apt-get install buildah), podman, or docker with buildx',
    );
  }
  console.log(
    `Building with ${builder.name}${builder.name === 'docker' ? ' (a path that is not tested)' : ''}.`,
  );
  const [command, ...args] = builder.command(build) as [string, ...string[]];
  const { status } = spawnSync(command, args, { stdio: ['ignore', 2, 2] });
  if (status !== 0) throw new CommandFailed(`${builder.name} failed: see above`);
}

function works(name: string): boolean {
  try {
    execFileSync(name, name === 'docker' ? ['buildx', 'version'] : ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
