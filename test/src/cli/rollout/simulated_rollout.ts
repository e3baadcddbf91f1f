/** A fleet, its callers and its config in memory. The rollout can be stopped before and after each effect. */
import type { Memory } from '../../../../src/cli/rollout/memory.ts';
import type { CommandName, Plan, SideName } from '../../../../src/cli/rollout/plan.ts';
import type { KeyState, LookOutcome, World } from '../../../../src/cli/rollout/world.ts';
import type { Candidate } from '../../../../src/cli/sui/registration.ts';
import type { EnclaveConfig } from '../../../../src/library/sui/objects.ts';

/** Error that ends the simulated process of the rollout. */
export class Killed extends Error {}

const id = (digit: string) => `0x${digit.repeat(64)}`;
const createImage = (side: SideName) => {
  const register = (side === 'old' ? 'a' : 'b').repeat(96);
  return { pcr0: register, pcr1: register, pcr2: register };
};

const REGISTRAR_ID = id('3');

export const PLAN: Plan = {
  folder: '/',
  network: 'localnet',
  app: undefined,
  nodes: [],
  registrarId: REGISTRAR_ID,
  root: undefined,
  old: { pcrs: '/old.pcrs', urls: ['http://old1/', 'http://old2/'] },
  new: { pcrs: '/new.pcrs', urls: ['http://new1/', 'http://new2/'] },
  balancer: undefined,
  sourceUrl: undefined,
  commands: { start: [], provision: [], switch: [], switch_back: [], stop_old: [], stop_new: [] },
  overlap: 60,
  isEndedByAdmin: true,
  drainMs: 30_000,
  settleMs: 300_000,
  startMs: 10_000,
  commandMs: 10_000,
  adminMs: 60_000,
};

/** The final state, as seen from outside. */
export interface State {
  readonly running: readonly string[];
  readonly callersReach: SideName;
  readonly allowed: SideName;
  readonly isOverlapping: boolean;
}

export class SimulatedRollout implements World, Memory {
  readonly plan: Plan;
  /** All effects so far, in order. */
  readonly effects: string[] = [];
  readonly printed: string[] = [];
  /** Failures of callers: none if every call reached an enclave that contracts accept. */
  readonly outages: string[] = [];
  /** Number of the effect at which the process is killed, and whether it is killed after the effect. */
  killAt: { readonly effect: number; readonly isAfter: boolean } | undefined;
  /** Whether the admin runs the printed commands. */
  adminActs = true;
  /** Names of the commands that have no effect. */
  readonly broken = new Set<CommandName>();
  readonly running: Set<string>;
  readonly ready: Set<string>;
  registrars = [REGISTRAR_ID];
  isOpen = false;
  steps: Memory['steps'] = {};
  newestVersion = 0n;
  /** Version of the config in the file. */
  #rememberedVersion = 0n;
  /** Returns the config that a lagging node shows in place of the present one. */
  lag: (now: EnclaveConfig) => EnclaveConfig = (now) => now;
  allowed: SideName = 'old';
  version = 0n;
  overlapUntil: number | undefined;
  callersReach: SideName = 'old';
  /** URL and config version of each registered enclave. */
  readonly registered: Set<string>;
  #now = Date.parse('2026-01-01T00:00:00Z');
  /** Time by which the wall clock is ahead, in milliseconds. */
  wallAheadMs = 0;
  #printedCommand: string | undefined;

  constructor(changes: Partial<Plan> = {}) {
    this.plan = { ...PLAN, ...changes };
    this.running = new Set(this.plan.old.urls);
    this.ready = new Set(this.plan.old.urls);
    this.registered = new Set(this.plan.old.urls.map((url) => `${url} 0`));
  }

  get state(): State {
    const { running, callersReach, allowed } = this;
    return { running: [...running].sort(), callersReach, allowed, isOverlapping: this.#isOverlapping };
  }

  get #isOverlapping(): boolean {
    return this.overlapUntil !== undefined && this.#now < this.overlapUntil;
  }

  /** Continues as the next process, which nothing kills. */
  restart(): this {
    this.killAt = undefined;
    this.#printedCommand = undefined;
    this.newestVersion = this.#rememberedVersion;
    return this;
  }

  see(configVersion: bigint): void {
    if (configVersion > this.newestVersion) this.newestVersion = configVersion;
  }

