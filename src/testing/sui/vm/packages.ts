/** The packages whose code the Move VM runs: those of a folder, once their bytecode is published. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import {
  type ModuleInterface,
  type PublicFunction,
  readModule,
} from 'sui-enclave-move-bytecode/module_bytecode';
import { Refusal } from '../failures.ts';
import { makers, typeParameters } from './literals.ts';
import { CompilerError, type Runner } from './runner.ts';
import { type Files, frameworkSources, manifestOf, packageSources, type Sources } from './sources.ts';
import { Datatypes, format, parseType, splitList } from './types.ts';

const RUN_ADDRESS = '0x10de';

/** Everything that a transaction is compiled with. */
export interface Code {
  readonly files: Files;
  readonly datatypes: Datatypes;
  /** By address and name. */
  readonly modules: ReadonlyMap<string, ModuleInterface>;
}

interface Published {
  readonly original: string;
  readonly sources: Sources;
  readonly modules: readonly ModuleInterface[];
}

export class Packages {
  readonly #runner: Runner;
  /** The folder of the packages; ends in a slash. */
  readonly #folder: URL;
  readonly #published = new Map<string, Published>();
  #framework: Promise<readonly ModuleInterface[]> | undefined;
  /** Those that compile to published bytecode, by its digest. */
  readonly #sources = new Map<string, Sources>();
  readonly #codes = new Map<string, Code>();

  constructor(runner: Runner, folder: URL) {
    this.#runner = runner;
    this.#folder = folder;
  }

  /**
   * @param original the id under which it was first published
   * @throws Refusal UNIMPLEMENTED for bytecode that no package of the folder compiles to
   */
  async publish(id: string, original: string, modules: readonly Uint8Array[]): Promise<void> {
    const read = modules.map((bytecode) => readModule(bytecode, original));
    const names = read.map(({ name }) => name);
    const key = createHash('sha256').update(Buffer.concat(modules)).digest('hex');
    const sources = this.#sources.get(key) ?? (await this.#sourcesOf(names, modules));
    this.#sources.set(key, sources);
    this.#published.set(id, { original, sources, modules: read });
  }

  /** As if it had not been published. */
  forget(id: string): void {
    this.#published.delete(id);
    for (const key of this.#codes.keys()) if (key.includes(id)) this.#codes.delete(key);
  }

  /** The latest package whose types have this address. */
  latest(original: string): string | undefined {
    return [...this.#published].findLast(([, published]) => published.original === original)?.[0];
  }

  has(id: string): boolean {
    return this.#published.has(id);
  }

  /** @param ids packages that were published @throws Refusal UNIMPLEMENTED for those that can't be compiled together */
  async code(ids: readonly string[]): Promise<Code> {
    const key = [...ids].sort().join();
    const known = this.#codes.get(key);
    if (known !== undefined) return known;
    const code = await this.#compose(ids);
    this.#codes.set(key, code);
    return code;
  }

  async #compose(ids: readonly string[]): Promise<Code> {
    const packages = ids.flatMap((id) => this.#published.get(id) ?? []);
    const named = packages.flatMap(({ original, sources }) =>
      sources.names.map((name) => [name, original] as const),
    );
    if (new Set(named.map(([name]) => name)).size < named.length) {
      throw new Refusal(
        'UNIMPLEMENTED',
        'this model of Sui does not run two packages of the same name in a transaction',
      );
    }
    const framework = await this.#frameworkModules();
    const modules = [...framework, ...packages.flatMap((code) => code.modules)];
    const datatypes = new Datatypes(modules);
    const files: Files = Object.assign(
      {},
      frameworkSources(),
      ...packages.map(({ sources }) => sources.files),
    );
    const text = Object.values(files).join('\n');
    const isWrittenWithParentheses = (_module: string, name: string) =>
      new RegExp(`\\bstruct\\s+${name}\\b\\s*(?:<[^{;]*?>)?\\s*\\(`).test(text);
    const additions = makers(datatypes, isWrittenWithParentheses, new Map(modules.map(wrappers)));
    return {
      files: {
        ...files,
        'tests/makers.move': additions,
        'Move.toml': manifestOf({ model_run: RUN_ADDRESS, ...Object.fromEntries(named) }),
      },
      datatypes,
      modules: new Map(modules.map((module) => [`${module.address}::${module.name}`, module])),
    };
  }

  #frameworkModules(): Promise<readonly ModuleInterface[]> {
    this.#framework ??= this.#runner
      .compile({ ...frameworkSources(), 'Move.toml': manifestOf({}) })
      .then((modules) => modules.map((bytecode) => readModule(bytecode)));
    return this.#framework;
  }

  async #sourcesOf(names: readonly string[], modules: readonly Uint8Array[]): Promise<Sources> {
    const wanted = [...names].sort().join(', ');
    const candidates = this.#names().filter(
      (name) => modulesIn(packageSources(this.#folder, name)).join(', ') === wanted,
    );
    if (candidates.length === 0) throw unknown(`no package of move/ has exactly the modules ${wanted}`);
    for (const name of candidates) {
      const sources = packageSources(this.#folder, name);
      if (await this.#isCompiledTo(sources, modules)) return sources;
    }
    throw unknown(
      `move/${candidates.join(', move/')} compiles to other bytecode now: publish it again, built on the stub of the framework`,
    );
  }

  async #isCompiledTo({ files, names }: Sources, modules: readonly Uint8Array[]): Promise<boolean> {
    const addresses = Object.fromEntries(names.map((name) => [name, '0x0']));
    try {
      const compiled = await this.#runner.compile({
        ...frameworkSources(),
        ...files,
        'Move.toml': manifestOf(addresses),
      });
      const all = new Set(compiled.map((module) => Buffer.from(module).toString('base64')));
      return modules.every((module) => all.has(Buffer.from(module).toString('base64')));
    } catch (error) {
      if (error instanceof CompilerError) return false;
      throw error;
    }
  }

