/**
 * Runs the calls of the model in Sui's Move VM too, in WebAssembly (`@zktx.io/sui-move-builder`), and compares. The VM
 * runs unit tests only, so each call becomes one, on the sources of `move/` as they were published.
 *
 * Not run there, and a model alone: `sui::nitro_attestation` and `sui::package`, the ids of derived objects, who may
 * use an object, transfers and gas.
 */
import { initMovePackageBuilder, testMovePackage } from '@zktx.io/sui-move-builder/full';
import { type ModuleInterface, readModule } from 'sui-enclave-move-bytecode/module_bytecode';
import { type Call, Document, type ExecutionContext, enclaveIdOf, MoveAbort } from '../call.ts';
import { runCall } from '../contract.ts';
import { Refusal } from '../failures.ts';
import { Config } from '../structs.ts';
import { AGREED, type Circumstances, configOf, type Effects, isLedgerObject, testOf } from './code.ts';
import { contractSources, frameworkFetcher } from './sources.ts';

/** The modules that the model knows. */
const MODULES = ['attested', 'enclave', 'once', 'pcrs', 'source', 'weather'];

/** What a call did: its effects, or how it aborted. */
type Outcome = Effects | MoveAbort;

interface Contracts {
  readonly sources: Readonly<Record<string, string>>;
  readonly modules: ReadonlyMap<string, ModuleInterface>;
}

export class MoveVm {
  readonly #packages = new Map<string, Contracts>();
  /** Calls that ran in the VM so far. */
  runs = 0;

  /**
   * Takes the sources of `move/` as those of a published package.
   *
   * @param original the id under which it was first published
   * @throws Refusal UNIMPLEMENTED for modules that are not those of `move/enclave` and `move/weather`
   */
  publish(id: string, original: string, modules: readonly Uint8Array[]): void {
    const read = modules.map((bytecode) => readModule(bytecode, original));
    const names = read.map(({ name }) => name).sort();
    if (names.join() !== MODULES.join()) {
      throw new Refusal(
        'UNIMPLEMENTED',
        `this model of Sui knows move/enclave and move/weather, published together: not the modules ${names.join(', ')}`,
      );
    }
    const interfaces = new Map(read.map((module) => [module.name, module]));
    this.#packages.set(id, { sources: contractSources(original), modules: interfaces });
  }

  /**
   * Runs a call in the model and in the VM.
   *
   * @returns the model's results
   * @throws MoveAbort, where both abort; as the model; Refusal INTERNAL where the Move code does anything else
   */
  async run(context: ExecutionContext, call: Call): Promise<readonly unknown[]> {
    const { changes } = context;
    const circumstances = circumstancesOf(context, call);
    const before = new Set(changes.written.keys());
    try {
      const results = await runCall(context, call);
      const isReturned = (id: string) => results.some((result) => isLedgerObject(result) && result.id === id);
      const shared = [...changes.written.values()].filter(
        ({ id, owner }) => owner.kind === 'shared' && changes.isNew(id) && !before.has(id) && !isReturned(id),
      );
      await this.#compare(call, circumstances, { after: (id) => changes.get(id), results, shared });
      return results;
    } catch (error) {
      if (error instanceof MoveAbort) await this.#compare(call, circumstances, error);
      throw error;
    }
  }

  async #compare(call: Call, circumstances: Circumstances, outcome: Outcome): Promise<void> {
    const contracts = this.#packages.get(call.package);
    const called = contracts?.modules.get(call.module)?.functions.get(call.function);
    if (!contracts || !called) return;
    const effects = outcome instanceof MoveAbort ? undefined : outcome;
    const test = testOf(call, called, circumstances, effects);
    await initMovePackageBuilder();
    const run = await testMovePackage({
      files: { ...contracts.sources, 'tests/model_run.move': test },
      fetcher: frameworkFetcher,
      network: 'testnet',
      ansiColor: false,
      silenceWarnings: true,
    });
    this.runs += 1;
    const output = 'error' in run ? run.error : run.output;
    const expected =
      outcome instanceof MoveAbort
        ? abortOf(outcome)
        : `code ${AGREED} originating in the module enclave::model_run`;
    if (output.includes(`it aborted with ${expected} rooted here`)) return;
    const { module, function: name } = call;
    const model = outcome instanceof MoveAbort ? outcome.message : 'no abort, or other objects';
    throw new Refusal(
      'INTERNAL',
      `the Move code of ${module}::${name} does not do what the model does (${model}):\n${output.slice(output.search(/error/))}`,
    );
  }
}

function circumstancesOf(context: ExecutionContext, call: Call): Circumstances {
  const { changes, sender, nowMs } = context;
  const config = configOf(call);
  const document = call.args.find((value) => value instanceof Document);
  const isClaimed = () => {
    if (config === undefined || document === undefined) return false;
    const enclave = enclaveIdOf(
      context.original(call.package),
      Config.parse(config.content),
      document.publicKey,
    );
    return changes.isClaimed(config.id, enclave);
  };
  return { sender, nowMs, digest: changes.digest, created: changes.idsMade, isClaimed: isClaimed() };
}

/** An abort as the test runner prints it. */
function abortOf({ constant, location: { module } }: MoveAbort): string {
  const what = typeof constant === 'string' ? `error constant '${constant}'` : `code ${constant}`;
  return `${what} originating in the module ${module === 'weather' ? 'app' : 'enclave'}::${module}`;
}
