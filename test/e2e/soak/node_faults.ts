/** Tries faults of a Sui node, while a keeper registers an enclave that is restarted. */
import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { findFreePort } from '../../../scripts/check/bench/ports.ts';
import type { Fault } from '../../../src/devnet/node.ts';
import { loadApplication } from '../../../src/server/application/load_application.ts';
import { boot, type RunningServer } from '../../../src/server/boot.ts';
import { readServerConfig } from '../../../src/server/config.ts';
import { createLog } from '../../../src/service/log.ts';
import { KeeperFixture } from '../../src/cli/keeper/keeper_fixture.ts';
import { ask } from './answers.ts';
import type { Findings } from './finding.ts';

const SCRIPT = fileURLToPath(new URL('../../../src/cli/keeper/keep.ts', import.meta.url));
const APPS = new URL('../../../src/apps/', import.meta.url);
/** Shortest and longest pause between the keeper's rounds, in seconds. */
const INTERVAL = 1;
const MAX_PAUSE = 2;
/** Time limit of a call to the node, in milliseconds: TIMEOUT_MS of src/cli/sui/network.ts. */
const CALL_MS = 30_000;
/** Time limit for a round of the keeper on a busy machine, in milliseconds. */
const ROUND_MS = 30_000;

const FAULTS: readonly (readonly [string, Fault])[] = [
  ['is dead', 'reset'],
  ['lies', 'garbage'],
];

export class NodeFaults {
  readonly #keeper: ChildProcess;
  readonly #fixture: KeeperFixture;
  readonly #metricsUrl: string;
  readonly #port: number;
  readonly #log = createLog('silent');
  #enclave: RunningServer | undefined;

  private constructor(fixture: KeeperFixture, keeper: ChildProcess, metricsUrl: string, port: number) {
    this.#fixture = fixture;
    this.#keeper = keeper;
    this.#metricsUrl = metricsUrl;
    this.#port = port;
  }

  static async start(): Promise<NodeFaults> {
    const fixture = await KeeperFixture.start();
    const [port, metricsPort] = [await findFreePort(), await findFreePort()];
    const path = fixture.write({
      ...fixture.content([`http://127.0.0.1:${port}`]),
      interval: INTERVAL,
      max_pause: MAX_PAUSE,
      gas_a_day: 1_000_000_000_000,
      metrics_port: metricsPort,
    });
    fixture.chain.node.ledger.give(fixture.operator.key.toSuiAddress(), 1_000_000_000_000n);
    const { PATH = '', HOME = '' } = process.env;
    const env = { PATH, HOME, SUI_PRIVATE_KEY: fixture.operator.key.getSecretKey() };
    const keeper = spawn(process.execPath, [SCRIPT, path], { env, stdio: 'ignore' });
    const faults = new NodeFaults(fixture, keeper, `http://127.0.0.1:${metricsPort}/metrics`, port);
    await faults.#restartEnclave();
    await faults.#until(async () => (await faults.#read('registered_total')) === 1, 20_000);
    return faults;
  }

  /**
   * Tries each fault.
   *
   * @param hasTime whether the run has time for a node that hangs: the keeper waits 30 s
   */
  async tryFaults(findings: Findings, hasTime: boolean): Promise<void> {
    for (const [name, fault] of FAULTS) await this.#tryFault(findings, `node ${name}`, fault, ROUND_MS);
    if (hasTime) await this.#tryFault(findings, 'node hangs', 'hang', CALL_MS + ROUND_MS);
    else findings.addUntried('node hangs', 'needs SECONDS=120: the keeper waits 30 s for an answer');
  }

  async #tryFault(findings: Findings, name: string, fault: Fault, limitMs: number): Promise<void> {
    const { faults } = this.#fixture.chain.node;
    const registeredBefore = await this.#read('registered_total');
    faults.set('BatchGetObjects', fault);
    const isNoticed = await this.#until(
      async () => (await this.#read('alerts{code="CONFIG_UNREADABLE"}')) === 1,
      limitMs,
    );
    findings.add(`${name}: the keeper reports it`, isNoticed, `CONFIG_UNREADABLE: ${isNoticed}`, 'true');
    await this.#restartEnclave();
    const failedRounds = await this.#read('failed_rounds_total');
    faults.clear();
    const isRegistered = await this.#until(
      async () => (await this.#read('registered_total')) === registeredBefore + 1,
      limitMs,
    );
    // A round may have begun before the end of the fault; the next one must succeed.
    const failures = (await this.#read('failed_rounds_total')) - failedRounds;
    findings.add(
      `${name}: the first round after the fault`,
      isRegistered && failures <= 1,
      `registered: ${isRegistered}, failed rounds: ${failures}`,
      'registered; only a round that had begun may fail',
    );
  }

  /** Whether the keeper has ended. */
  get isEnded(): boolean {
    return this.#keeper.exitCode !== null || this.#keeper.signalCode !== null;
  }

  async close(): Promise<void> {
    this.#keeper.kill('SIGKILL');
    await this.#enclave?.close();
    this.#fixture.close();
  }

  /** Starts an enclave with a new key at the same port. */
  async #restartEnclave(): Promise<void> {
    await this.#enclave?.close();
    const env = { APP: 'weather', PORT: String(this.#port), API_KEY: 'none', SHUTDOWN_GRACE_MS: '0' };
    const config = readServerConfig(env);
    const application = await loadApplication(APPS, config.app);
    const { nsm } = this.#fixture.chain;
    this.#enclave = await boot({ config, env, log: this.#log, nsm, ...application });
  }

  /** Returns the value of one of the keeper's metrics, or 0 while the keeper does not listen yet. */
  async #read(name: string): Promise<number> {
    const text = await ask(this.#metricsUrl).then(
      (answer) => answer.text,
      () => '',
    );
    const line = text.split('\n').find((row) => row.startsWith(`sui_enclave_keeper_${name} `));
    return Number(line?.split(' ').at(-1) ?? 0);
  }

  /** Returns whether the condition becomes true within the time limit. */
  async #until(condition: () => Promise<boolean>, limitMs: number): Promise<boolean> {
    for (const end = performance.now() + limitMs; performance.now() < end; await sleep(100)) {
      if (await condition()) return true;
    }
    return false;
  }
}