  #names(): string[] {
    const folder = fileURLToPath(this.#folder);
    return readdirSync(folder)
      .filter((name) => existsSync(new URL(`${name}/Move.toml`, this.#folder)))
      .sort();
  }
}

function unknown(reason: string): Refusal {
  return new Refusal('UNIMPLEMENTED', `this model of Sui runs the packages of move/: ${reason}`);
}

function modulesIn({ files }: Sources): string[] {
  return Object.values(files)
    .flatMap((text) => [...text.matchAll(/^\s*module\s+\w+::(\w+)/gm)].map(([, name = '']) => name))
    .sort();
}

/** Functions through which a transaction reaches what only the module itself can call. */
function wrappers(module: ModuleInterface): [string, string[]] {
  const { address, name, callable, functions, init, datatypes } = module;
  const entries = [...callable].filter(([callee]) => !functions.has(callee));
  const wrapped = entries.map(([callee, signature]) => wrapper(callee, signature));
  const witness = datatypes.get(name.toUpperCase());
  const given = (init?.parameters ?? '').includes(`::${name.toUpperCase()},`) && witness !== undefined;
  const otw = given ? `0x2::test_utils::create_one_time_witness<${name.toUpperCase()}>(), ` : '';
  const initializer = `    #[test_only]\n    public fun model_init(context: &mut 0x2::tx_context::TxContext) { init(${otw}context) }`;
  const isFramework = /^0x0*[12]$/.test(address);
  return [
    `${address}::${name}`,
    isFramework ? [] : [...wrapped, ...(init === undefined ? [] : [initializer])],
  ];
}

function wrapper(name: string, { parameters, returns, constraints }: PublicFunction): string {
  const types = splitList(parameters).map((type) => format(parseType(type)));
  const results = splitList(returns).map((type) => format(parseType(type)));
  const { declared, used } = typeParameters(constraints);
  const given = types.map((type, index) => `f${index}: ${type}`).join(', ');
  const result = results.length === 0 ? '' : `: (${results.join(', ')})`;
  const values = types.map((_, index) => `f${index}`).join(', ');
  return `    public fun model_call_${name}${declared}(${given})${result} { ${name}${used}(${values}) }`;
}
