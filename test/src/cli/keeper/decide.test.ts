/** Tests of the decisions and reports of a keeper. */

import { toHex } from '@mysten/sui/utils';
import { describe, expect, test } from 'vitest';
import type { AlertCode } from '../../../../src/cli/keeper/alerts.ts';
import { type Answer, decide, type Rules, type Seen } from '../../../../src/cli/keeper/decide.ts';
import { CONFIG, CONFIG_ID, createEnclave, createKey, imageOf, REGISTRARS, URLS } from './simulated_world.ts';

const NOW = 1_800_000_000_000;
const HOUR = 3_600_000;
const RULES = { image: imageOf(0), registrarId: REGISTRARS[0] };
const [FIRST_URL, SECOND_URL] = URLS;

const answer = (key: number, url: string = FIRST_URL, attestedAtMs = NOW): Answer => ({
  url,
  trusted: true,
  publicKey: createKey(key),
  document: new Uint8Array(),
  attestedAtMs,
});
const failed = (code: string, reason = 'why\nat length'): Answer => ({
  url: FIRST_URL,
  trusted: false,
  code,
  reason,
});

function decided(seen: Partial<Seen>, rules: Rules = RULES) {
  const nothing = {
    config: CONFIG,
    enclaves: [],
    destroyed: [],
    answers: [],
    seenForMs: new Map(),
    now: NOW,
  };
  const { actions, alerts, ...listings } = decide({ ...nothing, ...seen }, rules);
  return {
    ...listings,
    actions: actions.map((action) =>
      action.kind === 'register' ? `register ${action.candidate.url}` : `destroy ${action.enclave.id}`,
    ),
    alerts,
    codes: alerts.map(({ code }): AlertCode => code),
  };
}

const updated = { ...CONFIG, configVersion: 1n };
const overlapping = (untilMs: number) => ({
  ...updated,
  overlap: { image: imageOf(1), untilMs: BigInt(untilMs) },
});
const aged = { ...CONFIG, maxKeyAgeMs: BigInt(10 * HOUR) };
const at = (hours: number) => ({ registeredAtMs: BigInt(NOW - hours * HOUR) });

describe('a keeper registers', () => {
  test('a key that is not registered, once, though it answers at two URLs', () => {
    expect(decided({ answers: [answer(1), answer(1, SECOND_URL), answer(2, SECOND_URL)] })).toMatchObject({
      actions: [`register ${FIRST_URL}`, `register ${SECOND_URL}`],
      codes: [],
      unregistered: [toHex(createKey(1)), toHex(createKey(2))],
    });
  });

  test('no key that is registered, or was destroyed', () => {
    const { id } = createEnclave(2);
    const answers = [answer(1), answer(2, SECOND_URL)];
    expect(decided({ enclaves: [createEnclave(1)], destroyed: [id], answers })).toMatchObject({
      actions: [],
      codes: ['KEY_DESTROYED'],
      unregistered: [],
    });
  });

  test('a key of the previous version at the present version, before its old registration is destroyed', () => {
    const old = createEnclave(1);
    const { actions, silent } = decided({ config: updated, enclaves: [old], answers: [answer(1)] });
    expect([actions, silent]).toEqual([[`register ${FIRST_URL}`, `destroy ${old.id}`], []]);
  });

  test('nothing, and destroys no old enclave, while contracts accept it in an overlap, to the last millisecond', () => {
    const old = createEnclave(1);
    const at = (untilMs: number) => decided({ config: overlapping(untilMs), enclaves: [old] });
    expect(at(NOW + 1)).toMatchObject({ actions: [], accepted: [old] });
    expect(at(NOW)).toMatchObject({ actions: [`destroy ${old.id}`], accepted: [] });
  });

  test('under an open config without a registrar, and under no other', () => {
    const rules = { ...RULES, registrarId: undefined };
    const answers = [answer(1)];
    expect(decided({ config: { ...CONFIG, isOpen: true }, answers }, rules)).toMatchObject({
      actions: [`register ${FIRST_URL}`],
      codes: [],
    });
    expect(decided({ answers }, rules)).toMatchObject({ actions: [], codes: ['REGISTRAR_REVOKED'] });
  });

  test.each<[string, Partial<typeof CONFIG>, AlertCode]>([
    ['a registrar that is not listed', { registrars: [REGISTRARS[1]] }, 'REGISTRAR_REVOKED'],
    ['a retired config', { isRetired: true }, 'CONFIG_RETIRED'],
  ])('nothing under %s', (_what, change, code) => {
    expect(decided({ config: { ...CONFIG, ...change }, answers: [answer(1)] })).toMatchObject({
      actions: [],
      codes: [code],
    });
  });
});

