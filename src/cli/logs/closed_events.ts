/**
 * Defines the closed events, which may leave a parent instance. Each has fixed fields, whose values are
 * numbers, ids and names. An entry of the journal is never passed on unchanged: its line is written again
 * from the checked fields.
 */
import * as v from 'valibot';
import { enclaveName } from '../values.ts';

const number = v.pipe(v.number(), v.finite());
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
const code = v.pipe(v.string(), v.regex(/^[A-Z][A-Z0-9_]{0,63}$/));
const request_id = v.pipe(v.string(), v.regex(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/));
const time_ms = count;
/** A name of an event or a field, as in app.yaml. */
const NAME = /^[a-z][a-z0-9_]{0,31}$/;

/** The events of an enclave's server, as src/server/reports/events.ts writes them, and init's `lost`. */
const ServerEvent = v.variant('event', [
  v.strictObject({ event: v.literal('listening'), time_ms, ms: count }),
  v.strictObject({
    event: v.literal('request'),
    time_ms,
    request_id,
    status: v.pipe(count, v.maxValue(999)),
    code: v.nullable(code),
    ms: count,
  }),
  v.strictObject({ event: v.literal('sealed'), time_ms, request_id }),
  v.strictObject({ event: v.literal('secrets'), time_ms, missing: count }),
  v.strictObject({
    event: v.literal('clock'),
    time_ms,
    code: v.picklist(['CLOCK_CONFIRMED', 'CLOCK_UNCONFIRMED']),
    difference_ms: number,
  }),
  v.strictObject({
    event: v.literal('uncaught'),
    time_ms,
    class: v.pipe(v.string(), v.regex(/^[A-Za-z_$][\w$]{0,63}$/)),
    place: v.pipe(v.string(), v.regex(/^(?:unknown|[\w.-]{1,64}:\d{1,7}:\d{1,7})$/)),
  }),
  v.strictObject({
    event: v.literal('task'),
    time_ms,
    task: v.pipe(v.string(), v.regex(NAME)),
    outcome: v.picklist(['done', 'failed', 'late']),
    code: v.nullable(code),
    ms: count,
  }),
  v.strictObject({ event: v.literal('lost'), time_ms: v.optional(time_ms), events: count }),
  // The fields of an application's event are numbers: app.yaml, which the image measures, names them.
  v.objectWithRest(
    {
      event: v.literal('application'),
      time_ms,
      name: v.pipe(v.string(), v.regex(NAME)),
      request_id: v.nullable(request_id),
    },
    number,
  ),
]);

/** Maximum number of fields of an event: 4 fixed fields and 8 others for an application's event. */
const MAX_FIELDS = 12;

/** States of a unit, by the ids of systemd's messages about them (`systemd.catalog`). */
export const UNIT_STATES: Readonly<Record<string, 'started' | 'stopped' | 'failed'>> = {
  '39f53479d3a045ac8e11786248231fbf': 'started',
  '9d1aaa27d60140bd96365438aad20286': 'stopped',
  d9b373ed55a64feb8242e02dbe79a49c: 'failed',
};

export const RELAY_UNIT = 'sui-enclave-relay.service';
const UNIT = /^sui-enclave[\w@.-]{0,80}\.service$/;

/** The fields of a journal entry that are read. The journal itself sets those that begin with `_`. */
const Entry = v.object({
  __CURSOR: v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,1000}$/)),
  /** Time in microseconds since 1970. */
  __REALTIME_TIMESTAMP: v.pipe(v.string(), v.regex(/^\d{1,17}$/)),
  _SYSTEMD_UNIT: v.optional(v.string()),
  _PID: v.optional(v.string()),
  MESSAGE_ID: v.optional(v.string()),
  UNIT: v.optional(v.string()),
  /** Not a string if it has bytes that are not text, or is too long. */
  MESSAGE: v.optional(v.unknown()),
});

/** An entry of the journal, as the export uses it. */
export interface ReadEntry {
  /** The entry's place in the journal. */
  readonly cursor: string;
  /** The closed event as a line of JSON; undefined if the entry is not a closed event. */
  readonly line: string | undefined;
  /** Whether the relay printed the line for an enclave, although it is not a closed event. */
  readonly isRefused: boolean;
}

/** Reads an entry as `journalctl --output=json` prints it. Returns undefined if the text isn't an entry. */
export function readEntry(text: string): ReadEntry | undefined {
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Entry), text);
  if (!parsed.success) return undefined;
  const entry = parsed.output;
  const event = toUnitEvent(entry) ?? toEnclaveEvent(entry);
  return {
    cursor: entry.__CURSOR,
    line: event && JSON.stringify(event),
    isRefused: event === undefined && isEnclaveLine(entry),
  };
}

type Entry = v.InferOutput<typeof Entry>;

function toUnitEvent(entry: Entry): object | undefined {
  const { _PID: pid, MESSAGE_ID: id = '', UNIT: unit = '' } = entry;
  const state = Object.hasOwn(UNIT_STATES, id) ? UNIT_STATES[id] : undefined;
  if (pid !== '1' || state === undefined || !UNIT.test(unit)) return undefined;
  return { event: 'unit', time_ms: Math.floor(Number(entry.__REALTIME_TIMESTAMP) / 1000), unit, state };
}

/** Parses a line of the relay, which has the enclave's name before the enclave's event. */
function toEnclaveEvent({ _SYSTEMD_UNIT: unit, MESSAGE: message }: Entry) {
  if (unit !== RELAY_UNIT || typeof message !== 'string') return undefined;
  const space = message.indexOf(' ');
  const enclave = v.safeParse(enclaveName, message.slice(0, space));
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), ServerEvent), message.slice(space + 1));
  if (!enclave.success || !parsed.success) return undefined;
  const fields = Object.keys(parsed.output);
  // Only the relay says which enclave an event is of.
  if (fields.includes('enclave')) return undefined;
  if (fields.length > MAX_FIELDS || !fields.every((field) => NAME.test(field))) return undefined;
  return { enclave: enclave.output, ...parsed.output };
}

/** Returns whether the relay printed the line for an enclave. Lines about the relay begin with `relay: `. */
function isEnclaveLine({ _SYSTEMD_UNIT: unit, MESSAGE: message }: Entry): boolean {
  return unit === RELAY_UNIT && !(typeof message === 'string' && message.startsWith('relay: '));
}
