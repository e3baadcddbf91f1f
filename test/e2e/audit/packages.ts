/** Compiles contracts of weather for the tests of packages on chain, and audits published packages. */
import { expect } from 'vitest';
import type { Sources } from '../../../src/toolchain/move/packages.ts';
import { weatherFiles } from '../../src/toolchain/audit/applications.ts';
import { type Application, COMPILER, type Published, type Verdict, type World } from './world.ts';

export const WEATHER: Application = { files: weatherFiles(), folder: 'src/apps/weather', module: 'weather' };
export const MODULE = 'move/weather/sources/weather.move';
export const MANIFEST = 'move/weather/Move.toml';

/** Returns the modules of the framework's package. */
export async function genuineModules(): Promise<Uint8Array[]> {
  return [...(await COMPILER.enclave()).values()];
}

/**
 * Compiles a package.
 *
 * @param published the original ids of packages, by folder
 * @param folders the sources of other packages that it depends on, by folder
 */
export async function compile(
  name: string,
  sources: Sources,
  published: Record<string, string> = {},
  folders: Record<string, Sources> = {},
): Promise<Uint8Array[]> {
  const linked = { published: new Map(Object.entries(published)), folders: new Map(Object.entries(folders)) };
  return (await COMPILER.compile(name, sources, linked)).map(({ bytes }) => bytes);
}

/** Returns the sources of a package in an application's files. */
export function packageIn({ files }: Application, name: string): Sources {
  const prefix = `move/${name}/`;
  const packageFiles = Object.entries(files).filter(([path]) => path.startsWith(prefix));
  return Object.fromEntries(
    packageFiles.map(([path, content]) => [path.slice(prefix.length), String(content)]),
  );
}

/** Returns weather with changes in its contract. */
export function weatherWith(change: (text: string) => string): Application {
  const text = String(WEATHER.files[MODULE]);
  expect(change(text)).not.toBe(text);
  return { ...WEATHER, files: { ...WEATHER.files, [MODULE]: change(text) } };
}

/** Deploys an application's commit with these packages, and audits it. */
export async function runAudit(
  world: World,
  published: Published,
  application = WEATHER,
  options: readonly string[] = [],
) {
  const repository = world.repository();
  const commit = repository.writeCommit(application.files);
  const deployed = await world.deploy(application, repository, commit, { published });
  const url = await world.serve(deployed);
  const verdict = await world.audit(deployed.configId, [
    '--source',
    repository.folder,
    '--url',
    url,
    ...options,
  ]);
  return { verdict, deployed, commit, repository, url };
}

export function expectVerdict(
  verdict: Verdict,
  code: 'BYTECODE_DIFFERS' | 'BYTECODE_UNKNOWN' | 'NOT_FULLY_CHECKED',
): void {
  expect(verdict, verdict.out).toMatchObject({ exit: code === 'NOT_FULLY_CHECKED' ? 3 : 1, code });
}

export function expectAgreement(verdict: Verdict): void {
  expect(verdict, verdict.out).toMatchObject({ exit: 0, verdict: 'agrees' });
}

/** Returns the subjects of the rows that do not agree. The subject of a package is its id. */
export function listFaultySubjects({ checks }: Verdict): string[] {
  return checks
    .filter(({ result: outcome }) => outcome !== 'same')
    .map(({ what: subject }) => subject.replace('the package ', ''));
}

export const HONEST = 'module helper::helper;\npublic fun check(value: u64) { assert!(value < 1000) }\n';
export const DISHONEST = 'module helper::helper;\npublic fun check(_value: u64) {}\n';
export const HELPER_TOML = '[package]\nname = "helper"\nedition = "2024"\n';

export const compileHelper = (text: string, toml = HELPER_TOML) =>
  compile('helper', { 'Move.toml': toml, 'sources/helper.move': text });