describe('a keeper destroys', () => {
  test('stale enclaves, and all enclaves of a retired config', () => {
    const [old, fresh] = [createEnclave(1), createEnclave(2, { configVersion: 1n })];
    const enclaves = [old, fresh];
    expect(decided({ config: updated, enclaves }).actions).toEqual([`destroy ${old.id}`]);
    expect(decided({ config: { ...updated, isRetired: true }, enclaves }).actions).toEqual([
      `destroy ${old.id}`,
      `destroy ${fresh.id}`,
    ]);
  });

  test('no enclave that contracts accept, and none whose key is merely too old', () => {
    expect(decided({ enclaves: [createEnclave(1)] })).toMatchObject({
      actions: [],
      codes: ['ENCLAVE_SILENT'],
    });
    expect(decided({ config: aged, enclaves: [createEnclave(1, at(11))] })).toMatchObject({
      actions: [],
      codes: [],
    });
  });
});

test('a keeper does nothing if one register differs from the file', () => {
  for (const name of ['pcr0', 'pcr1', 'pcr2'] as const) {
    const image = { ...imageOf(0), [name]: imageOf(1)[name] };
    const config = { ...updated, image };
    expect(decided({ config, enclaves: [createEnclave(1)], answers: [answer(2)] })).toMatchObject({
      actions: [],
      alerts: [{ code: 'REGISTERS_DIFFER', subject: CONFIG_ID }],
    });
  }
});

describe('a keeper reports', () => {
  test('why it trusts nothing at a URL, in one line', () => {
    expect(decided({ answers: [failed('CLIENT_UNREACHABLE')] }).alerts).toEqual([
      { code: 'ENCLAVE_UNREACHABLE', subject: FIRST_URL, message: 'CLIENT_UNREACHABLE: why' },
    ]);
    expect(decided({ answers: [failed('POLICY_PCRS')] }).codes).toEqual(['ENCLAVE_UNTRUSTED']);
  });

  test.each([
    [7.9, []],
    [8.1, ['KEY_AGING']],
    [10, ['KEY_AGING']],
    [10.1, ['KEY_TOO_OLD']],
  ])('a key of %d of 10 hours: %j', (hours, codes) => {
    const enclaves = [createEnclave(1, at(hours))];
    expect(decided({ config: aged, enclaves, answers: [answer(1)] }).codes).toEqual(codes);
    // Without a maximum age, no key is too old.
    expect(decided({ enclaves, answers: [answer(1)] }).codes).toEqual([]);
  });

  test('an unregistered key whose document, or first document, is older than two hours', () => {
    const key = toHex(createKey(1));
    const seenForMs = (ms: number) => new Map([[key, ms]]);
    expect(decided({ answers: [answer(1)], seenForMs: seenForMs(2 * HOUR) }).codes).toEqual([]);
    expect(decided({ answers: [answer(1)], seenForMs: seenForMs(2 * HOUR + 1) }).codes).toEqual([
      'UNREGISTERED',
    ]);
    expect(decided({ answers: [answer(1, FIRST_URL, NOW - 2 * HOUR - 1)] }).codes).toEqual(['UNREGISTERED']);
  });
});
