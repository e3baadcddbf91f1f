/** Alerts of a poster: one `code` for each cause. */
import { findCause } from '../rounds/cause.ts';

/** Codes of the alerts, each with its severity and its meaning. */
export const ALERTS = {
  NODE_UNUSABLE: [
    'alert',
    'A node does not answer, or its answer can not be used. The next node of the file takes its place.',
  ],
  NODE_CONTRADICTS: [
    'alert',
    'A node contradicts itself, since it lags or lies. It says that a transaction was executed, but shows the gas coin as unused or shows the effects of another transaction; or it shows the coin at an older version than the transaction names. The same bytes are sent again.',
  ],
  CALL_UNUSABLE: [
    'alert',
    'According to the node, the function, its objects or the config that the file names can not be used. The poster asks no enclave, and sends no transactions.',
  ],
  CLOCK_DIFFERS: [
    'alert',
    "This machine's clock and the chain's differ by more than a minute. The poster judges the age of values by this machine's clock, and the contract judges it by the chain's.",
  ],
  NO_VALUE: ['alert', 'No enclave gave a valid value.'],
  VALUE_REFUSED: [
    'alert',
    'The answer of an enclave is not valid: it has a wrong key, signature or time, or answers another request.',
  ],
  ENCLAVE_UNREACHABLE: ['warning', 'No server answers at a URL.'],
  WOULD_FAIL: [
    'alert',
    'A simulation shows that the contract would refuse a value, for a reason that `expected_aborts` does not name. The poster does not sign or pay for a transaction with this value.',
  ],
  SEND_FAILED: ['alert', 'A node did not accept a signed transaction. The same bytes are sent again.'],
  POST_FAILED: [
    'alert',
    'A transaction was executed and failed, for a reason that `expected_aborts` does not name. Its gas is spent, but it did not write the value.',
  ],
  NOT_RECORDED: [
    'alert',
    'The record or the file of transactions can not be written, so the poster signs and sends no transactions.',
  ],
  COIN_MOVED: [
    'alert',
    "In two rounds running, the gas coin of a transaction in flight had changed, and the node did not show the transaction: another process has the poster's key, and used the coin.",
  ],
  EXPIRED: [
    'alert',
    'A transaction was not executed in its epoch or the next one. Its gas coin is free again.',
  ],
  COINS_IN_FLIGHT: ['alert', 'Each gas coin has a transaction in flight, so no new transaction is signed.'],
  NO_GAS_COIN: ['alert', 'The poster has no free coin of SUI with at least `gas_budget`.'],
  GAS_PRICE: ['alert', 'The price of gas is above `max_gas_price`. The poster signs no transactions.'],
  GAS_AN_HOUR: [
    'alert',
    '`gas_an_hour` is used up. The poster signs no transactions until enough of this gas was spent more than an hour ago.',
  ],
  GAS_A_DAY: [
    'alert',
    '`gas_a_day` is used up. The poster signs no transactions until enough of this gas was spent more than a day ago.',
  ],
} as const satisfies Readonly<Record<string, readonly ['alert' | 'warning', string]>>;

export type AlertCode = keyof typeof ALERTS;

export interface Alert {
  readonly code: AlertCode;
  /** Subject of the alert: a URL, a node's host, a digest, an address, or the name of a function. */
  readonly subject: string;
  /** Text for people, without keys or secrets. */
  readonly message: string;
}

/** Returns whether an operator must act. */
export function isAlarm({ code }: Alert): boolean {
  return ALERTS[code][0] === 'alert';
}

/** Returns a line for the log. */
export function formatAlert({ code, subject, message }: Alert): string {
  return `${ALERTS[code][0]} ${code} ${subject}: ${message}`;
}

/** Creates the alert for a fault. */
export function createAlert(code: AlertCode, subject: string, error: unknown): Alert {
  const { code: cause, reason } = findCause(error);
  return { code, subject, message: `${cause}: ${reason}` };
}
