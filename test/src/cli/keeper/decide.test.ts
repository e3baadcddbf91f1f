/** Tests of the decisions and reports of a keeper. */

import { toHex } from '@mysten/sui/utils';
import { describe, expect, test } from 'vitest';
import type { AlertCode } from '../../../../src/cli/keeper/alerts.ts';
import { type Answer, decide, type Observations, type Rules } from '../../../../src/cli/keeper/decide.ts';
import {
  CONFIG,
  CONFIG_ID,
  createEnclave,
  createKey,
  getImage,
  REGISTRARS,
  URLS,
} from './simulated_world.ts';

const NOW = 1_800_000_000_000;
const HOUR = 3_600_000;
const RULES = { image: getImage(0), registrarId: REGISTRARS[0] };
const [FIRST_URL, SECOND_URL] = URLS;

const answer = (key: number, url: string = FIRST_URL, attestedAtMs = NOW): Answer => ({
  url,
  trusted: true,
  publicKey: createKey(key),
  document: new Uint8Array(),
  attestedAtMs,
});
const createFailure = (code: string, reason = 'why\nat length'): Answer => ({
  url: FIRST_URL,
  trusted: false,
  code,
  reason,
});

function runDecide(observations: Partial<Observations>, rules: Rules = RULES) {
  const nothing = {
    config: CONFIG,
    enclaves: [],
    destroyed: [],
    answers: [],
    seenForMs: new Map(),
    now: NOW,
  };
  const { actions, alerts, ...listings } = decide({ ...nothing, ...observations }, rules);
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
  overlap: { image: getImage(1), untilMs: BigInt(untilMs) },
});
const aged = { ...CONFIG, maxKeyAgeMs: BigInt(10 * HOUR) };
const at = (hours: number) => ({ registeredAtMs: BigInt(NOW - hours * HOUR) });

describe('a keeper registers', () => {
  test('a key that is not registered, and only once if it answers at two URLs', () => {
    expect(runDecide({ answers: [answer(1), answer(1, SECOND_URL), answer(2, SECOND_URL)] })).toMatchObject({
      actions: [`register ${FIRST_URL}`, `register ${SECOND_URL}`],
      codes: [],
      unregistered: [toHex(createKey(1)), toHex(createKey(2))],
    });
  });

  test('no key that is registered or was destroyed', () => {
    const { id } = createEnclave(2);
    const answers = [answer(1), answer(2, SECOND_URL)];
    expect(runDecide({ enclaves: [createEnclave(1)], destroyed: [id], answers })).toMatchObject({
      actions: [],
      codes: ['KEY_DESTROYED'],
      unregistered: [],
    });
  });

  test('a key of the previous version at the present version, before its old registration is destroyed', () => {
    const old = createEnclave(1);
    const { actions, silent } = runDecide({ config: updated, enclaves: [old], answers: [answer(1)] });
    expect([actions, silent]).toEqual([[`register ${FIRST_URL}`, `destroy ${old.id}`], []]);
  });

  test('nothing, and destroys no old enclave before the last millisecond of an overlap has passed', () => {
    const old = createEnclave(1);
    const at = (untilMs: number) => runDecide({ config: overlapping(untilMs), enclaves: [old] });
    expect(at(NOW + 1)).toMatchObject({ actions: [], accepted: [old] });
    expect(at(NOW)).toMatchObject({ actions: [`destroy ${old.id}`], accepted: [] });
  });

  test('without a registrar, but only under an open config', () => {
    const rules = { ...RULES, registrarId: undefined };
    const answers = [answer(1)];
    expect(runDecide({ config: { ...CONFIG, isOpen: true }, answers }, rules)).toMatchObject({
      actions: [`register ${FIRST_URL}`],
      codes: [],
    });
    expect(runDecide({ answers }, rules)).toMatchObject({ actions: [], codes: ['REGISTRAR_REVOKED'] });
  });

  test.each<[string, Partial<typeof CONFIG>, AlertCode]>([
    ['a registrar that is not listed', { registrars: [REGISTRARS[1]] }, 'REGISTRAR_REVOKED'],
    ['a retired config', { isRetired: true }, 'CONFIG_RETIRED'],
  ])('nothing under %s', (_title, change, code) => {
    expect(runDecide({ config: { ...CONFIG, ...change }, answers: [answer(1)] })).toMatchObject({
      actions: [],
      codes: [code],
    });
  });
});

describe('a keeper destroys', () => {
  test('stale enclaves, and all enclaves of a retired config', () => {
    const [old, fresh] = [createEnclave(1), createEnclave(2, { configVersion: 1n })];
    const enclaves = [old, fresh];
    expect(runDecide({ config: updated, enclaves }).actions).toEqual([`destroy ${old.id}`]);
    expect(runDecide({ config: { ...updated, isRetired: true }, enclaves }).actions).toEqual([
      `destroy ${old.id}`,
      `destroy ${fresh.id}`,
    ]);
  });

  test('no enclave that contracts accept, and none whose key is merely too old', () => {
    expect(runDecide({ enclaves: [createEnclave(1)] })).toMatchObject({
      actions: [],
      codes: ['ENCLAVE_SILENT'],
    });
    expect(runDecide({ config: aged, enclaves: [createEnclave(1, at(11))] })).toMatchObject({
      actions: [],
      codes: [],
    });
  });
});

test('a keeper does nothing if one register differs from the file', () => {
  for (const name of ['pcr0', 'pcr1', 'pcr2'] as const) {
    const image = { ...getImage(0), [name]: getImage(1)[name] };
    const config = { ...updated, image };
    expect(runDecide({ config, enclaves: [createEnclave(1)], answers: [answer(2)] })).toMatchObject({
      actions: [],
      alerts: [{ code: 'REGISTERS_DIFFER', subject: CONFIG_ID }],
    });
  }
});

describe('a keeper reports', () => {
  test('why it trusts nothing at a URL, in one line', () => {
    expect(runDecide({ answers: [createFailure('CLIENT_UNREACHABLE')] }).alerts).toEqual([
      { code: 'ENCLAVE_UNREACHABLE', subject: FIRST_URL, message: 'CLIENT_UNREACHABLE: why' },
    ]);
    expect(runDecide({ answers: [createFailure('POLICY_PCRS')] }).codes).toEqual(['ENCLAVE_UNTRUSTED']);
  });

  test.each([
    [7.9, []],
    [8.1, ['KEY_AGING']],
    [10, ['KEY_AGING']],
    [10.1, ['KEY_TOO_OLD']],
  ])('a key that is %d hours old, of at most 10: %j', (hours, codes) => {
    const enclaves = [createEnclave(1, at(hours))];
    expect(runDecide({ config: aged, enclaves, answers: [answer(1)] }).codes).toEqual(codes);
    // Without a maximum age, no key is too old.
    expect(runDecide({ enclaves, answers: [answer(1)] }).codes).toEqual([]);
  });

  test('an unregistered key that was first seen, or whose document was made, over two hours ago', () => {
    const key = toHex(createKey(1));
    const seenForMs = (ms: number) => new Map([[key, ms]]);
    expect(runDecide({ answers: [answer(1)], seenForMs: seenForMs(2 * HOUR) }).codes).toEqual([]);
    expect(runDecide({ answers: [answer(1)], seenForMs: seenForMs(2 * HOUR + 1) }).codes).toEqual([
      'UNREGISTERED',
    ]);
    expect(runDecide({ answers: [answer(1, FIRST_URL, NOW - 2 * HOUR - 1)] }).codes).toEqual([
      'UNREGISTERED',
    ]);
  });
});