  #effect(name: string, change: () => void): void {
    const number = this.effects.length;
    this.effects.push(name);
    const isFatal = this.killAt?.effect === number;
    if (isFatal && !this.killAt?.isAfter) throw new Killed(`before ${name}`);
    change();
    const urls = this.plan[this.callersReach].urls;
    if (!urls.some((url) => this.running.has(url) && this.#isAccepted(url))) this.outages.push(name);
    if (isFatal) throw new Killed(`after ${name}`);
  }

  #isAccepted(url: string): boolean {
    const before = this.#isOverlapping && this.registered.has(`${url} ${this.version - 1n}`);
    return this.registered.has(`${url} ${this.version}`) || before;
  }

  remember(steps: Memory['steps']): void {
    this.#effect('remember', () => {
      this.steps = steps;
      this.#rememberedVersion = this.newestVersion;
    });
  }

  forget(): void {
    this.#effect('forget', () => {
      this.steps = {};
      this.#rememberedVersion = 0n;
    });
  }

  findRegisters(side: SideName) {
    return createImage(side);
  }

  findSide({ image }: EnclaveConfig): SideName {
    return image.pcr0 === createImage('new').pcr0 ? 'new' : 'old';
  }

  async config(): Promise<EnclaveConfig> {
    return this.lag(this.#config());
  }

  #config(): EnclaveConfig {
    const otherSide = this.allowed === 'old' ? 'new' : 'old';
    return {
      id: id('2'),
      name: 'weather',
      enclavePackage: id('1'),
      application: `${id('1')}::weather::WEATHER`,
      image: createImage(this.allowed),
      source: null,
      capabilityId: id('4'),
      configVersion: this.version,
      overlap:
        this.overlapUntil === undefined
          ? null
          : { image: createImage(otherSide), untilMs: BigInt(this.overlapUntil) },
      maxKeyAgeMs: null,
      registrars: this.registrars,
      isRetired: false,
      packageVersion: 1n,
      isOpen: this.isOpen,
    };
  }

  async look(url: string): Promise<LookOutcome> {
    if (!this.running.has(url)) return { url, answers: false, reason: 'refused' };
    const candidate = { url, document: new Uint8Array(), publicKey: new Uint8Array() };
    return { url, answers: true, candidate };
  }

  async isRunning(url: string, side: SideName): Promise<boolean> {
    if (url === this.plan.balancer) return this.callersReach === side;
    return this.running.has(url);
  }

  async isReady(url: string): Promise<boolean> {
    return this.ready.has(url);
  }

  async readState({ url }: Candidate): Promise<KeyState> {
    return this.#isAccepted(url) ? 'accepted' : 'free';
  }

  async register(candidates: readonly Candidate[]): Promise<void> {
    this.#effect('register', () => {
      for (const { url } of candidates) this.registered.add(`${url} ${this.version}`);
    });
  }

  async run(name: CommandName): Promise<void> {
    const { old, new: fresh } = this.plan;
    const put = (set: Set<string>, urls: readonly string[]) => {
      for (const url of urls) set.add(url);
    };
    const changes: Readonly<Record<CommandName, () => void>> = {
      start: () => put(this.running, fresh.urls),
      provision: () => put(this.ready, fresh.urls),
      switch: () => {
        this.callersReach = 'new';
      },
      switch_back: () => {
        this.callersReach = 'old';
      },
      stop_old: () => this.#stop(old.urls),
      stop_new: () => this.#stop(fresh.urls),
    };
    this.#effect(name, this.broken.has(name) ? () => {} : changes[name]);
  }

  #stop(urls: readonly string[]): void {
    for (const url of urls) this.running.delete(url);
  }

  adminCommand(name: string, ...args: readonly string[]): string {
    this.#printedCommand = name;
    return [name, ...args].join(' ');
  }

  log(line: string): void {
    this.printed.push(line);
  }

  now(): number {
    return this.#now + this.wallAheadMs;
  }

  clock(): number {
    return this.#now;
  }

  /** Lets the admin act while the rollout waits. */
  async pause(ms: number): Promise<void> {
    this.#now += ms;
    const printedCommand = this.#printedCommand;
    if (printedCommand === undefined || !this.adminActs) return;
    this.#printedCommand = undefined;
    this.#effect(`the admin's ${printedCommand}`, () => this.admin(printedCommand));
  }

  admin(name: string): void {
    this.overlapUntil = name === 'update_pcrs' ? this.#now + this.plan.overlap * 60_000 : undefined;
    if (name === 'end_overlap') return;
    this.version += 1n;
    this.allowed = name === 'update_pcrs' ? 'new' : 'old';
    // The same transaction registers the enclave.
    if (name === 'rotate')
      for (const url of this.plan.old.urls) this.registered.add(`${url} ${this.version}`);
  }
}
