/**
 * Allows one rollout of a config at a time on a machine. The lock is a file that names its process. It
 * outlasts a process that is killed, so the next rollout checks whether the process still runs.
 */
import { randomUUID } from 'node:crypto';
import { linkSync, readlinkSync, rmSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { replaceFileDurably } from 'sui-enclave-service/replace_file';
import * as v from 'valibot';
import { readBootId, readKernelFile } from '../kernel_files.ts';
import { readRegularFile } from '../read_file.ts';
import { RolloutError } from './errors.ts';

const text = v.pipe(v.string(), v.regex(/^[\x21-\x7e]{1,100}$/));

const Holder = v.strictObject({
  pid: v.pipe(v.number(), v.safeInteger(), v.minValue(1)),
  /** The boot of the kernel under which the process runs. */
  boot: v.optional(text),
  /** Time at which the process started, in ticks since the boot: a later process may have the same id. */
  started: v.optional(text),
  /** The namespace in which the process has its id: each container has its own. */
  namespace: v.optional(text),
});

/** The process that holds a lock. */
type Holder = v.InferOutput<typeof Holder>;

/** A lock of this process. */
export interface Lock {
  /** Id of the process that had ended without a release; undefined if the lock was free. */
  readonly takenFrom: number | undefined;
  /** Frees the lock for other processes. */
  release(): void;
}

/**
 * Takes the lock, also from a process that no longer runs, or that ran before the machine's last start.
 *
 * @param path the path of the lock
 * @throws RolloutError: ROLLOUT_RUNNING
 */
export function takeLock(path: string): Lock {
  const self = describeProcess(process.pid);
  let takenFrom: number | undefined;
  while (!create(path, self)) {
    const holder = read(path);
    if (holder === undefined) continue;
    checkEnded(path, holder, self);
    takenFrom = holder.pid;
    removeEnded(path, self);
  }
  return {
    takenFrom,
    release() {
      if (isDeepStrictEqual(read(path), self)) rmSync(path, { force: true });
    },
  };
}

/**
 * Removes the lock of a process that has ended. A second lock guards the removal: if two processes have seen
 * the same ended process, the slower of them must not remove the lock that the faster has already taken.
 */
function removeEnded(path: string, self: Holder): void {
  const guard = takeLock(`${path}.takeover`);
  try {
    const holder = read(path);
    if (holder === undefined) return;
    checkEnded(path, holder, self);
    rmSync(path, { force: true });
  } finally {
    guard.release();
  }
}

/** Creates the lock with its content in one step. Returns false if it exists. */
function create(path: string, self: Holder): boolean {
  const temporaryPath = `${path}.${randomUUID()}`;
  try {
    replaceFileDurably(temporaryPath, `${JSON.stringify(self)}\n`, 0o644);
    linkSync(temporaryPath, path);
    return true;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    throw new RolloutError('ROLLOUT_RUNNING', `the lock ${path} can't be made: ${code}`, { cause });
  } finally {
    rmSync(temporaryPath, { force: true });
  }
}

function read(path: string): Holder | undefined {
  let content: string;
  try {
    content = readRegularFile(path).toString();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new RolloutError('ROLLOUT_RUNNING', `the lock ${path} can't be read: ${code}`, { cause });
  }
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Holder), content);
  if (parsed.success) return parsed.output;
  throw new RolloutError(
    'ROLLOUT_RUNNING',
    `${path} is not a lock that a rollout wrote: make sure that no rollout of this config runs, and remove the file`,
  );
}

/** @throws RolloutError: ROLLOUT_RUNNING if the process of the lock runs, or may run */
function checkEnded(path: string, holder: Holder, self: Holder): void {
  const { pid, boot, started, namespace } = holder;
  if (boot !== undefined && self.boot !== undefined && boot !== self.boot) return;
  if (namespace !== self.namespace) {
    throw new RolloutError(
      'ROLLOUT_RUNNING',
      `process ${pid} of another container of this machine holds ${path}: wait until it has ended, or, if it was killed, remove the file`,
    );
  }
  if (!isRunning(pid, started)) return;
  throw new RolloutError(
    'ROLLOUT_RUNNING',
    `process ${pid} runs a rollout of this config, and holds ${path}: wait until it has ended, or stop it and run the command again`,
  );
}

function describeProcess(pid: number): Holder {
  const boot = readBootId();
  const started = readStatus(pid)?.started;
  const namespace = readNamespace();
  return { pid, ...(boot && { boot }), ...(started && { started }), ...(namespace && { namespace }) };
}

function isRunning(pid: number, started: string | undefined): boolean {
  const status = readStatus(pid);
  // A zombie has ended, and waits until its parent asks for its exit code.
  if (status !== undefined && (status.state === 'Z' || status.started !== started)) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM means that the process runs as another user.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

/** Returns fields of Linux' proc_pid_stat(5), or undefined. */
function readStatus(pid: number): { readonly state: string; readonly started: string } | undefined {
  const status = readKernelFile(`/proc/${pid}/stat`);
  // The second field, the name, may contain spaces and parentheses.
  const fields = status?.slice(status.lastIndexOf(')') + 2).split(' ');
  const [state, started] = [fields?.[0], fields?.[19]];
  return state === undefined || started === undefined ? undefined : { state, started };
}

function readNamespace(): string | undefined {
  try {
    return readlinkSync('/proc/self/ns/pid');
  } catch {
    return undefined;
  }
}
