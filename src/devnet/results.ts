/** Formats results of transactions, and balances of addresses, in the same way as a node. */
import { GrpcTypes } from '@mysten/sui/grpc';
import type { Argument, TransactionData } from './commands.ts';
import type { CommandResult, Output } from './engine.ts';
import type { Ledger } from './ledger.ts';

const { Argument_ArgumentKind: Kind } = GrpcTypes;

export function toCommandOutputs(results: readonly CommandResult[]): GrpcTypes.CommandResult[] {
  return results.map(({ returned, mutated }) =>
    GrpcTypes.CommandResult.create({
      returnValues: returned.map((output) => toGrpcOutput(output)),
      mutatedByRef: mutated.map(({ argument, ...output }) => toGrpcOutput(output, toGrpcArgument(argument))),
    }),
  );
}

function toGrpcOutput({ type, content }: Output, argument?: GrpcTypes.Argument): GrpcTypes.CommandOutput {
  const value = GrpcTypes.Bcs.create({ name: type, value: content });
  return GrpcTypes.CommandOutput.create({ value, ...(argument && { argument }) });
}

function toGrpcArgument(argument: Argument): GrpcTypes.Argument {
  if ('gas' in argument) return GrpcTypes.Argument.create({ kind: Kind.GAS });
  if ('input' in argument) return GrpcTypes.Argument.create({ kind: Kind.INPUT, input: argument.input });
  const { result: commandIndex, nested } = argument;
  const subresult = nested === undefined ? {} : { subresult: nested };
  return GrpcTypes.Argument.create({ kind: Kind.RESULT, result: commandIndex, ...subresult });
}

/** Returns the balances of an address by currency, each in the currency's units. */
export function sumBalances(ledger: Ledger, owner: string) {
  const totals = new Map<string, bigint>();
  for (const object of ledger.owned(owner).filter((owned) => ledger.isCoin(owned))) {
    const coinType = object.type.slice(object.type.indexOf('<') + 1, -1);
    totals.set(coinType, (totals.get(coinType) ?? 0n) + ledger.balanceOf(object));
  }
  return [...totals].map(([coinType, balance]) => ({ coinType, balance, coinBalance: balance }));
}

/**
 * Returns a transaction without commands in the form of gRPC. Returns an empty object for other transactions.
 */
export function describeEmptyTransaction({
  sender,
  kind,
  gasData,
}: TransactionData): Partial<GrpcTypes.ExecutedTransaction> {
  if (kind.ProgrammableTransaction?.commands.length !== 0) return {};
  const { budget, price, owner } = gasData;
  const transaction = GrpcTypes.Transaction.create({
    sender,
    gasPayment: {
      objects: (gasData.payment ?? []).map((coin) => ({ ...coin, version: BigInt(coin.version) })),
      owner: owner ?? sender,
      price: BigInt(price ?? 0),
      budget: BigInt(budget ?? 0),
    },
    kind: {
      data: {
        oneofKind: 'programmableTransaction',
        programmableTransaction: { inputs: [], commands: [] },
      },
    },
  });
  return { transaction };
}
