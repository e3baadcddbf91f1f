/** Tests which entries of the journal may leave a parent instance, and in which form. */
import { describe, expect, test } from 'vitest';
import { readEntry } from '../../../../src/cli/logs/closed_events.ts';
import { Events, type ServerEvents } from '../../../../src/server/reports/events.ts';

const ID = '01234567-89ab-cdef-0123-456789abcdef';

/** Returns an entry of the relay as journalctl prints it. */
const entry = (message: unknown, changes: object = {}) =>
  JSON.stringify({
    __CURSOR: 's=1;i=2',
    __REALTIME_TIMESTAMP: '1767225600000123',
    __MONOTONIC_TIMESTAMP: '5',
    _SYSTEMD_UNIT: 'sui-enclave-relay.service',
    _PID: '77',
    MESSAGE: message,
    ...changes,
  });
const line = (message: unknown, changes?: object) => readEntry(entry(message, changes))?.line;
const event = (fields: object) =>
  `weather ${JSON.stringify({ event: 'listening', time_ms: 1, ms: 5, ...fields })}`;

describe('export_events passes on', () => {
  const SAMPLES: { readonly [Name in keyof ServerEvents]: ServerEvents[Name] } = {
    listening: { ms: 130 },
    request: { request_id: ID, status: 502, code: 'UPSTREAM', ms: 12 },
    sealed: { request_id: ID },
    secrets: { missing: 0 },
    clock: { code: 'CLOCK_UNCONFIRMED', difference_ms: -1500.5 },
    uncaught: { class: 'TypeError', place: 'server.js:12:5' },
    task: { task: 'settle_5s', outcome: 'failed', code: 'PRICE_STALE', ms: 12 },
    lost: { events: 3 },
  };

  test.each(Object.entries(SAMPLES))('the event %s of a server', (name, fields) => {
    const lines: string[] = [];
    const write = (text: string) => lines.push(text) > 0;
    new Events({ write, close: () => {} }).emit(name as 'lost', fields as ServerEvents['lost']);
    const [text = ''] = lines;
    const exportedLine = line(`weather.eu-1 ${text.trim()}`);
    expect(exportedLine && JSON.parse(exportedLine)).toEqual({
      enclave: 'weather.eu-1',
      ...JSON.parse(text),
    });
  });

  test('an event of an application with its numbers, and the event lost of init', () => {
    const application = {
      event: 'application',
      time_ms: 1,
      name: 'paid',
      request_id: null,
      amount: -2.5,
      fee: 1,
    };
    for (const fields of [application, { event: 'lost', events: 2 }]) {
      expect(JSON.parse(line(`a ${JSON.stringify(fields)}`) ?? '{}')).toEqual({ enclave: 'a', ...fields });
    }
  });

  test.each([
    ['39f53479d3a045ac8e11786248231fbf', 'started'],
    ['9d1aaa27d60140bd96365438aad20286', 'stopped'],
    ['d9b373ed55a64feb8242e02dbe79a49c', 'failed'],
  ])("systemd's message %s as %s, without its text", (id, state) => {
    const unit = 'sui-enclave@weather.service';
    const changes = { _PID: '1', _SYSTEMD_UNIT: 'init.scope', MESSAGE_ID: id, UNIT: unit };
    expect(line('a text of systemd', changes)).toBe(
      JSON.stringify({ event: 'unit', time_ms: 1767225600000, unit, state }),
    );
    expect(line('from another process', { ...changes, _PID: '2' })).toBe(undefined);
    expect(line('about another unit', { ...changes, UNIT: 'ssh.service' })).toBe(undefined);
    expect(line('with a name that is not a unit', { ...changes, UNIT: 'sui-enclave@a b.service' })).toBe(
      undefined,
    );
  });
});

describe('export_events keeps in the journal, and counts as refused,', () => {
  const SECRET = 'sk_live_4242';
  test.each([
    ['a line that is not an event', SECRET],
    ['an event with an unknown field', event({ body: SECRET })],
    ['an event with a text in place of a number', event({ ms: SECRET })],
    ['an event that is not in the list', event({ event: SECRET })],
    [
      'an event with a text in place of a code',
      event({ event: 'request', request_id: ID, status: 500, code: SECRET, ms: 1 }).replace(',"ms":5', ''),
    ],
    ['an event with a text in place of an id', `a {"event":"sealed","time_ms":1,"request_id":"${SECRET}"}`],
    [
      'an event with a text in place of a class',
      `a {"event":"uncaught","time_ms":1,"class":"${SECRET} x","place":"unknown"}`,
    ],
    [
      'an event with a text in place of a file',
      `a {"event":"uncaught","time_ms":1,"class":"Error","place":"${SECRET}"}`,
    ],
    [
      'an application’s event with a text',
      `a {"event":"application","time_ms":1,"name":"paid","request_id":null,"x":"${SECRET}"}`,
    ],
    [
      'an application’s event with a list',
      `a {"event":"application","time_ms":1,"name":"paid","request_id":null,"x":[1]}`,
    ],
    [
      'an application’s event with a field whose name is a text',
      `a {"event":"application","time_ms":1,"name":"paid","request_id":null,"${SECRET}!":1}`,
    ],
    [
      'an application’s event with more fields than it may have',
      `a {"event":"application","time_ms":1,"name":"paid","request_id":null,${Array.from({ length: 9 }, (_, n) => `"f${n}":${n}`).join(',')}}`,
    ],
    [
      'an application’s event with a field that names an enclave',
      `a {"event":"application","time_ms":1,"name":"paid","request_id":null,"enclave":7}`,
    ],
    ['a number that is not finite', `a {"event":"listening","time_ms":1,"ms":1e999}`],
    ['a name of an enclave that is a text', event({}).replace('weather', `../${SECRET}`)],
    ['a line without a name', event({}).replace('weather ', '')],
    ['a line of bytes that are not text', [115, 107]],
    ['a line that was too long for the journal', null],
  ])('%s', (_, message) => {
    expect(readEntry(entry(message))).toEqual({ cursor: 's=1;i=2', line: undefined, isRefused: true });
  });
});

test("export_events takes no event from another unit's output, and does not count the relay's lines about itself", () => {
  expect(line(event({}))).toBeDefined();
  expect(readEntry(entry(event({}), { _SYSTEMD_UNIT: 'ssh.service' }))).toMatchObject({
    line: undefined,
    isRefused: false,
  });
  expect(readEntry(entry('relay: an invalid file'))).toMatchObject({ line: undefined, isRefused: false });
});

test('export_events skips lines that are not entries', () => {
  for (const text of ['', '{', '[]', '{"MESSAGE":"x"}', entry('x', { __CURSOR: 'a b' })]) {
    expect(readEntry(text)).toBe(undefined);
  }
});
