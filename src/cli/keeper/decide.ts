/** Decides the actions of a keeper from what it has observed. The module takes no action itself. */
import { toHex } from '@mysten/sui/utils';
import type { Image } from 'sui-enclave/attestation';
import {
  type Enclave,
  type EnclaveConfig,
  enclaveAddress,
  isKeyTooOld,
  isStale,
} from 'sui-enclave/sui/objects';
import { isSameImage } from '../sui/image_to_allow.ts';
import { type Candidate, explainNoRight } from '../sui/registration.ts';
import type { Alert } from './alerts.ts';

/**
 * Time in milliseconds after which an unregistered key causes an alert. The chain accepts a document for
 * about three hours.
 */
const UNREGISTERED_MS = 2 * 60 * 60_000;

/** The state of the chain. */
export interface ChainState {
  readonly config: EnclaveConfig;
  /** Every enclave of the config that exists, of all versions. */
  readonly enclaves: readonly Enclave[];
  /** The ids of the enclaves that were destroyed. */
  readonly destroyed: readonly string[];
}

/** An enclave with the registers that the keeper's file names. */
export interface TrustedAnswer extends Candidate {
  readonly trusted: true;
  /** The time of the document, in milliseconds since 1970. */
  readonly attestedAtMs: number;
}

/** The reason why no enclave at a URL is trusted. */
export interface UntrustedAnswer {
  readonly url: string;
  readonly trusted: false;
  readonly code: string;
  readonly reason: string;
}

export type Answer = TrustedAnswer | UntrustedAnswer;

export interface Observations extends ChainState {
  readonly answers: readonly Answer[];
  /** Time since each unregistered key was first seen, in milliseconds, by the key in hexadecimal. */
  readonly seenForMs: ReadonlyMap<string, number>;
  /** The present time, in milliseconds since 1970. */
  readonly now: number;
}

/** Limits on the actions of a keeper. */
export interface Rules {
  readonly image: Image;
  /** The RegistrarCap of the keeper. Without it, the keeper registers only under an open config. */
  readonly registrarId: string | undefined;
}

export type Action =
  | { readonly kind: 'register'; readonly candidate: Candidate; readonly enclaveId: string }
  | { readonly kind: 'destroy'; readonly enclave: Enclave };

/** Names an action. The chain allows each action only once, since ids of enclaves contain key and version. */
export function nameAction(action: Action): string {
  return `${action.kind} ${action.kind === 'register' ? action.enclaveId : action.enclave.id}`;
}

export interface Decision {
  /** The actions. Registrations come first, since callers wait for them. */
  readonly actions: readonly Action[];
  readonly alerts: readonly Alert[];
  /** The enclaves that contracts accept. */
  readonly accepted: readonly Enclave[];
  /** The accepted enclaves that answered at no URL. */
  readonly silent: readonly Enclave[];
  /** The trusted keys that are not registered, in hexadecimal. */
  readonly unregistered: readonly string[];
}

/** Returns whether the config's registers are those that the keeper's file names. */
export function mayAct({ config }: Pick<ChainState, 'config'>, { image }: Rules): boolean {
  return isSameImage(config.image, image);
}

export function decide(observations: Observations, rules: Rules): Decision {
  const { config, enclaves, now } = observations;
  const isAccepted = (enclave: Enclave) =>
    !config.isRetired && !isStale(enclave, config, now) && !isKeyTooOld(enclave, config, now);
  const accepted = enclaves.filter(isAccepted);
  if (!mayAct(observations, rules)) {
    const message =
      'the config allows registers other than those in the file, so the keeper registers and destroys no enclaves: correct the config or the file';
    const alerts: Alert[] = [{ code: 'REGISTERS_DIFFER', subject: config.id, message }];
    return { actions: [], alerts, accepted, silent: [], unregistered: [] };
  }
  const running = listRunning(observations);
  const keys = new Set(running.map(({ answer }) => toHex(answer.publicKey)));
  const silent = accepted.filter(({ publicKey }) => !keys.has(toHex(publicKey)));
  const free = running.filter((enclave) => enclave.state === 'free');
  const mayRegister = !config.isRetired && explainNoRight(config, rules.registrarId) === null;
  const registrable = mayRegister ? free : [];
  const destroyable = enclaves.filter((enclave) => config.isRetired || isStale(enclave, config, now));
  return {
    actions: [
      ...registrable.map(
        ({ answer, enclaveId }): Action => ({ kind: 'register', candidate: answer, enclaveId }),
      ),
      ...destroyable.map((enclave): Action => ({ kind: 'destroy', enclave })),
    ],
    alerts: [
      ...listConfigAlerts(config, rules),
      ...observations.answers.flatMap(listAnswerAlerts),
      ...(config.isRetired ? [] : running.flatMap((enclave) => listKeyAlerts(enclave, observations))),
      ...silent.map(createSilenceAlert),
    ],
    accepted,
    silent,
    unregistered: free.map(({ answer }) => toHex(answer.publicKey)),
  };
}

