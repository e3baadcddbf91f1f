/**
 * Executes transactions in Sui's Move VM, in WebAssembly (`@zktx.io/sui-move-builder`). It runs unit tests of sources
 * only: each transaction becomes a test, compiled with the sources of its packages, and what it did comes back in the
 * codes with which the test aborts.
 *
 * Not run there: `sui::nitro_attestation`, who may use an object, and gas.
 */
import { bcs } from '@mysten/sui/bcs';
import { normalizeStructTag, normalizeSuiAddress, toHex } from '@mysten/sui/utils';
import { decodeAttestation, predictRegistration } from 'sui-enclave/attestation';
import { MoveAbort } from '../call.ts';
import type { Emitted, Engine, Executed, Execution, Published } from '../engine.ts';
import { CommandFailure, failure, Refusal } from '../failures.ts';
import type { Changes, LedgerObject } from '../ledger.ts';
import { model } from '../model.ts';
import { type Code, Packages } from './packages.ts';
import { COMMAND, LEFT, type Left, programOf, type Transaction } from './program.ts';
import { chunksOf, FailedCommand, readReport } from './report.ts';
import { Runner, TimeLimit } from './runner.ts';

const MOVE = new URL('../../../../move/', import.meta.url);
/** Enough for most transactions: more need another run. */
const CHUNKS = 192;

const Notes = bcs.struct('Notes', {
  types: bcs.vector(bcs.string()),
  notes: bcs.vector(
    bcs.struct('Note', {
      kind: bcs.u8(),
      typeIndex: bcs.u8(),
      about: bcs.byteVector(),
      value: bcs.byteVector(),
    }),
  ),
});

interface Note {
  readonly kind: number;
  /** Empty where it is known. */
  readonly type: string;
  /** An address, or 0x for none. */
  readonly about: string;
  readonly value: Uint8Array;
}

function notesOf(bytes: Uint8Array): Note[] {
  const { types, notes } = Notes.parse(bytes);
  return notes.map(({ kind, typeIndex, about, value }) => ({
    kind,
    type: types[typeIndex] ?? '',
    about: `0x${toHex(Uint8Array.from(about)).replace(/^0x/, '')}`,
    value: Uint8Array.from(value),
  }));
}

const Document = bcs.struct('NitroAttestationDocument', {
  module_id: bcs.byteVector(),
  timestamp: bcs.u64(),
  digest: bcs.byteVector(),
  pcrs: bcs.vector(bcs.struct('PCREntry', { index: bcs.u8(), value: bcs.byteVector() })),
  public_key: bcs.option(bcs.byteVector()),
  user_data: bcs.option(bcs.byteVector()),
  nonce: bcs.option(bcs.byteVector()),
});

/** What a run did, and the ids of the objects that its calls took by value. */
interface Run {
  readonly notes: readonly Note[];
  readonly consumed: readonly string[];
}

export class MoveVm {
  readonly runner = new Runner();
  readonly #packages: Packages;
  /** How many pieces gave back what the same calls left before. */
  readonly #chunks = new Map<string, number>();
  /** Transactions that ran in the VM so far. */
  runs = 0;

  /** @param folder of the packages that can be published; ends in a slash */
  constructor(folder = MOVE) {
    this.#packages = new Packages(this.runner, folder);
  }

  close(): void {
    this.runner.close();
  }

  /** @throws Refusal UNIMPLEMENTED for packages that are not those of the folder */
  readonly execute: Engine = async (execution): Promise<Executed> => {
    const { commands, isSimulated } = execution;
    if (commands.every(({ kind }) => kind === 'transfer')) return await model(execution);
    checkPackages(execution);
    const published = await this.#publish(execution);
    let isWritten = false;
    try {
      const documents = await documentsOf(execution);
      const run = await this.#run(execution, published?.id ?? '', documents);
      const events = isSimulated ? [] : apply(run, execution.changes);
      isWritten = !isSimulated;
      return { status: { success: true }, events, published };
    } catch (error) {
      const { command, cause } =
        error instanceof FailedCommand ? error : { command: commands.length - 1, cause: error };
      if (cause instanceof TimeLimit) {
        const status = new CommandFailure(undefined, 'INSUFFICIENT_GAS', 'InsufficientGas').status;
        return { status, events: [], published: undefined };
      }
      return { status: failure(cause, BigInt(command)), events: [], published: undefined };
    } finally {
      if (published !== undefined && !isWritten) this.#packages.forget(published.id);
    }
  };

