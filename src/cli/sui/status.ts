/** `sui-enclave status`: prints a config, its enclaves, and whether contracts accept the running enclaves. */
import { toHex } from '@mysten/sui/utils';
import {
  acceptedImages,
  type Enclave,
  type EnclaveConfig,
  isKeyTooOld,
  isOverlapping,
  isStale,
  listEnclaves,
  readConfig,
} from 'sui-enclave/sui/objects';
import { quantity } from 'sui-enclave/wording';
import { runAsProcess } from '../command.ts';
import { enclaveUrl } from '../values.ts';
import { suiCommand } from './command.ts';
import { readRoots } from './contract.ts';
import type { Deployments } from './deployments.ts';
import { attestUrls, type UrlAttestation } from './fleet.ts';
import { ROOT_OPTION } from './options.ts';

const MINUTE_MS = 60_000;

/** Formats an age such as "2 d 3 h", "5 h 20 min" or "7 min". */
function formatAge(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / MINUTE_MS));
  const [days, hours] = [Math.floor(minutes / 1440), Math.floor(minutes / 60)];
  if (days > 0) return `${days} d ${hours % 24} h`;
  return hours > 0 ? `${hours} h ${minutes % 60} min` : `${minutes} min`;
}

interface UrlSources {
  readonly args: { readonly urls: readonly string[] };
  readonly isFilled: boolean;
  readonly deployments: Deployments | undefined;
}

/** Returns the URLs of the arguments, or else the URLs that the deployment file has for the config. */
function listUrls({ args: { urls }, isFilled, deployments }: UrlSources): string[] {
  if (urls.length > 0 || !isFilled) return [...new Set(urls)];
  const [, application] = deployments?.application() ?? [];
  return [...new Set(application?.enclaves.map(({ url }) => url))];
}

/** The findings that the printed lines describe. */
interface Findings {
  readonly config: EnclaveConfig;
  readonly enclaves: readonly Enclave[];
  /** Enclaves whose answers contracts accept. */
  readonly accepted: readonly Enclave[];
  readonly urls: readonly string[];
  readonly answering: readonly UrlAttestation[];
  /** Ids of the accepted enclaves that did not answer. */
  readonly silent: readonly string[];
  readonly now: number;
}

const isAccepted = (answer: UrlAttestation, { accepted }: Pick<Findings, 'accepted'>) =>
  answer.trusted && accepted.some(({ id }) => id === answer.enclave);

/**
 * Returns ", where anyone may register enclaves" if the config is open and not retired; else an empty text.
 */
function describeOpenness({ config: { isOpen, isRetired } }: Pick<Findings, 'config'>): string {
  return isOpen && !isRetired ? ', where anyone may register enclaves' : '';
}

/**
 * Describes an overlap as ", and at version 3 until 2026-01-01T12:00:00.000Z". Returns an empty text without
 * an overlap.
 */
function describeOverlap({ config, now }: Pick<Findings, 'config' | 'now'>): string {
  if (config.isRetired || !isOverlapping(config, now)) return '';
  return `, and at version ${config.configVersion - 1n} until ${formatTime(config.overlap?.untilMs)}`;
}

function formatTime(ms: bigint | undefined): string {
  return new Date(Number(ms)).toISOString();
}

/** Describes the verdict in one line. */
function describeVerdict(findings: Findings): string {
  const { config, enclaves, accepted, urls, answering: answers, silent } = findings;
  const name = `the config ${JSON.stringify(config.name)} at version ${config.configVersion}${describeOverlap(findings)}${describeOpenness(findings)}`;
  if (config.isRetired) return `RETIRED: ${name}. Contracts accept none of its enclaves.`;
  const registered = `${accepted.length} of ${quantity(enclaves.length, 'registered enclave')}`;
  if (urls.length === 0)
    return `Not checked: give the URLs of enclaves. Contracts accept ${registered} of ${name}.`;
  const refused = answers.filter((answer) => !isAccepted(answer, findings)).length;
  if (refused > 0) {
    const subject =
      answers.length === 1
        ? 'the enclave at this URL'
        : `${refused} of the ${answers.length} enclaves at these URLs`;
    return `PROBLEM: contracts do not accept ${subject}, under ${name}.`;
  }
  const silentText =
    silent.length === 0 ? '' : ` ${quantity(silent.length, 'other accepted enclave')} did not answer.`;
  return `OK: contracts accept every key that answered, under ${name}.${silentText}`;
}

/** Returns the reason why contracts refuse the answers of an enclave; undefined if they accept them. */
function describeFault(enclave: Enclave, { config, now }: Findings): string | undefined {
  if (config.isRetired) return 'its config is retired';
  if (isStale(enclave, config, now)) return `stale: registered at version ${enclave.configVersion}`;
  return isKeyTooOld(enclave, config, now)
    ? 'its key is too old: restart the enclave, and register its new key'
    : undefined;
}

