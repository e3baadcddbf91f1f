/** Simulates a chain and enclaves in memory, with the interface by which a keeper reads and changes them. */

import type { Action, TrustedAnswer } from '../../../../src/cli/keeper/decide.ts';
import type { World } from '../../../../src/cli/keeper/world.ts';
import type { SigningRecord } from '../../../../src/cli/rounds/budget.ts';
import { AttestationError, type Image } from '../../../../src/library/attestation/index.ts';
import { ClientError } from '../../../../src/library/client/errors.ts';
import { MoveAbortError, SuiError, UnknownOutcomeError } from '../../../../src/library/sui/errors.ts';
import {
  type Enclave,
  type EnclaveConfig,
  enclaveAddress,
  isStale,
} from '../../../../src/library/sui/objects.ts';

const id = (digit: string) => `0x${digit.repeat(64)}`;
const PACKAGE = id('e');
export const CONFIG_ID = id('c');
export const REGISTRARS = [id('a'), id('b')] as const;
export const IMAGES: readonly Image[] = ['1', '2'].map((digit) => {
  const register = digit.repeat(96);
  return { pcr0: register, pcr1: register, pcr2: register };
});
export const URLS = ['http://one.example/', 'http://two.example/', 'http://three.example/'] as const;
export const GAS = 20_000_000n;
const HOUR = 3_600_000;

export function getImage(index: number): Image {
  return IMAGES[index] as Image;
}

export function createKey(number: number): Uint8Array {
  return new Uint8Array(32).fill(number);
}

export const CONFIG: EnclaveConfig = {
  enclavePackage: PACKAGE,
  application: `${PACKAGE}::weather::WEATHER`,
  id: CONFIG_ID,
  name: 'weather',
  image: getImage(0),
  source: null,
  overlap: null,
  packageVersion: 1n,
  isOpen: false,
  capabilityId: id('d'),
  configVersion: 0n,
  maxKeyAgeMs: null,
  registrars: [...REGISTRARS],
  isRetired: false,
};

export function createEnclave(
  key: number,
  {
    configVersion = 0n,
    registeredAtMs = 0n,
  }: Partial<Pick<Enclave, 'configVersion' | 'registeredAtMs'>> = {},
): Enclave {
  const publicKey = createKey(key);
  return {
    ...CONFIG,
    id: enclaveAddress(CONFIG, configVersion, publicKey),
    publicKey,
    configId: CONFIG_ID,
    configVersion,
    registeredAtMs,
  };
}

/** The process behind a URL. */
export interface Process {
  readonly key: number;
  readonly image: number;
  /**
   * With `slow`, it answers every second request in time. With `lying`, another party answers with other
   * documents.
   */
  state: 'alive' | 'slow' | 'lying';
}

/** The chain, the enclaves and the time. */
export class Simulation {
  /** Time of the chain, and of the keepers' monotonic clock. */
  now = 1_800_000_000_000;
  /** Time by which the keepers' wall clock is ahead, in milliseconds. */
  wallAheadMs = 0;
  config = CONFIG;
  readonly enclaves = new Map<string, Enclave>();
  readonly destroyed = new Set<string>();
  readonly processes = new Map<string, Process>();
  isNodeAway = false;
  /** Answer to the next transaction. */
  fault: 'none' | 'unanswered' | 'locked' = 'none';
  /** Actions of keepers that they must never take. */
  readonly violations: string[] = [];
  /** Spent gas with its time, by the keeper's number. */
  readonly gas: { keeper: number; at: number; mist: bigint }[] = [];
  readonly #images = new Map<number, number>();
  readonly #records = new Map<number, readonly { at: number; mist: bigint }[]>();
  #keys = 0;
  /** Number of requests, by keeper and key. */
  readonly #requests = new Map<string, number>();