  async #publish({ changes, commands, packages }: Execution): Promise<Published | undefined> {
    const writing = commands.filter((command) => command.kind === 'publish' || command.kind === 'upgrade');
    const [first, ...more] = writing;
    if (first === undefined) return undefined;
    if (more.length > 0)
      throw new Refusal('UNIMPLEMENTED', 'this model of Sui writes one package a transaction');
    const id = changes.freshId();
    const from = first.kind === 'upgrade' ? originalOf(first.packageId, packages) : id;
    await this.#packages.publish(id, from, first.modules);
    return { id, original: from, modules: first.modules };
  }

  async #run(
    execution: Execution,
    published: string,
    documents: ReadonlyMap<number, Uint8Array | MoveAbort>,
  ): Promise<Run> {
    const { changes, inputs, gasCoin, packages, isSimulated } = execution;
    const objects = [...inputs, gasCoin].filter((given) => given !== undefined && 'content' in given);
    const code = await this.#packages.code(this.#involved(execution, objects, published));
    // A command that fails outside of the VM fails only where those before it do not.
    const refused = [...documents].find(([, document]) => document instanceof MoveAbort);
    const commands = refused === undefined ? execution.commands : execution.commands.slice(0, refused[0]);
    const transaction: Transaction = {
      ...execution,
      commands,
      published,
      digest: changes.digest,
      fields: changes.fieldsOf(objects),
      documents: new Map(
        [...documents].flatMap(([at, document]) => (document instanceof MoveAbort ? [] : [[at, document]])),
      ),
      isPartial: refused !== undefined,
      original: (id) => originalOf(id, packages),
    };
    const run = await this.#notes(transaction, code, isSimulated || refused !== undefined);
    if (refused !== undefined) throw new FailedCommand(...refused);
    return run;
  }

  async #notes(transaction: Transaction, code: Code, isSimulated: boolean): Promise<Run> {
    const known = new Set(transaction.fields.map(({ id }) => id));
    const left: Left[] = [];
    const calls = JSON.stringify(
      transaction.commands.map((command) => (command.kind === 'call' ? command.call : command.kind)),
    );
    for (let chunks = isSimulated ? 1 : (this.#chunks.get(calls) ?? CHUNKS); ; ) {
      const program = programOf(transaction, code, chunks, left);
      const files = { ...code.files, 'tests/run.move': program.source };
      this.runs += 1;
      const report = await this.runner.test(files);
      const packageOf = (module: string) => this.#idOf(module, code, transaction);
      const { length, bytes } = readReport(report, { ...program, files, packageOf });
      if (program.failure !== undefined) throw program.failure;
      if (isSimulated) return { notes: [], consumed: [] };
      // The next time they may leave a little more.
      this.#chunks.set(calls, chunksOf(length) + 8);
      if (bytes.length < length) {
        chunks = chunksOf(length);
        continue;
      }
      const notes = notesOf(bytes);
      const borrowed = notes.filter(
        ({ kind, value }) => kind === FIELD_BORROWED && !known.has(bcs.Address.parse(value)),
      );
      if (borrowed.length === 0) return { notes, consumed: program.consumed };
      for (const { type, about: parent, value } of borrowed) {
        const id = bcs.Address.parse(value);
        if (!known.has(id)) left.push({ type, parent, id });
        known.add(id);
      }
    }
  }

  /** The packages of the calls, and those that declare the types of objects. */
  #involved(
    { commands, packages }: Execution,
    objects: readonly LedgerObject[],
    published: string,
  ): string[] {
    const called = commands.flatMap((command) =>
      command.kind === 'call' ? [normalizeSuiAddress(command.call.package)] : [],
    );
    const ids = [...called, published].filter((id) => this.#packages.has(id));
    const covered = new Set(ids.map((id) => originalOf(id, packages)));
    const named = [
      ...objects.map(({ type }) => type),
      ...commands.flatMap((command) => (command.kind === 'call' ? command.call.typeArguments : [])),
    ];
    for (const [address] of named.join().matchAll(/0x[0-9a-f]+(?=::)/g)) {
      const first = originalOf(address, packages);
      const latest = this.#packages.latest(first);
      if (latest === undefined || covered.has(first)) continue;
      covered.add(first);
      ids.push(latest);
    }
    return [...new Set(ids)];
  }

  #idOf(module: string, code: Code, { commands }: Transaction): string {
    const name = module.split('::').at(-1);
    if (module.startsWith('sui::')) return normalizeSuiAddress('0x2');
    if (module.startsWith('std::')) return normalizeSuiAddress('0x1');
    const own = [...code.modules.values()].find((module) => module.name === name);
    const called = commands.find(
      (command) => command.kind === 'call' && this.#packages.has(normalizeSuiAddress(command.call.package)),
    );
    return called?.kind === 'call' ? called.call.package : (own?.address ?? '');
  }
}