function describeState(enclave: Enclave, findings: Findings): string {
  const { configVersion, overlap } = findings.config;
  const fault = describeFault(enclave, findings);
  if (fault !== undefined || enclave.configVersion === configVersion) return fault ?? 'accepted';
  return `accepted until ${formatTime(overlap?.untilMs)}`;
}

/**
 * Formats a line for each key that answered and for each enclave that did not: URL, key, age or state of the
 * registration, and whether contracts accept the enclave.
 */
function formatLines(findings: Findings): string[] {
  const { enclaves, urls, answering: answers, silent, now } = findings;
  const describeAge = (enclave: Enclave) =>
    `registered ${formatAge(now - Number(enclave.registeredAtMs))} ago`;
  const formatKey = (hex: string) => `key ${hex.slice(0, 16)}…`;
  const toAnswerRow = (answer: UrlAttestation): string[] => {
    if (!answer.trusted)
      return [answer.url, 'no trusted key', '', `${answer.code}: ${answer.reason.split('\n')[0]}`];
    const enclave = enclaves.find(({ id }) => id === answer.enclave);
    if (enclave === undefined)
      return [answer.url, formatKey(answer.publicKey), answer.registration, 'not accepted'];
    return [answer.url, formatKey(answer.publicKey), describeAge(enclave), describeState(enclave, findings)];
  };
  const answeringIds = new Set(answers.map((answer) => (answer.trusted ? answer.enclave : '')));
  const silentEnclaves = enclaves.filter(({ id }) => !answeringIds.has(id));
  const toSilentRow = (enclave: Enclave): string[] => {
    const isSilent = silent.includes(enclave.id) && urls.length > 0;
    const state = `${describeState(enclave, findings)}${isSilent ? ', but it did not answer' : ''}`;
    return ['-', formatKey(toHex(enclave.publicKey)), describeAge(enclave), state];
  };
  return alignColumns([...answers.map(toAnswerRow), ...silentEnclaves.map(toSilentRow)]);
}

function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const widths = [0, 1, 2].map((column) => Math.max(0, ...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    `  ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')}`.trimEnd(),
  );
}

export const main = suiCommand({
  name: 'status',
  purpose: `Prints, for each enclave that answers at the URLs, whether contracts accept it, and then the other enclaves that are
registered under the config. It requests the attestation several times at each URL, since a proxy may forward to several
enclaves. Without URLs, it uses those in the deployment file. The exit code is 1 if a key that answered is not
registered or not accepted, or if no answer can be trusted.`,
  example: 'https://weather.example --network testnet',
  ids: ['configId'],
  arguments: { urls: { label: 'enclave_url', schema: enclaveUrl, repeated: true, optional: true } },
  isReader: true,
  options: { ...ROOT_OPTION, verbose: { help: 'print everything about the config and its enclaves' } },
  async run(invocation, chain) {
    const urls = listUrls(invocation);
    const roots = await readRoots(chain, invocation.options.root);
    const config = await readConfig(chain.client, invocation.ids.configId);
    const { enclaves, destroyed } = await listEnclaves(chain.client, config);
    const now = Date.now();
    const accepted = enclaves.filter(
      (enclave) => !config.isRetired && !isStale(enclave, config, now) && !isKeyTooOld(enclave, config, now),
    );
    const images = acceptedImages(config, now);
    const expected = { images, roots, configId: config.id, deployments: invocation.deployments };
    const answers = await attestUrls(urls, config, accepted, chain, expected);
    const answered = new Set(answers.map((answer) => (answer.trusted ? answer.enclave : answer.url)));
    const silent = accepted.filter(({ id }) => !answered.has(id)).map(({ id }) => id);
    const findings = { config, enclaves, accepted, urls, answering: answers, silent, now };
    const { image, overlap, ...configFields } = config;
    return {
      status: 'done',
      title: `The config ${JSON.stringify(config.name)} at version ${config.configVersion}${describeOverlap({ config, now })}${config.isOpen ? ', open' : ''}${config.isRetired ? ', retired' : ''}`,
      fields: {
        config: {
          ...configFields,
          ...image,
          overlap: overlap && { until: new Date(Number(overlap.untilMs)), ...overlap.image },
        },
        enclaves: enclaves.map((enclave) => ({
          id: enclave.id,
          publicKey: toHex(enclave.publicKey),
          configVersion: enclave.configVersion,
          registeredAt: new Date(Number(enclave.registeredAtMs)),
          age: formatAge(now - Number(enclave.registeredAtMs)),
          stale: isStale(enclave, config, now),
          keyTooOld: isKeyTooOld(enclave, config, now),
        })),
        destroyed,
        ...(urls.length > 0 && { answering: answers, silent }),
      },
      summary: [describeVerdict(findings), ...formatLines(findings)].join('\n'),
      isWhole: invocation.options.verbose,
      alarm: answers.some((answer) => !isAccepted(answer, findings)),
    };
  },
});

if (import.meta.main) await runAsProcess(main);
