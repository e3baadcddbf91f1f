/**
 * The text format of OpenMetrics 1.0 (openmetrics.io), for a few figures whose names and labels are
 * constants.
 */

export interface Family {
  /** Name without `_total`, the suffix of the samples of a counter. */
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  /** Values by the suffix of the name, such as `_total{outcome="failed"}`. */
  readonly samples: Readonly<Record<string, number>>;
}

export const OPEN_METRICS_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

export function openMetrics(families: readonly Family[]): string {
  const lines = families.flatMap(({ name, type, help, samples }) => [
    `# TYPE ${name} ${type}`,
    `# HELP ${name} ${help}`,
    ...Object.entries(samples).map(([suffix, value]) => `${name}${suffix} ${value}`),
  ]);
  return [...lines, '# EOF', ''].join('\n');
}

export function counter(name: string, help: string, value: number): Family {
  return { name, type: 'counter', help, samples: { _total: value } };
}

export function gauge(name: string, help: string, value: number): Family {
  return { name, type: 'gauge', help, samples: { '': value } };
}

/** A counter for each of a few fixed words. */
export class CountsBy<Word extends string> {
  readonly #label: string;
  readonly #counts: Record<Word, number>;

  constructor(label: string, words: readonly Word[]) {
    this.#label = label;
    this.#counts = Object.fromEntries(words.map((word) => [word, 0])) as Record<Word, number>;
  }

  /** Ignores a word that is not among the fixed ones. */
  add(word: Word | (string & {}) | undefined): void {
    if (word !== undefined && Object.hasOwn(this.#counts, word)) this.#counts[word as Word] += 1;
  }

  family(name: string, help: string): Family {
    const counts = Object.entries<number>(this.#counts);
    const samples = counts.map(([word, count]) => [`_total{${this.#label}="${word}"}`, count]);
    return { name, type: 'counter', help, samples: Object.fromEntries(samples) };
  }
}

/** Counts durations by upper bounds. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  /** @param bounds upper bounds in seconds, ascending */
  constructor(bounds: readonly number[]) {
    this.#bounds = [...bounds, Number.POSITIVE_INFINITY];
    this.#counts = this.#bounds.map(() => 0);
  }

  add(seconds: number): void {
    this.#sum += seconds;
    for (const [at, bound] of this.#bounds.entries()) {
      if (seconds <= bound) this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    }
  }

  family(name: string, help: string): Family {
    const samples = this.#bounds.map((bound, at): [string, number] => [
      `_bucket{le="${bound === Number.POSITIVE_INFINITY ? '+Inf' : Number.isInteger(bound) ? bound.toFixed(1) : bound}"}`,
      this.#counts[at] ?? 0,
    ]);
    const count = this.#counts.at(-1) ?? 0;
    const sum = Math.round(this.#sum * 10_000) / 10_000;
    return {
      name,
      type: 'histogram',
      help,
      samples: { ...Object.fromEntries(samples), _sum: sum, _count: count },
    };
  }
}
