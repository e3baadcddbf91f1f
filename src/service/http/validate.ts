import { quantity } from 'sui-enclave/wording';
import * as v from 'valibot';
import { ServerError } from '../errors.ts';

/**
 * Checks a value against a schema, and returns the schema's output.
 *
 * @throws INVALID_INPUT, whose message names the property and what it must be, without repeating its value
 */
export function validate<Output>(schema: v.GenericSchema<unknown, Output>, input: unknown): Output {
  const parsed = v.safeParse(schema, input, { abortEarly: true });
  if (parsed.success) return parsed.output;
  const issue = parsed.issues[0];
  throw new ServerError('INVALID_INPUT', `${v.getDotPath(issue) ?? 'the request'} ${explain(issue)}`);
}

function explain(issue: v.BaseIssue<unknown>): string {
  if (issue.expected === 'never') return 'is not a property that this endpoint accepts';
  if (issue.received === 'undefined') return 'is missing';
  // valibot's default messages end with the received value. Messages from a schema don't.
  const isFromSchema = !issue.message.endsWith(`received ${issue.received}`);
  if (isFromSchema) return issue.message;
  if (issue.type === 'regex') return `must match ${issue.expected}`;
  const bound = explainBound(issue);
  if (bound !== undefined) return bound;
  return `must be ${KINDS[issue.expected ?? ''] ?? issue.expected ?? 'of another shape'}`;
}

/** Plain words for valibot's checks that bound a size or a value. Its own message would be `>=1`. */
const BOUNDS: Readonly<Record<string, string>> = {
  min_length: 'must have at least',
  max_length: 'must have at most',
  length: 'must have exactly',
  min_value: 'must be at least',
  max_value: 'must be at most',
};

type Bound = Pick<v.BaseIssue<unknown>, 'type' | 'input' | 'requirement'>;

function explainBound({ type, input, requirement }: Bound): string | undefined {
  if (type === 'non_empty') return explainBound({ type: 'min_length', input, requirement: 1 });
  const bound = BOUNDS[type];
  if (bound === undefined || (typeof requirement !== 'number' && typeof requirement !== 'bigint')) {
    return undefined;
  }
  if (type.endsWith('_value')) return `${bound} ${requirement}`;
  const unit = typeof input === 'string' ? 'character' : 'item';
  return `${bound} ${quantity(Number(requirement), unit)}`;
}

/** valibot's names of types, in plain words. */
const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  boolean: 'true or false',
  Object: 'an object',
  Array: 'an array',
};
