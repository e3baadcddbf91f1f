/** Prints why the units can't be tested here. A skipped test does not print its reason. */
import { findObstacle } from './machine.ts';

export function setup(): void {
  const reason = findObstacle();
  if (reason !== undefined) process.stdout.write(`Skipped: make test-units (${reason})\n`);
}
