/** The engine of most tests: a model in TypeScript of `move/enclave` and `move/weather`, which takes no time. */
import { bcs } from '@mysten/sui/bcs';
import { packageDigest } from 'sui-enclave-move-bytecode/package_digest';
import { type ExecutionContext, HotPotato, UpgradeReceipt, type UpgradeTicket } from './call.ts';
import type { Argument, Command, Upgrade } from './commands.ts';
import { publish, runCall } from './contract.ts';
import type { Engine, Published } from './engine.ts';
import { DigestMismatch, failure, Refusal, UNUSED_VALUE } from './failures.ts';
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
  const used = new Set<unknown>();
  const take = (argument: Argument) => {
    const given = value(argument);
    used.add(given);
    return given;
  };
  let published: Written | undefined;
  for (const [index, command] of commands.entries()) {
    try {
      if (command.kind === 'publish') published = publishedBy(context, command.modules);
      else if (command.kind === 'upgrade') published = upgradedBy(context, command, take(command.ticket));
      const made = published && 'modules' in command ? [published.result] : undefined;
      results.push(made ?? (await perform(context, command, take, packages)));
    } catch (error) {
      return { status: failure(error, BigInt(index)), published: undefined, events: undefined };
    }
  }
  const isUnused = results.flat().some((result) => result instanceof HotPotato && !used.has(result));
  return { status: isUnused ? UNUSED_VALUE : { success: true }, published, events: undefined };
};

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
