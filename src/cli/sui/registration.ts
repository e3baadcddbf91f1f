/**
 * Registers attested keys under a config: for register_enclave, and for rotate if the registers stay the
 * same.
 */
import { Transaction } from '@mysten/sui/transactions';
import { toHex } from '@mysten/sui/utils';
import { type EnclaveConfig, findRegistration } from 'sui-enclave/sui/objects';
import {
  type AttestationInput,
  loadAttestation,
  registerEnclave,
  registerEnclaveAsAnyone,
  registerEnclaveAsRegistrar,
} from 'sui-enclave/sui/transactions';
import { quantity } from 'sui-enclave/wording';
import { UsageError } from '../command.ts';
import { type Attested, askForAttestation, type Expected, readAttestedKey } from './attest.ts';
import type { Chain } from './chain.ts';
import type { Deployments } from './deployments.ts';
import { SuiCommandError } from './errors.ts';
import type { Outcome } from './outcome.ts';

/** Maximum number of URLs: a transaction has 128 KiB at most, and a document about 5 KiB. */
const MAX_URLS = 16;

/** An enclave to register: the document, and the key that it attests. */
export interface Candidate {
  readonly url: string;
  readonly document: Uint8Array;
  readonly publicKey: Uint8Array;
}

/** The config for which enclaves are registered. */
export interface Target {
  readonly enclavePackage: string;
  readonly config: EnclaveConfig;
  readonly deployments: Deployments | undefined;
}

/** @throws UsageError */
export function checkUrls(urls: readonly string[]): void {
  if (urls.length > MAX_URLS)
    throw new UsageError(`give at most ${MAX_URLS} URLs: a transaction takes no more`);
}

/** Returns the documents of the enclaves at the URLs. @throws as `askForAttestation` */
export async function askAll(
  urls: readonly string[],
  root: Uint8Array | undefined,
  chain: Chain,
): Promise<(Attested & { readonly url: string })[]> {
  const documents = [];
  for (const url of new Set(urls)) documents.push({ url, ...(await askForAttestation(url, root, chain)) });
  return documents;
}

/**
 * Returns the enclaves that the documents attest, each once, since several URLs may reach the same enclave.
 *
 * @throws AttestationError
 */
export async function readCandidates(
  documents: readonly (Attested & { readonly url: string })[],
  expected: Expected,
): Promise<Candidate[]> {
  const candidatesByKey = new Map<string, Candidate>();
  for (const { url, ...attested } of documents) {
    const publicKey = await readAttestedKey(attested, expected);
    const name = toHex(publicKey);
    if (!candidatesByKey.has(name))
      candidatesByKey.set(name, { url, document: attested.document, publicKey });
  }
  return [...candidatesByKey.values()];
}

/** Describes enclaves as "the enclave at http://…" or "2 enclaves". */
export function describeCandidates(candidates: readonly Pick<Candidate, 'url'>[]): string {
  const [only, ...moreCandidates] = candidates;
  return only && moreCandidates.length === 0
    ? `the enclave at ${only.url}`
    : quantity(candidates.length, 'enclave');
}

/** Returns the fields of a report on enclaves: the properties of a single enclave, or a list of several. */
export function toFields(
  enclaves: readonly { readonly url: string; readonly enclave: string; readonly publicKey: string }[],
): Record<string, unknown> {
  const [only, ...moreEnclaves] = enclaves;
  return only && moreEnclaves.length === 0
    ? { enclave: only.enclave, publicKey: only.publicKey }
    : { enclaves };
}

/** Returns the id and the URL of an enclave for the deployment file. */
function toEntry({ report }: { readonly report: { readonly enclave: string; readonly url: string } }) {
  return { id: report.enclave, url: report.url };
}

interface RegistrationCall {
  readonly enclavePackage: string;
  readonly application: string;
  readonly configId: string;
  readonly attestation: AttestationInput;
}

/** The right by which a sender registers enclaves. */
interface Right {
  /** Adds the call that registers an enclave. */
  register(tx: Transaction, call: RegistrationCall): void;
  /** The capability, for the report; none under an open config. */
  readonly fields: Readonly<Record<string, string>>;
  /** Note about the time within which the transaction must be sent, if there is a limit. */
  readonly deadline?: string;
}

