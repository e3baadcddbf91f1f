/** Formats the findings of an audit as a line and a table of the comparisons. */
import type { Result } from 'sui-enclave-cli/command';
import { EXIT } from 'sui-enclave-cli/command';
import { boundLines } from 'sui-enclave-cli/printable';
import { type ComparedPackage, describeSource, describeVersion } from './bytecode.ts';
import { type AuditCode, AuditError, DEVELOPMENT_ONLY, NOT_FULLY_CHECKED } from './errors.ts';
import type { Holder } from './people.ts';

/** Limits of the text about one comparison, for example a list of files in which two images differ. */
const MAX_DETAIL = { lines: 100, characters: 1000 };

/** A comparison and its result. */
export interface Check {
  readonly what: string;
  /** Name of the value that the subject is compared with. */
  readonly against: string;
  readonly result: 'same' | 'differs' | 'not checked';
  readonly code: AuditCode | null;
  /** Details; null without any. */
  readonly detail: string | null;
}

/** Collects the comparisons of an audit. */
export class Checks {
  readonly all: Check[] = [];
  /** Notes for the auditor, a sentence each. No verdict depends on them. */
  readonly notes: string[] = [];

  note(text: string): void {
    this.notes.push(text);
  }

  same(subject: string, against: string, detail: string | null = null): void {
    this.#add({ what: subject, against, result: 'same', code: null, detail });
  }

  fault(subject: string, against: string, { code, exit, message }: AuditError): void {
    const outcome = exit === EXIT.failed ? 'differs' : 'not checked';
    this.#add({ what: subject, against, result: outcome, code, detail: message });
  }

  #add({ detail, ...check }: Check): void {
    this.all.push({ ...check, detail: detail === null ? null : boundLines(detail, MAX_DETAIL) });
  }

  notChecked(subject: string, against: string, why: string): void {
    this.fault(subject, against, new AuditError('NOT_FULLY_CHECKED', why));
  }

  /**
   * Runs a comparison, and records its result.
   *
   * @returns the action's result; undefined if it found a difference or could not compare
   */
  async compare<T>(subject: string, against: string, action: () => Promise<T> | T): Promise<T | undefined> {
    try {
      return await action();
    } catch (error) {
      if (!(error instanceof AuditError) || error.exit === EXIT.notTried) throw error;
      this.fault(subject, against, error);
      return undefined;
    }
  }
}

export interface Findings {
  readonly checks: readonly Check[];
  /** Summary of everything that agrees, for the first line of an audit without differences. */
  readonly summary: string;
  readonly notes: readonly string[];
  /** Older versions of packages that contracts can still run. */
  readonly callable: readonly ComparedPackage[];
  readonly config: object;
  /** Other configs of the application; null if they are not known. */
  readonly otherConfigs: readonly object[] | null;
  /** Whether the config's image is the only one that contracts accept for the application. */
  readonly isOnlyImage: boolean;
  readonly source: object | null;
  readonly holders: readonly Holder[];
  /** Statements about the signer of a release; empty without a release that agrees. */
  readonly vouchers: readonly string[];
  /** Statements about the image's settings; empty if the settings are not known. */
  readonly settings: readonly string[];
}

/** Explains what agreement proves, and what it does not. */
const explainProof = (isOnlyImage: boolean) => [
  `Agreement proves that these sources, with this framework, gave the image ${isOnlyImage ? 'that contracts accept' : 'of this config'}, and that the enclaves run it.`,
  'It does not prove that the sources are harmless or right, that the upstreams tell the truth, or that nothing changes tomorrow: read the sources, and see above who could change what.',
  'It relies on the Sui node, which could leave things out of its lists, on the digests of Debian and npm, on AWS, and on this program.',
];

export function createResult(findings: Findings): Result {
  const { checks, summary, notes, callable, config, otherConfigs, source, holders, vouchers, settings } =
    findings;
  const explanation = explainProof(findings.isOnlyImage);
  const difference = checks.find((check) => check.result === 'differs');
  const unchecked = checks.filter((check) => check.result === 'not checked');
  const isDevelopment =
    unchecked.length > 0 && unchecked.every((check) => check.code === 'DEVELOPMENT_IMAGE');
  const { verdict, code, exit, line } =
    difference !== undefined
      ? {
          verdict: 'differs',
          code: difference.code,
          exit: EXIT.failed,
          line: `DIFFERS (${difference.code}): ${firstLine(difference.detail)}`,
        }
      : isDevelopment
        ? {
            verdict: 'development image',
            code: 'DEVELOPMENT_IMAGE',
            exit: DEVELOPMENT_ONLY,
            line: `DEVELOPMENT_IMAGE: no verdict on an image. Nothing differs, but this is ${firstLine(unchecked[0]?.detail ?? null)}`,
          }
        : unchecked.length > 0
          ? {
              verdict: 'not fully checked',
              code: 'NOT_FULLY_CHECKED',
              exit: NOT_FULLY_CHECKED,
              line: `NOT_FULLY_CHECKED: nothing differs, but this was not checked: ${formatList(unchecked)}`,
            }
          : {
              verdict: 'agrees',
              code: null,
              exit: EXIT.done,
              line: `AGREES: ${summary}${describeOlder(callable)}`,
            };
  const older = callable.map(
    (comparedPackage) =>
      `${describeVersion(comparedPackage)}, ${comparedPackage.id}: ${describeSource(comparedPackage)}`,
  );
  const lists = [
    ['Older versions that can still be called (read them like the latest one):', older],
    ['Who could change what:', holders.map(formatLine)],
    ['Who vouches for it:', vouchers],
    ['By its settings:', settings],
    ['What this proves:', explanation],
  ] as const;
  const text = [
    line,
    '',
    ...notes.flatMap((note) => [note, '']),
    ...checks.flatMap(toRow),
    ...lists.flatMap(([title, lines]) =>
      lines.length === 0 ? [] : ['', title, ...lines.map((listLine) => `  ${listLine}`)],
    ),
  ];
  const json = {
    verdict,
    code,
    line,
    config,
    otherConfigs,
    source,
    checks,
    notes,
    older,
    holders,
    vouchers,
    settings,
    proves: explanation,
  };
  return { exit, json, text: text.join('\n') };
}

/** Warns that older versions may be harmful even if they agree. */
function describeOlder(callable: readonly ComparedPackage[]): string {
  const sources = [...new Set(callable.flatMap(({ source }) => source ?? []))];
  return sources.length === 0
    ? ''
    : `. Older versions of packages can still be called, from ${sources.join(', ')}`;
}

const firstLine = (text: string | null) => (text ?? '').split('\n')[0] ?? '';

function formatList(unchecked: readonly Check[]): string {
  return unchecked.map(({ what: subject, detail }) => `${subject} (${firstLine(detail)})`).join('; ');
}

const MARKS = { same: 'same       ', differs: 'DIFFERS    ', 'not checked': 'NOT CHECKED' };

function toRow({ what: subject, against, result: outcome, code, detail }: Check): string[] {
  const suffix = code === null || outcome !== 'differs' ? '' : ` (${code})`;
  const lines = detail === null ? [] : detail.split('\n').map((line) => `               ${line}`);
  return [`  ${MARKS[outcome]}  ${subject}, against ${against}${suffix}`, ...lines];
}

function formatLine({ what: capability, could, id, holder }: Holder): string {
  return `${capability}${id === null ? '' : ` ${id}`} (${could}): ${holder}`;
}
