/** Reports of a keeper: one `code` for each cause. */

/** Every code of an alert: whether it is only a warning, and its meaning. */
export const ALERTS = {
  REGISTERS_DIFFER: [
    'alert',
    'The config allows registers other than those in the file. The keeper sends no transactions.',
  ],
  CONFIG_RETIRED: [
    'alert',
    'The config is permanently retired. Its enclaves are destroyed, and no enclave is registered.',
  ],
  REGISTRAR_REVOKED: [
    'alert',
    'The config does not list the registrar, or no registrar is named and the config is not open. The keeper registers no enclaves.',
  ],
  CONFIG_UNREADABLE: [
    'alert',
    'No node shows the config and its enclaves. The keeper sends no transactions.',
  ],
  NODE_UNREADABLE: [
    'alert',
    'One of several nodes could not be read. The keeper sends no transactions until it can read all nodes.',
  ],
  NODES_DISAGREE: [
    'alert',
    'Several nodes show different contents of the config, or different states of an enclave: one lags, or lies. The keeper sends no transaction for the config or that enclave.',
  ],
  ACTION_FAILED: ['alert', 'A registration or a destruction failed. It is tried again in a later round.'],
  NODE_CONTRADICTS: [
    'alert',
    'The node said that a registration or a destruction was done, by this keeper or another, but does not show it: the node lags, or lies. The transaction is not signed again.',
  ],
  GAS_A_DAY: [
    'alert',
    'The gas of a day is used up. The keeper registers no enclaves until some of this gas was used more than a day ago.',
  ],
  ENCLAVE_UNREACHABLE: ['alert', 'No server answers at a URL.'],
  ENCLAVE_UNTRUSTED: ['alert', 'The server at a URL does not prove that it runs the image.'],
  KEY_DESTROYED: [
    'alert',
    'The key of a running enclave was destroyed at this version: only a restart helps.',
  ],
  KEY_TOO_OLD: [
    'alert',
    'The key of a running enclave is older than the config allows: only a restart helps.',
  ],
  KEY_AGING: ['warning', 'The key of a running enclave has reached 80 % of the maximum age.'],
  UNREGISTERED: ['warning', 'An enclave has attested its key for two hours, but the key is not registered.'],
  DESTRUCTION_WAITS: [
    'warning',
    'Half of the gas of a day is used up, and the other half is kept for registrations. The keeper destroys stale enclaves later; contracts refuse them anyway.',
  ],
  ENCLAVE_SILENT: ['warning', 'A registered enclave, which contracts accept, answered at no URL.'],
} as const satisfies Readonly<Record<string, readonly ['alert' | 'warning', string]>>;

export type AlertCode = keyof typeof ALERTS;

export interface Alert {
  readonly code: AlertCode;
  /** Subject of the alert: a URL, or the id of an object. */
  readonly subject: string;
  /** Text for people, without keys or secrets. */
  readonly message: string;
}

/** Returns whether an operator must act. */
export function isAlarm({ code }: Alert): boolean {
  return ALERTS[code][0] === 'alert';
}

/** Returns a line for the log. */
export function formatLine({ code, subject, message }: Alert): string {
  return `${ALERTS[code][0]} ${code} ${subject}: ${message}`;
}