/**
 * Returns the reason why a sender with this registrar, or without any, may not register enclaves under a
 * config; null if the sender may. Does not consider the config's capability.
 */
export function explainNoRight(
  { id, isOpen, registrars }: EnclaveConfig,
  registrarId: string | undefined,
): string | null {
  if (registrarId === undefined) {
    return isOpen ? null : `the config ${id} is not open, and no registrar is named`;
  }
  if (registrars.includes(registrarId)) return null;
  return `the config ${id} does not list the registrar ${registrarId}: it was revoked, or is of another config`;
}

function chooseRight({ capabilityId: capId, isOpen }: EnclaveConfig, registrarId: string | undefined): Right {
  if (registrarId !== undefined) {
    return {
      register: (tx, call) => registerEnclaveAsRegistrar(tx, { ...call, registrarId }),
      fields: { registrar: registrarId },
    };
  }
  if (isOpen) {
    return {
      register: registerEnclaveAsAnyone,
      fields: {},
      deadline:
        'Send the transaction within 10 minutes: without a capability, the chain refuses an older attestation.',
    };
  }
  return {
    register: (tx, call) => registerEnclave(tx, { ...call, capId }),
    fields: { capability: capId },
  };
}

/**
 * Sends one transaction that registers all missing keys, or nothing if all are registered. Also
 * records registered enclaves that the deployment file lacks: an earlier command may have been killed after
 * its transaction and before it wrote the file.
 *
 * @param registrarId a RegistrarCap of the sender, in place of the config's capability. An open config needs
 *   neither
 * @throws SuiCommandError: WOULD_ABORT for a key that was destroyed; SuiError
 */
export async function register(
  chain: Chain,
  { enclavePackage, config, deployments }: Target,
  candidates: readonly Candidate[],
  registrarId?: string,
): Promise<Outcome> {
  const { application, id: configId, configVersion } = config;
  const right = chooseRight(config, registrarId);
  const registrations = [];
  for (const candidate of candidates) {
    const { enclaveId, state } = await findRegistration(chain.client, config, candidate.publicKey, {
      versions: 'latest',
    });
    const publicKey = toHex(candidate.publicKey);
    if (state === 'destroyed') {
      throw new SuiCommandError(
        'WOULD_ABORT',
        `register_enclave would abort: the key ${publicKey} of ${candidate.url} was registered at version ${configVersion} and destroyed. Restart the enclave for a new key`,
      );
    }
    registrations.push({ candidate, state, report: { url: candidate.url, enclave: enclaveId, publicKey } });
  }
  const missing = registrations.filter(({ state }) => state === 'free');
  const fields = { ...toFields(registrations.map(({ report }) => report)), config: configId, configVersion };
  const registeredBefore = registrations.filter(({ state }) => state === 'registered').map(toEntry);
  const unrecorded = deployments?.findUnrecorded(configId, registeredBefore) ?? [];
  if (missing.length === 0) {
    const status = chain.isDryRun ? 'dry-run' : 'done';
    if (unrecorded.length > 0) await deployments?.recordEnclaves(chain, { status }, config, unrecorded);
    const title = registrations.length === 1 ? 'This enclave is' : 'These enclaves are';
    return { status: 'unchanged', title: `${title} registered already: nothing to do.`, fields };
  }
  for (const { state, report } of registrations) {
    if (state === 'registered') chain.notes.push(`The enclave at ${report.url} is registered already.`);
  }
  const tx = new Transaction();
  for (const attestation of missing.map(({ candidate }) => loadAttestation(tx, candidate.document))) {
    right.register(tx, { enclavePackage, application, configId, attestation });
  }
  const outcome = await chain.submit(tx, {
    title: `register ${describeCandidates(missing.map(({ candidate }) => candidate))} for ${application}`,
    fields: {
      ...fields,
      ...right.fields,
    },
  });
  if (outcome.status === 'unsigned' && right.deadline !== undefined) chain.notes.push(right.deadline);
  await deployments?.recordEnclaves(chain, outcome, config, [...unrecorded, ...missing.map(toEntry)]);
  return outcome;
}
