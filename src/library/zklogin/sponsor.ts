/** Lets another address pay the gas of a transaction. */
import { bcs } from '@mysten/sui/bcs';
import type { ClientWithCoreApi } from '@mysten/sui/client';
import { Signer } from '@mysten/sui/cryptography';
import type { Transaction } from '@mysten/sui/transactions';
import { equalBytes } from '@noble/curves/utils.js';
import { buildBytes, tryCopy } from './bytes.ts';
import { ZkLoginError } from './errors.ts';

/** The transaction that a sponsor is asked to pay for. */
export interface SponsorRequest {
  /** BCS of the `TransactionKind`: inputs and commands, without sender and gas. */
  readonly kind: Uint8Array;
  /** Address of the sender, who also signs. */
  readonly sender: string;
}

/** A transaction that its sponsor has completed. */
export interface SponsoredTransaction {
  /** BCS of the transaction's data, whose gas the sponsor pays. */
  readonly transaction: Uint8Array;
  /** The sponsor's signature of the transaction, in base64. */
  readonly signature: string;
}

/**
 * The payer of the gas: a signer, or a function that asks a service. With a signer, the node chooses coins of
 * the signer's address, and commands that take from `tx.gas` take from this address too.
 */
export type Sponsor = Signer | ((request: SponsorRequest) => Promise<SponsoredTransaction>);

/**
 * Completes a transaction with the sponsor's gas and signature.
 *
 * @throws ZkLoginError: ZKLOGIN_SPONSOR; SuiError if the transaction can't be built; any error that the
 *   sponsor's function throws
 */
export async function completeWithSponsor(
  sponsor: Sponsor,
  {
    transaction,
    client,
    sender,
    earlier,
  }: {
    readonly transaction: Transaction;
    readonly client: ClientWithCoreApi;
    readonly sender: string;
    /** An earlier answer of the sponsor for this transaction. */
    readonly earlier: SponsoredTransaction | undefined;
  },
): Promise<SponsoredTransaction> {
  if (typeof sponsor !== 'function')
    return await completeWithSigner(sponsor, { transaction, client, sender });
  const kind = await buildBytes(transaction, client, { onlyTransactionKind: true });
  if (earlier !== undefined && describeFault(earlier, { kind, sender }) === null) return earlier;
  // Copy the request and the answer. Otherwise, the sponsor's code could change the bytes that its answer is
  // compared with, or the answer after the comparison.
  const sponsored = copyAnswer(await sponsor({ kind: kind.slice(), sender }));
  const fault = describeFault(sponsored, { kind, sender });
  if (fault !== null) throw createRefusal(fault);
  return sponsored;
}

function createRefusal(fault: string): ZkLoginError {
  return new ZkLoginError('ZKLOGIN_SPONSOR', `the sponsor's answer is refused: ${fault}`);
}

/** Copies the answer, and reads each property once. */
function copyAnswer(answer: SponsoredTransaction): SponsoredTransaction {
  const { transaction: bytes, signature } = answer ?? {};
  const transaction = tryCopy(bytes);
  if (typeof signature !== 'string' || transaction === null) {
    throw createRefusal('it must have transaction, a Uint8Array, and signature, a string');
  }
  return { transaction, signature };
}

async function completeWithSigner(
  sponsor: Signer,
  { transaction, client, sender }: { transaction: Transaction; client: ClientWithCoreApi; sender: string },
): Promise<SponsoredTransaction> {
  const address = sponsor instanceof Signer ? sponsor.toSuiAddress() : sender;
  if (address === sender) {
    throw new ZkLoginError(
      'ZKLOGIN_OPTION',
      "sponsor must be a function, or a Signer whose address is not the session's",
    );
  }
  transaction.setGasOwner(address);
  const bytes = await buildBytes(transaction, client);
  const { signature } = await sponsor.signTransaction(bytes.slice());
  return { transaction: bytes, signature };
}

/**
 * Returns why the session must not sign the sponsor's transaction, or null if it may. A sponsor could put
 * other commands, or the user's own gas, into it.
 */
function describeFault(sponsored: SponsoredTransaction, { kind, sender }: SponsorRequest): string | null {
  let data: ReturnType<typeof bcs.TransactionData.parse>['V1'];
  try {
    data = bcs.TransactionData.parse(sponsored.transaction).V1;
  } catch {
    return 'its bytes are not the BCS of a transaction';
  }
  if (!equalBytes(bcs.TransactionKind.serialize(data.kind).toBytes(), kind)) return 'it has other commands';
  if (data.sender !== sender) return "its sender is not the session's address";
  return data.gasData.owner === sender ? "its gas is paid by the session's address" : null;
}