function checkPackages({ commands, packages }: Execution): void {
  for (const command of commands) {
    if (command.kind !== 'call') continue;
    const { package: id } = command.call;
    if (!packages.has(normalizeSuiAddress(id)) && !/^0x0*[12]$/.test(id))
      throw new Refusal('NOT_FOUND', `Object ${id} not found`);
  }
}

function originalOf(id: string, packages: Execution['packages']): string {
  const address = normalizeSuiAddress(id);
  return packages.get(address) ?? address;
}

/** Verifies the attestation documents of a transaction, by command. */
async function documentsOf({
  commands,
  inputs,
  nowMs,
  root,
}: Execution): Promise<ReadonlyMap<number, Uint8Array | MoveAbort>> {
  const documents = new Map<number, Uint8Array | MoveAbort>();
  for (const [index, command] of commands.entries()) {
    if (command.kind !== 'call' || !/^0x0*2$/.test(command.call.package)) continue;
    const { module, function: name } = command.call;
    if (module !== 'nitro_attestation' || name !== 'load_nitro_attestation') continue;
    const [argument] = command.args;
    const given = argument && 'input' in argument ? inputs[argument.input] : undefined;
    if (!(given instanceof Uint8Array)) {
      throw new Refusal(
        'UNIMPLEMENTED',
        'this model of Sui takes an attestation document from the transaction only',
      );
    }
    const bytes = bcs.byteVector().parse(given);
    const verdict = await predictRegistration(bytes, nowMs, root);
    const location = { package: command.call.package, module, functionName: name };
    documents.set(index, verdict.abort === null ? contentOf(bytes) : new MoveAbort(location, verdict.abort));
  }
  return documents;
}

function contentOf(bytes: Uint8Array): Uint8Array {
  const { pcrs, publicKey, timestamp } = decodeAttestation(bytes);
  return Document.serialize({
    module_id: [],
    timestamp,
    digest: [],
    pcrs: [...pcrs].map(([index, value]) => ({ index, value })),
    public_key: publicKey === undefined || publicKey === null ? null : [...publicKey],
    user_data: null,
    nonce: null,
  }).toBytes();
}

const TRANSFERRED = 1;
const SHARED = 2;
const FROZEN = 3;
const EMITTED = 5;
const FIELD_ADDED = 6;
const FIELD_REMOVED = 7;
const FIELD_BORROWED = 8;
const FIELD_LEFT = 9;

/** Writes what the notes say. @returns the events */
function apply({ notes, consumed }: Run, changes: Changes): Emitted[] {
  const events: Emitted[] = [];
  const before = new Map(consumed.map((id) => [id, changes.get(id)]));
  for (const id of consumed) changes.delete(id);
  let command = 0;
  for (const { kind, type: name, about, value: content } of notes) {
    if (kind === COMMAND) command = bcs.u16().parse(content);
    else if (kind === EMITTED) events.push({ type: typeOf(name), content, command });
    else if (kind === FIELD_REMOVED) changes.delete(bcs.Address.parse(content));
    else if ([TRANSFERRED, SHARED, FROZEN, FIELD_ADDED, FIELD_LEFT, LEFT].includes(kind)) {
      const id = bcs.Address.parse(content);
      const known = before.get(id) ?? changes.get(id);
      if (kind === LEFT && known === undefined)
        throw new Error(`the Move VM left ${id}, which it was not given`);
      if (kind === LEFT && known) changes.write({ ...known, content });
      else changes.write({ id, type: typeOf(name), owner: ownerOf(kind, about, known, changes), content });
    }
  }
  return events;
}

function ownerOf(kind: number, about: string, before: LedgerObject | undefined, changes: Changes) {
  if (kind === SHARED) return before?.owner.kind === 'shared' ? before.owner : changes.shared();
  if (kind === FROZEN) return { kind: 'immutable' } as const;
  return { kind: kind === TRANSFERRED ? 'address' : 'object', address: about } as const;
}

/** The runner's addresses have no prefix. */
function typeOf(name: string): string {
  return normalizeStructTag(name.replace(/\b[0-9a-f]{64}(?=::)/g, '0x$&'));
}
