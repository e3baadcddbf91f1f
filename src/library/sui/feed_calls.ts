/** Adds calls of `move/feed` to a transaction, as `transactions.ts` does for `move/enclave`. Browser-safe. */
import type { Transaction } from '@mysten/sui/transactions';
import { type U64Input, u64 } from '../wire/bcs.ts';
import { type ObjectInput, objectArgument as object } from './arguments.ts';
import type { FeedRules } from './feed.ts';
import type { SubmittedAnswer } from './signed.ts';
import { checkAddress, checkBytes, checkStructType, encodeText, encodeU64, invalidValue } from './values.ts';

/** A call of the module `feed` for one application. */
export interface FeedCall {
  /** The package that contains `feed::feed`. */
  readonly feedPackage: string;
  /** The type `T` of the application: see `applicationType`. */
  readonly application: string;
}

/** Names of the rules that are a `u64`. */
type NumericRule =
  | 'minValue'
  | 'maxValue'
  | 'maxAgeMs'
  | 'minIntervalMs'
  | 'minMoveBps'
  | 'heartbeatMs'
  | 'threshold';

/** The rules of a new feed, with numbers in any form of a `u64`. */
export type NewFeedRules = Omit<FeedRules, NumericRule> & { readonly [Name in NumericRule]: U64Input };

/** Limits that the Move package `move/feed` puts on the rules of a feed. */
const MAX_DECIMALS = 18;
const MAX_CONFIGS = 16;
const BASIS_POINTS = 10_000n;

/**
 * Creates and shares a feed without a value. Its rules can't be changed, and it can't be deleted.
 *
 * @throws SuiError: SUI_VALUE for rules that `move/feed` refuses
 */
export function createFeed(
  tx: Transaction,
  call: FeedCall & { readonly capId: ObjectInput; readonly rules: NewFeedRules },
): void {
  const { module, typeArguments } = target(call);
  const capability = object(tx, 'capability', call.capId);
  const rules = tx.moveCall({ target: `${module}::new_rules`, arguments: ruleArguments(tx, call.rules) });
  tx.moveCall({ target: `${module}::create`, typeArguments, arguments: [capability, rules] });
}

/** A signed quote, and the objects of the enclave that signed it. */
export interface FeedQuote {
  /** The registered enclave whose key signed the quote. */
  readonly enclaveId: ObjectInput;
  /** The config of that enclave, which the rules must list. */
  readonly configId: ObjectInput;
  /** The signed answer: see `quoteType`. */
  readonly answer: SubmittedAnswer<{ readonly value: U64Input }>;
}

/**
 * Writes the median of signed quotes: at most one quote for each config, and at least as many quotes as the
 * feed's threshold. Any address may send the transaction.
 *
 * @example
 * const { feedPackage, application, rules } = await readFeed(suiClient, feedId);
 * const answer = await enclaveClient.call('/price', {}, quoteType(rules.intent));
 * const quotes = [{ enclaveId: answer.enclaveId, configId, answer }];
 * updateFeed(tx, { feedPackage, application, feedId, quotes });
 *
 * @throws SuiError: SUI_VALUE
 */
export function updateFeed(
  tx: Transaction,
  call: FeedCall & { readonly feedId: ObjectInput; readonly quotes: readonly FeedQuote[] },
): void {
  const { module, typeArguments } = target(call);
  const { quotes } = call;
  if (!Array.isArray(quotes) || quotes.length === 0 || quotes.length > MAX_CONFIGS) {
    throw invalidValue(`the quotes must be an array of 1 to ${MAX_CONFIGS} signed quotes`);
  }
  const feed = object(tx, 'feed', call.feedId);
  const round = tx.moveCall({ target: `${module}::begin`, typeArguments, arguments: [feed] });
  for (const quote of quotes) {
    const signedArguments = quoteArguments(tx, quote);
    const objects = [object(tx, 'enclave', quote.enclaveId), object(tx, 'config', quote.configId)];
    tx.moveCall({
      target: `${module}::add`,
      typeArguments,
      arguments: [round, feed, ...objects, tx.object.clock(), ...signedArguments],
    });
  }
  tx.moveCall({ target: `${module}::finish`, typeArguments, arguments: [round, feed] });
}

/**
 * Returns the arguments for a signed quote. Symbol and decimals are not among them: the contract takes them
 * from the feed's rules.
 */
function quoteArguments(tx: Transaction, { answer }: FeedQuote) {
  const signature = checkBytes('the signature', answer.signature, { min: 64, max: 64 });
  return [
    tx.pure(encodeU64('the timestamp', answer.timestampMs)),
    tx.pure(encodeU64('the value', answer.data.value)),
    tx.pure.vector('u8', signature),
  ];
}

/** Makes the same checks as `new_rules`, and returns its arguments. */
function ruleArguments(tx: Transaction, rules: NewFeedRules) {
  const { intent, symbol, decimals, configIds } = rules;
  const readNumber = (name: NumericRule) => u64.parse(encodeU64(`"${name}"`, rules[name]));
  const [minValue, maxValue, threshold] = [
    readNumber('minValue'),
    readNumber('maxValue'),
    readNumber('threshold'),
  ];
  const [maxAge, minInterval, heartbeat] = [
    readNumber('maxAgeMs'),
    readNumber('minIntervalMs'),
    readNumber('heartbeatMs'),
  ];
  const minMove = readNumber('minMoveBps');
  const isSymbol = typeof symbol === 'string' && /^[ -~]{1,32}$/.test(symbol);
  checkRule(isSymbol, 'the symbol must be 1 to 32 printable ASCII characters');
  checkRule(isInteger(intent, 255), 'the intent must be an integer from 0 to 255');
  checkRule(isInteger(decimals, MAX_DECIMALS), `"decimals" must be an integer from 0 to ${MAX_DECIMALS}`);
  checkRule(minValue > 0n && minValue <= maxValue, '"minValue" must be at least 1, and at most "maxValue"');
  checkRule(
    minInterval <= heartbeat && heartbeat < maxAge,
    '"minIntervalMs" must be at most "heartbeatMs", which must be less than "maxAgeMs"',
  );
  checkRule(minMove <= BASIS_POINTS, `"minMoveBps" must be at most ${BASIS_POINTS}`);
  const ids = Array.isArray(configIds) ? configIds.map((id) => checkAddress('the id of a config', id)) : [];
  checkRule(
    ids.length > 0 && ids.length <= MAX_CONFIGS && new Set(ids).size === ids.length,
    `"configIds" must be an array of 1 to ${MAX_CONFIGS} different ids`,
  );
  checkRule(
    threshold > 0n && threshold <= BigInt(ids.length),
    '"threshold" must be at least 1, and at most the number of configs',
  );
  const numbers = [minValue, maxValue, maxAge, minInterval, minMove, heartbeat, threshold];
  return [
    tx.pure.u8(intent),
    tx.pure(encodeText('the symbol', symbol)),
    tx.pure.u8(decimals),
    ...numbers.map((value) => tx.pure.u64(value)),
    tx.pure.vector('id', ids),
  ];
}

function checkRule(isValid: boolean, message: string): void {
  if (!isValid) throw invalidValue(message);
}

function isInteger(value: number, max: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= max;
}

function target({ feedPackage, application }: FeedCall) {
  return {
    module: `${checkAddress('the package of the feed', feedPackage)}::feed`,
    typeArguments: [checkStructType('the application', application)],
  };
}
