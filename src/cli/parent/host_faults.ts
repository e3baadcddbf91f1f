/** Faults of a host, as `host_status` reports them: one `code` for each cause. */

/** Every code of a fault, and its meaning. */
export const HOST_FAULTS = {
  NOTHING_INSTALLED: 'No enclave is installed as a unit of this host.',
  NITRO_UNREADABLE: "nitro-cli does not list the enclaves, so host_status can't tell which of them run.",
  RELAY_DOWN:
    "The relay does not run: callers can't reach the enclaves, and the enclaves can't reach their upstreams.",
  RELAY_PATH_DOWN: 'The unit that tells the relay of changes in its folder does not run.',
  ENCLAVE_STOPPED: 'The enclave does not run, since its unit is stopped.',
  ENCLAVE_FAILED: 'The enclave does not run, and systemd does not start it again.',
  ENCLAVE_CHANGING: 'A unit of the enclave is starting, stopping or about to start again.',
  ENCLAVE_UNWATCHED:
    'The enclave runs, but its unit does not: after the enclave ends, systemd does not start it again.',
  END_UNIT_DOWN: 'A stop of the unit right after a crash of its process would leave the enclave running.',
  ENCLAVE_TWICE: 'Several enclaves have this name.',
  DEBUG_MODE: 'The enclave runs in debug mode: its registers are zeros, and it can keep no secret.',
  IMAGE_UNREADABLE: 'The registers of the installed image are missing or damaged.',
  IMAGE_PENDING: 'The enclave runs the previous image. Its next start runs the installed image.',
  IMAGE_UNKNOWN: 'The enclave runs an image that was not installed here, or nitro-cli names no registers.',
  EXPOSE_FAILED: 'The unit that opens the port and passes the secrets has failed, or is stopped.',
  PORT_CLOSED: 'The relay does not forward the port to this enclave.',
  SERVER_SILENT: 'The enclave runs, but its server does not answer at the port.',
  SECRETS_MISSING: 'The server waits for secrets, and refuses requests until it has them.',
  CLOCK_DOUBTFUL: 'The server warns of its clock. It does not sign until the NSM confirms the clock.',
  TASK_FAILS: 'The last run of a task of the application failed, or did not end in time.',
  CHAIN_UNREADABLE: 'The registration could not be read: the node or the deployment file has a fault.',
  ATTESTATION_REFUSED: 'The enclave does not attest an image that the config accepts.',
  CONFIG_RETIRED: 'The config is retired: contracts accept none of its enclaves.',
  UNREGISTERED: 'The key is not registered, so contracts do not accept what it signs.',
  KEY_DESTROYED: 'The registration of the key was destroyed: this key can not be registered again.',
  KEY_TOO_OLD: 'The key is older than the config allows.',
} as const;

export type HostFaultCode = keyof typeof HOST_FAULTS;

export interface HostFault {
  readonly code: HostFaultCode;
  /** Text for people, without keys or secrets. */
  readonly text: string;
  /** The command that mends the fault, and its effects. */
  readonly advice: string;
}

/** Part of every advice with a command that ends an enclave. */
export const KEY_LOST = 'that ends the enclave, and its key is lost';

/** Part of every advice that ends all enclaves of an instance, such as a reboot. */
export const KEYS_LOST = 'which requires every enclave here to end: their keys are lost';
