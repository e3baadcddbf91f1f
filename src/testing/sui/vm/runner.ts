/**
 * The compiler and the VM in a thread of their own: a call that never ends ends with its thread.
 *
 * This module is the thread's too.
 */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { dumpMovePackage, initMovePackageBuilder, testMovePackage } from '@zktx.io/sui-move-builder/full';
import type { Files } from './sources.ts';

const ROLE = 'sui-enclave Move VM';
/** For a transaction, with the compilation of its packages. */
const LIMIT_MS = 30_000;

interface Job {
  readonly task: 'compile' | 'test';
  readonly files: Files;
}

type Answer =
  | { readonly output: string }
  | { readonly modules: readonly string[] }
  | { readonly error: string };

/** What a job asked for did not end in time. */
export class TimeLimit extends Error {}

/** The compiler refuses the sources, with what it says. */
export class CompilerError extends Error {}

export class Runner {
  /** Of a job, in milliseconds. */
  limitMs = LIMIT_MS;
  #worker: Worker | undefined;
  #last: Promise<unknown> = Promise.resolve();

  /** @returns the modules, dependencies first @throws CompilerError */
  async compile(files: Files): Promise<Uint8Array[]> {
    const answer = await this.#inTurn({ task: 'compile', files });
    if ('modules' in answer) return answer.modules.map((module) => Buffer.from(module, 'base64'));
    throw new CompilerError('error' in answer ? answer.error : '');
  }

  /** Runs unit tests. @returns the report @throws CompilerError, TimeLimit */
  async test(files: Files): Promise<string> {
    const answer = await this.#inTurn({ task: 'test', files });
    if ('output' in answer) return answer.output;
    // It may have panicked, after which nothing in its memory can be relied on.
    this.close();
    throw new CompilerError('error' in answer ? answer.error : '');
  }

  close(): void {
    void this.#worker?.terminate();
    this.#worker = undefined;
  }

  #inTurn(job: Job): Promise<Answer> {
    const turn = this.#last.then(() => this.#run(job));
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #run(job: Job): Promise<Answer> {
    this.#worker ??= new Worker(new URL(import.meta.url), { workerData: ROLE, stderr: true });
    const worker = this.#worker;
    worker.ref();
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const timer = setTimeout(() => reject(new TimeLimit()), this.limitMs);
    const onExit = () => reject(new Error('the thread of the Move VM ended'));
    worker.once('message', resolve).once('error', reject).once('exit', onExit);
    worker.postMessage(job);
    try {
      return await promise;
    } catch (error) {
      this.close();
      throw error;
    } finally {
      clearTimeout(timer);
      worker.off('message', resolve).off('error', reject).off('exit', onExit);
      worker.unref();
    }
  }
}

async function answer({ task, files }: Job): Promise<Answer> {
  await initMovePackageBuilder();
  const input = { files, network: 'testnet', ansiColor: false, silenceWarnings: true } as const;
  if (task === 'compile') {
    const result = await dumpMovePackage(input);
    return 'error' in result ? result : { modules: result.modules };
  }
  const result = await testMovePackage(input);
  return 'error' in result ? result : { output: result.output };
}

if (!isMainThread && workerData === ROLE) {
  parentPort?.on('message', async (job: Job) => parentPort?.postMessage(await answer(job)));
}