/** A trusted key, and its state at the config's version. */
interface RunningEnclave {
  readonly answer: TrustedAnswer;
  readonly enclaveId: string;
  readonly state: 'free' | 'destroyed' | Enclave;
}

/** Lists each key once, since several URLs may reach the same enclave. */
function listRunning({ config, enclaves, destroyed, answers }: Observations): RunningEnclave[] {
  const running = new Map<string, RunningEnclave>();
  for (const answer of answers) {
    if (!answer.trusted) continue;
    const enclaveId = enclaveAddress(config, config.configVersion, answer.publicKey);
    const registered = enclaves.find(({ id }) => id === enclaveId);
    const state = registered ?? (destroyed.includes(enclaveId) ? 'destroyed' : 'free');
    if (!running.has(enclaveId)) running.set(enclaveId, { answer, enclaveId, state });
  }
  return [...running.values()];
}

function listConfigAlerts(config: EnclaveConfig, rules: Rules): Alert[] {
  const { id: subject } = config;
  if (config.isRetired) {
    const message = 'the config is permanently retired: end this keeper once its enclaves are destroyed';
    return [{ code: 'CONFIG_RETIRED', subject, message }];
  }
  const message = explainNoRight(config, rules.registrarId);
  return message === null ? [] : [{ code: 'REGISTRAR_REVOKED', subject, message }];
}

function listAnswerAlerts(answer: Answer): Alert[] {
  if (answer.trusted) return [];
  const { url: subject, code: cause, reason } = answer;
  const code = cause === 'CLIENT_UNREACHABLE' ? 'ENCLAVE_UNREACHABLE' : 'ENCLAVE_UNTRUSTED';
  return [{ code, subject, message: `${cause}: ${reason.split('\n')[0]}` }];
}

function listKeyAlerts(
  { answer, enclaveId, state }: RunningEnclave,
  { config, seenForMs, now }: Observations,
): Alert[] {
  const { url: subject, publicKey, attestedAtMs } = answer;
  if (state === 'destroyed') {
    const message = `its key was registered as ${enclaveId} and destroyed: restart the enclave for a new key`;
    return [{ code: 'KEY_DESTROYED', subject, message }];
  }
  if (state === 'free') {
    const ageMs = Math.max(now - attestedAtMs, seenForMs.get(toHex(publicKey)) ?? 0);
    if (ageMs <= UNREGISTERED_MS) return [];
    const message =
      'its key has not been registered for two hours, and the chain accepts a document for about three';
    return [{ code: 'UNREGISTERED', subject, message }];
  }
  if (isKeyTooOld(state, config, now)) {
    const message = 'its key is too old, so contracts do not accept it: restart the enclave';
    return [{ code: 'KEY_TOO_OLD', subject, message }];
  }
  // The last fifth of the time that the config allows.
  const fifth = Number((config.maxKeyAgeMs ?? 0n) / 5n);
  if (!isKeyTooOld(state, config, now + fifth)) return [];
  const until = new Date(Number(state.registeredAtMs + (config.maxKeyAgeMs ?? 0n)));
  const message = `contracts accept its key until ${until.toISOString()}: restart the enclave before then`;
  return [{ code: 'KEY_AGING', subject, message }];
}

function createSilenceAlert({ id: subject }: Enclave): Alert {
  const message =
    "it answers at none of the URLs. If it no longer runs, the holder of the config's EnclaveCap can destroy it";
  return { code: 'ENCLAVE_SILENT', subject, message };
}
