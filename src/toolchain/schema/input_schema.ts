/**
 * Converts valibot schemas to JSON Schemas (draft 7). They describe the values that a caller may send, not
 * those that a handler gets. If JSON Schema can't express a rule, `description` gets the name of valibot's
 * action and its message.
 */
import { type JsonSchema, toJsonSchema } from '@valibot/to-json-schema';
import type * as v from 'valibot';

type Schema = v.GenericSchema;
type Action = v.PipeItem<unknown, unknown, v.BaseIssue<unknown>>;

/**
 * Key of the rules that a description must state. The copies that `inputOnly` makes have it, and JSON Schemas
 * until the conversion ends.
 */
const RULES = Symbol('rules');

interface Ruled {
  [RULES]?: readonly string[];
}

/** Actions that only change types at compile time. */
const WITHOUT_EFFECT = ['brand', 'flavor', 'readonly'];

/** Converts a schema. A default or an example that JSON can't represent stays unchanged. */
export function inputSchema(schema: Schema): JsonSchema {
  const converted = toJsonSchema(inputOnly(schema, new Map()), {
    ignoreActions: WITHOUT_EFFECT,
    overrideSchema({ valibotSchema, jsonSchema, errors }) {
      const rules = [
        ...((valibotSchema as Ruled)[RULES] ?? []),
        ...(errors ? [describeRule(valibotSchema)] : []),
      ];
      return rules.length > 0 ? withRules(jsonSchema, rules) : undefined;
    },
    overrideAction({ valibotAction, jsonSchema, errors }) {
      if (errors) return withRules(withoutFlagged(jsonSchema, valibotAction), [describeRule(valibotAction)]);
      // The message of a pattern says more than the pattern, so the description has the message, too.
      const isPattern = valibotAction.type === 'regex' && messageOf(valibotAction) !== undefined;
      return isPattern ? withRules(jsonSchema, [describeRule(valibotAction)]) : undefined;
    },
  });
  const { $schema: _, ...jsonSchema } = addDescriptions(converted);
  return jsonSchema;
}

/**
 * Copies a schema up to its first transformation. Later rules become parts of the description, since they
 * apply to transformed values, not to those of the caller.
 *
 * @param converted schemas that were converted before, by their originals, since a lazy schema may contain
 *   itself
 */
function inputOnly(schema: Schema, converted: Map<Schema, Schema>): Schema {
  const earlierCopy = converted.get(schema);
  if (earlierCopy) return earlierCopy;
  const rules = rulesOfUse(schema);
  const copy = { ...schema, ...(rules.length > 0 && { [RULES]: rules }) };
  converted.set(schema, copy);
  const inner = (part: unknown) => (isSchema(part) ? inputOnly(part, converted) : part);
  for (const [key, part] of Object.entries(schema)) {
    if (key === 'pipe' && Array.isArray(part)) {
      Object.assign(copy, { pipe: [...inputPipe(part, converted), ...describeFallback(schema, part)] });
    } else if (key === 'getter' && typeof part === 'function') {
      Object.assign(copy, { getter: (input: unknown) => inner(part(input)) });
    } else if (key === 'default' && typeof part === 'function') Object.assign(copy, { default: undefined });
    else if (Array.isArray(part)) Object.assign(copy, { [key]: part.map(inner) });
    else if (isSchema(part)) Object.assign(copy, { [key]: inner(part) });
    else if (key === 'entries') Object.assign(copy, { entries: mapEntries(Object(part), inner) });
  }
  return copy;
}

function mapEntries(entries: object, inner: (part: unknown) => unknown): object {
  return Object.fromEntries(Object.entries(entries).map(([key, entry]) => [key, inner(entry)]));
}

const COMPUTED_DEFAULT = 'default: computed for each request';
const FALLBACK = 'fallback: an invalid value is replaced';

/**
 * Describes a schema's rules besides its type. schema.json can't express a default that is computed for each
 * request.
 */
function rulesOfUse(schema: Schema): string[] {
  const isComputed = 'default' in schema && typeof schema.default === 'function';
  return [...(isComputed ? [COMPUTED_DEFAULT] : []), ...('fallback' in schema ? [FALLBACK] : [])];
}

/** Describes the fallback of a whole pipe. A fallback of its first item is described with that item. */
function describeFallback(schema: Schema, [first]: readonly unknown[]): unknown[] {
  if (!('fallback' in schema) || 'fallback' in Object(first)) return [];
  return [createPlaceholder({ type: FALLBACK })];
}

/** Returns a placeholder for an action. The placeholder has no equivalent in JSON Schema. */
function createPlaceholder(hidden: unknown): unknown {
  return { kind: 'validation', type: 'placeholder', item: hidden };
}

/** Returns the items of a pipe up to its first transformation, and a placeholder for each later item. */
function inputPipe(pipe: readonly unknown[], converted: Map<Schema, Schema>): unknown[] {
  const actions = flat(pipe);
  const end = actions.findIndex(
    (action, index) => index > 0 && (isSchema(action) || isTransformation(action)),
  );
  const head = (end === -1 ? actions : actions.slice(0, end)).map((action) =>
    isSchema(action) ? inputOnly(action, converted) : action,
  );
  if (end === -1) return head;
  return [...head, ...actions.slice(end).map(createPlaceholder)];
}

function flat(pipe: readonly unknown[]): unknown[] {
  return pipe.flatMap((action) => ('pipe' in Object(action) ? flat(Object(action).pipe) : [action]));
}

function isSchema(value: unknown): value is Schema {
  return Object(value).kind === 'schema';
}

function isTransformation(action: unknown): boolean {
  const { kind, type } = Object(action);
  return kind === 'transformation' && !WITHOUT_EFFECT.includes(type);
}

/** Describes a rule, such as `check: must name a place`. */
function describeRule(schemaOrAction: Schema | Action): string {
  const action: Partial<Record<string, unknown>> = { ...schemaOrAction };
  const rule: Partial<Record<string, unknown>> =
    action['type'] === 'placeholder' ? { ...Object(action['item']) } : action;
  const message = messageOf(rule);
  const expects = typeof rule['expects'] === 'string' ? ` ${rule['expects']}` : '';
  return message === undefined ? `${rule['type']}${expects}` : `${rule['type']}: ${message}`;
}

function messageOf(action: object): string | undefined {
  return 'message' in action && typeof action.message === 'string' ? action.message : undefined;
}

/**
 * Removes a pattern whose regular expression has flags. Without them, it would refuse values that the
 * application accepts.
 */
function withoutFlagged(schema: JsonSchema, action: Action): JsonSchema {
  const { requirement } = Object(action);
  if (!(requirement instanceof RegExp) || requirement.flags === '' || schema.pattern !== requirement.source) {
    return schema;
  }
  const { pattern: _, ...withoutPattern } = schema;
  return withoutPattern;
}

function withRules(schema: JsonSchema & Ruled, rules: readonly string[]): JsonSchema {
  return Object.assign(schema, { [RULES]: [...(schema[RULES] ?? []), ...rules] });
}

/** Moves the rules into the descriptions, at every depth. */
function addDescriptions<Part>(part: Part & Ruled): Part {
  if (typeof part !== 'object' || part === null) return part;
  for (const inner of Object.values(part)) addDescriptions(inner);
  const { [RULES]: rules } = part;
  if (rules) {
    const descriptions =
      'description' in part && typeof part.description === 'string' ? [part.description] : [];
    delete part[RULES];
    Object.assign(part, { description: [...descriptions, ...rules].join('; ') });
  }
  return part;
}
