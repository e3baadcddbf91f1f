/** Failures of the model in BCS, with all their details. */
import { bcs } from '@mysten/sui/bcs';
import { GrpcTypes } from '@mysten/sui/grpc';
import { toBase58 } from '@mysten/sui/utils';
import { expect, test } from 'vitest';
import { encodeFailure } from '../../../src/devnet/failure_bcs.ts';
import {
  argumentFailure,
  CommandFailure,
  INSUFFICIENT_GAS,
  MoveAbort,
  PrimitiveError,
  type Status,
  toFailureStatus,
  typeArgumentFailure,
} from '../../../src/devnet/failures.ts';

const ID = `0x${'a'.repeat(64)}`;
const LOCATION = { package: ID, module: 'judge', function: 3, functionName: 'weigh', instruction: 7 };
const encodedLocation = {
  module: { address: ID, name: 'judge' },
  function: 3,
  instruction: 7,
  functionName: 'weigh',
};

function encodeAndParse({ error }: Status) {
  const V2 = {
    status: { Failure: encodeFailure(error as GrpcTypes.ExecutionError) },
    executedEpoch: 1,
    gasUsed: { computationCost: 1, storageCost: 1, storageRebate: 1, nonRefundableStorageFee: 1 },
    transactionDigest: toBase58(new Uint8Array(32)),
    gasObjectIndex: null,
    eventsDigest: null,
    dependencies: [],
    lamportVersion: 1,
    changedObjects: [],
    unchangedConsensusObjects: [],
    auxDataDigest: null,
  };
  const bytes = bcs.TransactionEffects.serialize({ V2 } as never).toBytes();
  return bcs.TransactionEffects.parse(bytes).V2?.status.Failure;
}

const upgrade = (text: string, error: Partial<GrpcTypes.PackageUpgradeError>) =>
  new CommandFailure(2, 'PACKAGE_UPGRADE_ERROR', `PackageUpgradeError { upgrade_error: ${text} }`, {
    oneofKind: 'packageUpgradeError',
    packageUpgradeError: GrpcTypes.PackageUpgradeError.create(error),
  }).status;

test.each<[string, Status, object]>([
  ['too little gas', INSUFFICIENT_GAS, { error: { InsufficientGas: true }, command: null }],
  [
    'an abort',
    toFailureStatus(new MoveAbort(LOCATION, 12n), 1n),
    { error: { MoveAbort: [encodedLocation, '12'] }, command: '1' },
  ],
  [
    'an overflow',
    toFailureStatus(new PrimitiveError(LOCATION, 'an overflow'), 1n),
    { error: { MovePrimitiveRuntimeError: encodedLocation }, command: '1' },
  ],
  [
    'an argument of the wrong type',
    argumentFailure(1, 4, 'TypeMismatch').status,
    { error: { CommandArgumentError: { argIdx: 4, kind: { TypeMismatch: true } } }, command: '1' },
  ],
  [
    'a result that does not exist',
    argumentFailure(1, 4, 'SecondaryIndexOutOfBounds', { index: 2, subresult: 3, text: '' }).status,
    {
      error: {
        CommandArgumentError: {
          argIdx: 4,
          kind: { SecondaryIndexOutOfBounds: { resultIdx: 2, secondaryIdx: 3 } },
        },
      },
    },
  ],
  [
    'a type argument that does not exist',
    typeArgumentFailure(0, 1, 'TypeNotFound').status,
    { error: { TypeArgumentError: { argumentIdx: 1, kind: { TypeNotFound: true } } }, command: '0' },
  ],
  [
    'a result without drop that no command uses',
    new CommandFailure(undefined, 'UNUSED_VALUE_WITHOUT_DROP', 'UnusedValueWithoutDrop { … }', {
      oneofKind: 'indexError',
      indexError: { index: 5, subresult: 6 },
    }).status,
    { error: { UnusedValueWithoutDrop: { resultIdx: 5, secondaryIdx: 6 } }, command: null },
  ],
  [
    'a function that does not exist',
    new CommandFailure(3, 'FUNCTION_NOT_FOUND', 'FunctionNotFound').status,
    { error: { FunctionNotFound: true }, command: '3' },
  ],
  [
    'an upgrade of other bytes',
    upgrade('DigestDoesNotMatch { digest: [] }', { digest: toBase58(new Uint8Array(32)) }),
    { error: { PackageUpgradeError: { upgradeError: { DigestDoesNotMatch: expect.anything() } } } },
  ],
  [
    'an upgrade of another package',
    upgrade('PackageIDDoesNotMatch { … }', { packageId: ID, ticketId: ID }),
    {
      error: {
        PackageUpgradeError: { upgradeError: { PackageIDDoesNotMatch: { packageId: ID, ticketId: ID } } },
      },
    },
  ],
])('encodeFailure encodes %s as validators do', (_, status, expected) => {
  expect(encodeAndParse(status)).toMatchObject(expected);
});
