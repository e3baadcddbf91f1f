/** Says why nothing is tested, where that is so: a skipped test alone would be silent. */
import { whyNot } from './machine.ts';

export function setup(): void {
  const reason = whyNot();
  if (reason !== undefined) process.stdout.write(`Skipped: make test-units (${reason})\n`);
}
