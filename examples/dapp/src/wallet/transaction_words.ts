/** Describes a transaction in words, from the bytes to sign: its commands, its sender and who pays for it. */
import { bcs } from '@mysten/sui/bcs';
import type { Transaction } from '@mysten/sui/transactions';
import { formatAddress, fromBase64, MIST_PER_SUI } from '@mysten/sui/utils';
import { degreesText, tenthsText } from '../enclave/weather.ts';

export type TransactionData = ReturnType<Transaction['getData']>;
type Command = TransactionData['commands'][number];
type Argument = Extract<Command, { $kind: 'MoveCall' }>['MoveCall']['arguments'][number];

export interface Step {
  readonly text: string;
  /** Whether this page makes such a step. The user should refuse any other step. */
  readonly isExpected: boolean;
}

const expected = (text: string): Step => ({ text, isExpected: true });
const foreign = (text: string): Step => ({ text, isExpected: false });

/** @param packageId of the contract whose calls this page makes */
export function describeSteps(data: TransactionData, packageId: string): Step[] {
  return data.commands.map((command) => describeStep(command, data, packageId));
}

function describeStep(command: Command, data: TransactionData, packageId: string): Step {
  switch (command.$kind) {
    case 'MoveCall':
      return callStep(command.MoveCall, data, packageId);
    case 'TransferObjects':
      return transferStep(command.TransferObjects, data);
    case 'SplitCoins':
      return foreign(`Take coins out of ${objectText(command.SplitCoins.coin, data)}`);
    case 'MergeCoins':
      return foreign(`Join coins into ${objectText(command.MergeCoins.destination, data)}`);
    case 'MakeMoveVec':
      return foreign('Make a list of objects');
    case 'Publish':
      return foreign('Publish a package');
    case 'Upgrade':
      return foreign(`Upgrade the package ${formatAddress(command.Upgrade.package)}`);
    default:
      return foreign(`A step that this page can't explain: ${command.$kind}`);
  }
}

function callStep(
  call: Extract<Command, { $kind: 'MoveCall' }>['MoveCall'],
  data: TransactionData,
  packageId: string,
): Step {
  const name = `${call.module}::${call.function}`;
  if (call.package === packageId) {
    const [location, value] = call.arguments;
    // The contract determines the argument types, and the chain refuses others.
    if (name === 'weather::update_weather') {
      const degrees = degreesText(u64In(value, data));
      return expected(`Mint a WeatherNFT: ${degrees} in ${textIn(location, data)}`);
    }
    if (name === 'weather::update_temperature') {
      const degrees = tenthsText(u64In(value, data));
      return expected(`Mint a TemperatureNFT: ${degrees} in ${textIn(location, data)}`);
    }
  }
  return foreign(`Call ${name} of the package ${formatAddress(call.package)}`);
}

function transferStep(
  { objects, address }: Extract<Command, { $kind: 'TransferObjects' }>['TransferObjects'],
  data: TransactionData,
): Step {
  const to = bcs.Address.parse(pureIn(address, data));
  const objectsText = objects.map((object) => objectText(object, data)).join(' and ');
  const isOwn = to === data.sender;
  const areResults = objects.every(({ $kind }) => $kind === 'Result' || $kind === 'NestedResult');
  const text = `Give ${objectsText} to ${isOwn ? 'your own address' : to}`;
  return isOwn && areResults ? expected(text) : foreign(text);
}

function objectText(argument: Argument, { inputs }: TransactionData): string {
  switch (argument.$kind) {
    case 'GasCoin':
      return 'the coin that pays the gas';
    case 'Result':
      return `what step ${argument.Result + 1} made`;
    case 'NestedResult':
      return `what step ${argument.NestedResult[0] + 1} made`;
    default: {
      const input = inputs[argument.Input];
      const object = input?.$kind === 'Object' ? input.Object : undefined;
      const id =
        object?.ImmOrOwnedObject?.objectId ?? object?.SharedObject?.objectId ?? object?.Receiving?.objectId;
      return id === undefined ? 'an object' : `the object ${formatAddress(id)}`;
    }
  }
}

/** @throws Error if the argument is not a value: the dialog then shows no words, and the user can't sign */
function pureIn(argument: Argument | undefined, { inputs }: TransactionData): Uint8Array {
  const input = argument?.$kind === 'Input' ? inputs[argument.Input] : undefined;
  if (input?.$kind !== 'Pure') throw new Error('an argument is not a value');
  return fromBase64(input.Pure.bytes);
}

const u64In = (argument: Argument | undefined, data: TransactionData) =>
  BigInt(bcs.u64().parse(pureIn(argument, data)));
const textIn = (argument: Argument | undefined, data: TransactionData) =>
  bcs.string().parse(pureIn(argument, data));

/** Returns the payer of the gas, and the maximum that it costs. */
export function describeGas({ sender, gasData }: TransactionData): {
  payer: string;
  isOwn: boolean;
  budget: string;
} {
  const payer = gasData.owner ?? sender ?? '';
  return { payer, isOwn: payer === sender, budget: suiText(BigInt(gasData.budget ?? 0)) };
}

/** Formats an amount in MIST as SUI, without trailing zeros. */
export function suiText(mist: bigint): string {
  const decimals = String(mist % MIST_PER_SUI)
    .padStart(9, '0')
    .replace(/0+$/, '');
  return `${mist / MIST_PER_SUI}${decimals === '' ? '' : `.${decimals}`} SUI`;
}
