/** Describes the state of an enclave under a config in a word and a colour. */
import { type EnclaveConfig, isKeyTooOld, type ListedEnclave } from 'sui-enclave/sui';
import type { Tone } from '../parts/verdict.tsx';

export interface Light {
  readonly tone: Tone;
  readonly word: string;
  readonly why: string;
}

/**
 * Returns the light of a registered enclave, whether or not it answers.
 *
 * @param nowMs milliseconds since 1970
 */
export function chooseLight(enclave: ListedEnclave, config: EnclaveConfig, nowMs: number): Light {
  if (config.isRetired) {
    return {
      tone: 'danger',
      word: 'retired',
      why: 'The config is retired: contracts accept none of its enclaves.',
    };
  }
  if (enclave.isStale) {
    return {
      tone: 'warning',
      word: 'stale',
      why: `It was registered at version ${enclave.configVersion}, and contracts no longer accept it.`,
    };
  }
  if (isKeyTooOld(enclave, config, nowMs)) {
    return { tone: 'warning', word: 'key too old', why: 'Its key is older than the config allows.' };
  }
  if (enclave.configVersion < config.configVersion) {
    return {
      tone: 'success',
      word: 'in overlap',
      why: 'Contracts accept its version until the overlap ends.',
    };
  }
  return { tone: 'success', word: 'registered', why: 'Contracts accept what it signs.' };
}

/** Outcome of a request for an enclave's attestation document. */
export type AttestationOutcome =
  | { readonly kind: 'silent'; readonly why: string }
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'attested'; readonly publicKey: string };

/**
 * Returns the light of an enclave that was asked. `registered` has the lights of registered enclaves by key.
 */
export function chooseAnswerLight(
  outcome: AttestationOutcome,
  registered: ReadonlyMap<string, Light>,
): Light {
  if (outcome.kind === 'silent') return { tone: 'danger', word: 'silent', why: outcome.why };
  if (outcome.kind === 'refused') return { tone: 'danger', word: 'not trusted', why: outcome.why };
  const light = registered.get(outcome.publicKey);
  if (light) return { ...light, why: `It answers with a registered key. ${light.why}` };
  return {
    tone: 'danger',
    word: 'unknown key',
    why: 'It is attested and runs an accepted image, but its key is not registered: it may have restarted.',
  };
}
