/** Tasks that `apart.test.ts` runs in processes of their own. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { UsageError } from '../../../../src/cli/command.ts';
import type { Ask } from '../../../../src/toolchain/audit/apart.ts';
import { AuditError } from '../../../../src/toolchain/audit/errors.ts';

export const echo = async (order: unknown) => order;

export async function environment(): Promise<string[]> {
  return Object.keys(process.env);
}

export const refuse = async (message: unknown) => {
  throw new AuditError('SOURCE_INVALID', String(message));
};

export const refuseOtherwise = async () => {
  throw new UsageError('no such thing');
};

export const fail = async (message: unknown) => {
  throw new TypeError(String(message));
};

export async function loop(): Promise<void> {
  for (;;);
}

/** Waits for ever, without working. */
export const wait = () => new Promise<void>((resolve) => void setTimeout(resolve, 1e9));

export async function fill(): Promise<number> {
  const all: string[][] = [];
  for (;;) all.push(Array.from({ length: 1e6 }, (_, at) => `${at}`));
}

export async function grow(): Promise<number> {
  return new WebAssembly.Memory({ initial: 1 }).grow(2000);
}

export async function recur(depth: unknown): Promise<number> {
  const next = (at: number): number => 1 + next(at + 1);
  return next(Number(depth));
}

export const write = async (path: unknown) => writeFileSync(String(path), 'x');

export const run = async (path: unknown) => void execFileSync('touch', [String(path)]);

export async function print(text: unknown): Promise<string> {
  process.stdout.write(`${text}\n`);
  process.stderr.write(`${text}\n`);
  process.emitWarning(String(text));
  await new Promise(setImmediate);
  return 'printed';
}

export async function sum(order: unknown, ask: Ask): Promise<number> {
  const parts = await Promise.all((order as number[]).map(async (part) => Number(await ask(part))));
  return parts.reduce((all, part) => all + part, 0);
}
