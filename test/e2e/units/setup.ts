/** Prints why the units can't be tested here. A skipped test alone would print no reason. */
import { whyNot } from './machine.ts';

export function setup(): void {
  const reason = whyNot();
  if (reason !== undefined) process.stdout.write(`Skipped: make test-units (${reason})\n`);
}
