/** What the report of Move's test runner says of a run: how it failed, or the notes that it gives back in abort codes. */
import { MoveAbort } from '../call.ts';
import { CommandFailure, Refusal } from '../failures.ts';
import type { Files } from './sources.ts';

const RUN = 'model_run::run';
/** As many as fit beside the bits that mark an abort of an `#[error]` constant. */
const CHUNK_BYTES = 7;

export interface Context {
  readonly files: Files;
  commandAt(line: number): number | undefined;
  /** The id of the package of a module. */
  packageOf(module: string): string;
}

/**
 * @returns the length of the notes, and their bytes as far as the run gave them back
 * @throws MoveAbort or CommandFailure, with the command; Refusal INTERNAL for a report that it can't read
 */
export function readReport(report: string, context: Context): { length: number; bytes: Uint8Array } {
  const tests = report.split(/┌── t(\d+) ─+/);
  const chunks = new Map<number, bigint>();
  for (let at = 1; at + 1 < tests.length; at += 2) {
    const text = tests[at + 1] ?? '';
    const [, code] = new RegExp(`aborted with code (\\d+) originating in the module ${RUN}`).exec(text) ?? [];
    if (code === undefined) throw failureOf(text, context);
    chunks.set(Number(tests[at]), BigInt(code));
  }
  const length = chunks.get(0);
  if (length === undefined) throw new Refusal('INTERNAL', `the Move VM did not run:\n${report}`);
  const bytes = Buffer.alloc((chunks.size - 1) * CHUNK_BYTES);
  for (let chunk = 1; chunk < chunks.size; chunk += 1) {
    const value = Buffer.alloc(8);
    value.writeBigUInt64LE(chunks.get(chunk) ?? 0n);
    value.copy(bytes, (chunk - 1) * CHUNK_BYTES, 0, CHUNK_BYTES);
  }
  return { length: Number(length), bytes: bytes.subarray(0, Number(length)) };
}

/** How many pieces give back so many bytes. */
export function chunksOf(length: number): number {
  return 1 + Math.ceil(length / CHUNK_BYTES);
}

/** A failure of a transaction, at a command. */
export class FailedCommand extends Error {
  readonly command: number;
  override readonly cause: unknown;

  constructor(command: number, cause: unknown) {
    super();
    this.command = command;
    this.cause = cause;
  }
}

function failureOf(text: string, context: Context): Error {
  // Outside of a call, nothing is on the stack but the test.
  const [, line] =
    /run::run\(tests\/run\.move:(\d+)\)/.exec(text) ?? /┌─ tests\/run\.move:(\d+)/.exec(text) ?? [];
  const command = context.commandAt(Number(line));
  if (command === undefined) return new Refusal('INTERNAL', `the Move VM did not run:\n${text}`);
  return new FailedCommand(command, causeOf(text, command, context));
}

function causeOf(text: string, command: number, context: Context): Error {
  const [, how = '', module = ''] =
    /Test was not expected to error, but it (.*?) originating in the module (\S+)/.exec(text) ?? [];
  const name = module.split('::').at(-1) ?? '';
  const location = {
    package: context.packageOf(module),
    module: name,
    functionName: functionOf(text, context.files),
  };
  const [, constant] = /^aborted with error constant '(\w+)'/.exec(how) ?? [];
  if (constant !== undefined)
    return new MoveAbort(location, constant, constantOf(constant, name, context.files));
  const [, code] = /^aborted with code (\d+)/.exec(how) ?? [];
  if (module === 'sui::dynamic_field' && code === '1000') {
    return new CommandFailure(command, 'INSUFFICIENT_GAS', 'InsufficientGas');
  }
  if (code !== undefined && module === 'sui::package' && Number(code) >= 100) {
    const kind = code === '100' ? 'PackageIDDoesNotMatch' : 'DigestDoesNotMatch';
    return new CommandFailure(
      command,
      'PACKAGE_UPGRADE_ERROR',
      `PackageUpgradeError { upgrade_error: ${kind} }`,
    );
  }
  // An assertion without a code aborts with its line.
  if (how.startsWith('aborted')) return new MoveAbort(location, code === undefined ? 0 : Number(code));
  if (/arithmetic|vector|cast/.test(how)) {
    return new CommandFailure(
      command,
      'MOVE_PRIMITIVE_RUNTIME_ERROR',
      `MovePrimitiveRuntimeError in ${name}::${location.functionName}: it ${how}`,
    );
  }
  return new Refusal('INTERNAL', `the Move VM did not run:\n${text}`);
}

/** The function whose line the report points at. */
function functionOf(text: string, files: Files): string {
  const [, path = '', line = '1', column = '1'] = /┌─ (\S+):(\d+):(\d+)/.exec(text) ?? [];
  const lines = (files[path] ?? '').split('\n').slice(0, Number(line));
  const last = (lines.pop() ?? '').slice(0, Number(column));
  return [...[...lines, last].join('\n').matchAll(/\bfun\s+(\w+)/g)].at(-1)?.[1] ?? '';
}

/** The code and the text of an `#[error]` constant, from its declaration. */
function constantOf(constant: string, module: string, files: Files): { code?: number; text?: string } {
  const source = Object.values(files).find((text) =>
    new RegExp(`\\bmodule\\s+\\w+::${module}\\b`).test(text),
  );
  const declared = new RegExp(
    `#\\[error(?:\\(\\s*code\\s*=\\s*(\\d+)\\s*\\))?\\]\\s*const\\s+${constant}\\s*:\\s*vector<u8>\\s*=\\s*b"((?:[^"\\\\]|\\\\.)*)"`,
  ).exec(source ?? '');
  const [, code, text] = declared ?? [];
  return { ...(code !== undefined && { code: Number(code) }), ...(text !== undefined && { text }) };
}