  start(url: string, image: number): Process {
    this.#keys += 1;
    const newProcess: Process = { key: this.#keys, image, state: 'alive' };
    this.#images.set(newProcess.key, image);
    this.processes.set(url, newProcess);
    return newProcess;
  }

  /** Allows another image. @param image its number */
  updatePcrs(image: number): void {
    const { configVersion } = this.config;
    this.config = { ...this.config, image: getImage(image), configVersion: configVersion + 1n };
  }

  destroyByAdmin(enclaveId: string): void {
    this.enclaves.delete(enclaveId);
    this.destroyed.add(enclaveId);
  }

  /** Returns the record of a keeper, which outlasts the keeper's process. */
  createRecord(keeper: number): SigningRecord {
    return {
      signed: (this.#records.get(keeper) ?? []).map(({ at, mist }) => ({ ageMs: this.now - at, mist })),
      replace: (signed) => {
        this.#records.set(
          keeper,
          signed.map(({ ageMs, mist }) => ({ at: this.now - ageMs, mist })),
        );
      },
    };
  }

  /**
   * Returns the world as a keeper sees it.
   *
   * @param image the number of the image in the keeper's file
   * @param spend the keeper's `beforeSigning`
   * @param turn waits until it is this keeper's turn
   */
  createWorld(
    keeper: number,
    image: number,
    spend: (budget: bigint, kind: Action['kind']) => void = () => {},
    turn: () => Promise<unknown> = async () => {},
  ): World {
    const send = async <T>(kind: Action['kind'], execute: () => T): Promise<T> => {
      await turn();
      this.#requireNode();
      spend(GAS, kind);
      const { fault } = this;
      this.fault = 'none';
      if (fault === 'locked') throw new SuiError('SUI_EQUIVOCATION', 'a coin is locked');
      const executed = execute();
      this.gas.push({ keeper, at: this.now, mist: GAS });
      if (fault === 'unanswered') throw new UnknownOutcomeError('digest', 'no answer');
      return executed;
    };
    return {
      nodes: [
        {
          name: 'node.example',
          read: async () => {
            await turn();
            this.#requireNode();
            const { config } = this;
            return { config, enclaves: [...this.enclaves.values()], destroyed: [...this.destroyed] };
          },
        },
      ],
      attest: async (url) => {
        await turn();
        return this.#answer(url, image, keeper);
      },
      register: async ({ publicKey }, config) =>
        await send('register', () => {
          const key = publicKey[0] ?? 0;
          if (this.#images.get(key) !== image) this.violations.push('tried to register another image');
          if (config.image !== getImage(image)) this.violations.push('registered although the file differs');
          return this.#register(keeper, key);
        }),
      destroy: async (enclave, config) =>
        await send('destroy', () => {
          if (config.image !== getImage(image)) this.violations.push('destroyed although the file differs');
          if (!this.enclaves.has(enclave.id)) return 'theirs';
          if (!isStale(enclave, this.config, 0) && !this.config.isRetired) {
            this.violations.push('tried to destroy an enclave that is not stale');
            throw new MoveAbortError('enclave::ENotStale', '', '');
          }
          this.destroyByAdmin(enclave.id);
          return 'done';
        }),
    };
  }

  #requireNode(): void {
    if (this.isNodeAway) throw new SuiError('SUI_NODE_UNREACHABLE', 'the node does not answer');
  }

  #answer(url: string, image: number, keeper: number): TrustedAnswer {
    const silence = new ClientError('CLIENT_UNREACHABLE', 'simulated');
    const process = this.processes.get(url);
    if (process === undefined) throw silence;
    const asker = `${keeper} ${process.key}`;
    const requests = (this.#requests.get(asker) ?? 0) + 1;
    this.#requests.set(asker, requests);
    if (process.state === 'slow' && requests % 2 === 1) throw silence;
    if (process.state === 'lying') throw new AttestationError('POLICY_NONCE', 'simulated');
    if (process.image !== image) throw new AttestationError('POLICY_PCRS', 'simulated');
    const document = new Uint8Array();
    return { url, trusted: true, publicKey: createKey(process.key), document, attestedAtMs: this.now };
  }

  /** Registers a key as the contract does. */
  #register(keeper: number, key: number): 'done' | 'theirs' {
    const { config } = this;
    const abort = (name: string) => new MoveAbortError(`enclave::${name}`, '', name);
    if (config.isRetired) throw abort('ERetired');
    if (!config.registrars.includes(REGISTRARS[keeper] ?? '')) throw abort('ENotRegistrar');
    if (getImage(this.#images.get(key) ?? 0) !== config.image) throw abort('EInvalidPCRs');
    const { configVersion } = config;
    const enclave = createEnclave(key, { configVersion, registeredAtMs: BigInt(this.now) });
    if (this.enclaves.has(enclave.id) || this.destroyed.has(enclave.id)) return 'theirs';
    this.enclaves.set(enclave.id, enclave);
    return 'done';
  }

  /** Returns the most gas that a keeper spent in any 24 hours, in MIST. */
  findMostGasADay(keeper: number): bigint {
    const ownCosts = this.gas.filter((cost) => cost.keeper === keeper);
    const days = ownCosts.map(({ at }) =>
      ownCosts
        .filter((cost) => cost.at > at - 24 * HOUR && cost.at <= at)
        .reduce((sum, { mist }) => sum + mist, 0n),
    );
    return days.reduce((maximum, day) => (day > maximum ? day : maximum), 0n);
  }
}
