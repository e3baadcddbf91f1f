/** Findings of the soak: rows of its table. */

/**
 * Verdict on a finding. Only `failed` ends the soak with exit code 1; a figure that a busy machine misses is
 * `missed`.
 */
export type Verdict = 'held' | 'missed' | 'failed' | 'not tried';

export interface Finding {
  readonly name: string;
  readonly measured: string;
  readonly expected: string;
  readonly verdict: Verdict;
}

/**
 * Collects findings. A new finding replaces the earlier one of the same name, unless the earlier one has
 * failed.
 */
export class Findings {
  readonly #rows = new Map<string, Finding>();

  add(name: string, isHeld: boolean, measured: string, expected: string): void {
    this.#put({ name, measured, expected, verdict: isHeld ? 'held' : 'failed' });
  }

  /** Adds a figure that a busy machine may miss. */
  addFigure(name: string, isHeld: boolean, measured: string, expected: string): void {
    this.#put({ name, measured, expected, verdict: isHeld ? 'held' : 'missed' });
  }

  addUntried(name: string, reason: string): void {
    if (!this.#rows.has(name)) this.#put({ name, measured: reason, expected: '', verdict: 'not tried' });
  }

  #put(finding: Finding): void {
    if (this.#rows.get(finding.name)?.verdict !== 'failed') this.#rows.set(finding.name, finding);
  }

  get rows(): Finding[] {
    return [...this.#rows.values()];
  }

  get hasFailed(): boolean {
    return this.rows.some(({ verdict }) => verdict === 'failed');
  }
}

export function formatFindings(rows: readonly Finding[]): string {
  const cells = rows.map(({ verdict, name, measured, expected }) => [verdict, name, measured, expected]);
  const widths = [0, 1].map((column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map(([verdict = '', name = '', measured = '', expected = '']) => {
      const head = `${verdict.padEnd(widths[0] ?? 0)}  ${name.padEnd(widths[1] ?? 0)}`;
      return `${head}  ${measured}${expected === '' ? '' : `  (expected: ${expected})`}`;
    })
    .join('\n');
}
