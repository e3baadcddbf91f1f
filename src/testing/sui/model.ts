/** The engine of most tests: a model in TypeScript of `move/enclave` and `move/weather`, which takes no time. */
import { bcs } from '@mysten/sui/bcs';
import { packageDigest } from 'sui-enclave-move-bytecode/package_digest';
import { type ExecutionContext, HotPotato, UpgradeReceipt, type UpgradeTicket } from './call.ts';
import type { Argument, Command, Upgrade } from './commands.ts';
import { publish, runCall } from './contract.ts';
import type { Engine, Published } from './engine.ts';
import { DigestMismatch, failure, Refusal, unusedValue } from './failures.ts';
import type { LedgerObject } from './ledger.ts';

/** A package that a command wrote, and what the command returns. */
type Written = Published & { readonly result: unknown };

export const model: Engine = async ({ inputs, commands, packages, ...rest }) => {
  const context: ExecutionContext = { ...rest, original: (id) => packages.get(id) ?? id };
  const results: (readonly unknown[])[] = [];
  const value = (argument: Argument) => {
    if ('gas' in argument) throw new Refusal('UNIMPLEMENTED', 'no gas coin in this model');
    if ('result' in argument) return results[argument.result]?.[argument.nested];
    const input = inputs[argument.input];
    // A call sees what the calls before it wrote.
    return input !== undefined && 'id' in input ? context.changes.get(input.id) : input;
  };
  const gone = new Set<unknown>();
  let published: Written | undefined;
  for (const [index, command] of commands.entries()) {
    try {
      for (const id of taken(command, value)) gone.add(id);
      if (command.kind === 'publish') published = publishedBy(context, command.modules);
      else if (command.kind === 'upgrade') published = upgradedBy(context, command, value(command.ticket));
      const made = published && 'modules' in command ? [published.result] : undefined;
      results.push(made ?? (await perform(context, command, value, packages)));
    } catch (error) {
      return { status: failure(error, BigInt(index)), published: undefined, events: undefined };
    }
  }
  const unused = results.findIndex(([result]) => isKept(result) && !gone.has(result));
  return { status: unused < 0 ? { success: true } : unusedValue(unused), published, events: undefined };
};

/** Whether a transaction has to do something with it. */
function isKept(result: unknown): boolean {
  return (
    result instanceof HotPotato || (typeof result === 'object' && result !== null && 'content' in result)
  );
}

/** The functions that take an object of this model by value, as their first argument. */
const TAKE = /^(?:share_|destroy_|finish_rotation$|make_immutable$)/;

/** What a command takes by value; a value without abilities is always taken so. */
function taken(command: Command, take: (argument: Argument) => unknown): readonly unknown[] {
  if (command.kind === 'transfer') return command.objects.map(take);
  if (command.kind === 'upgrade') return [take(command.ticket)];
  if (command.kind !== 'call') return [];
  const { args, call } = command;
  const values = args.map(take);
  return values.filter((value, at) => value instanceof HotPotato || (at === 0 && TAKE.test(call.function)));
}

function publishedBy(context: ExecutionContext, modules: readonly Uint8Array[]): Written {
  const { packageId: id, upgradeCap } = publish(context);
  return { id, original: id, modules, result: upgradeCap };
}

function upgradedBy(context: ExecutionContext, command: Upgrade, ticket: unknown): Written {
  const { capId, packageId, digest } = ticket as UpgradeTicket;
  const { modules } = command;
  if (packageId !== command.packageId || !isDigestOf(digest, command)) throw new DigestMismatch();
  const original = context.original(packageId);
  const id = context.changes.freshId();
  return { id, original, modules, result: new UpgradeReceipt(capId, id) };
}

/** Calls a function, or transfers objects. */
async function perform(
  context: ExecutionContext,
  command: Command,
  take: (argument: Argument) => unknown,
  packages: ReadonlyMap<string, string>,
): Promise<readonly unknown[]> {
  if (command.kind === 'call') {
    const { package: id } = command.call;
    const isKnown = packages.has(id) || /^0x0*2$/.test(id);
    if (!isKnown) throw new Refusal('NOT_FOUND', `Object ${id} not found`);
    return await runCall(context, { ...command.call, args: command.args.map(take) });
  }
  if (command.kind !== 'transfer')
    throw new Refusal('UNIMPLEMENTED', `no command ${command.kind} in this model`);
  const address = bcs.Address.parse(take(command.to) as Uint8Array);
  for (const object of command.objects.map(take) as LedgerObject[]) {
    context.changes.write({ ...object, owner: { kind: 'address', address } });
  }
  return [];
}

function isDigestOf(digest: Uint8Array, { modules, dependencies }: Upgrade): boolean {
  return Buffer.from(digest).equals(packageDigest(modules, dependencies));
}
