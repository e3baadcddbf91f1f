/** Starts the processes under load, and holds the state that all parts of the soak share. */
import { findFreePort } from '../../../scripts/check/bench/ports.ts';
import {
  certificatesFromPem,
  type Image,
  parsePcrs,
  verifyAttestation,
} from '../../../src/library/attestation/index.ts';
import { ask, Judge } from './answers.ts';
import { Findings } from './finding.ts';
import { Load } from './load.ts';
import { Part } from './processes.ts';
import type { Command } from './weather.ts';

/** The root and the image that callers expect. */
interface Trust {
  readonly roots: Uint8Array[];
  readonly images: Image[];
}

interface Overload {
  /** The server's capacity, measured before this round, in cold requests a second. */
  readonly capacity: number;
  /** 99th percentile of accepted requests, in milliseconds. */
  readonly p99: number;
  /** Highest 99th percentile that is expected, in milliseconds. */
  readonly boundMs: number;
}

export class World {
  readonly findings = new Findings();
  readonly judge = new Judge();
  readonly weather: Part;
  readonly load: Load;
  readonly #upstreamPort: number;
  readonly #trust: Trust;
  upstream: Part;
  /** The server's measured capacity, in cold requests a second. */
  capacity = 0;
  /** CPU time of an accepted cold request, in seconds. */
  acceptedCpu = 0;
  /** 99th percentile of requests that come one after the other, in milliseconds. */
  unloadedP99 = 0;
  /** Measurements under overload without a fault, one for each round. */
  readonly overloads: Overload[] = [];

  private constructor(weather: Part, upstream: Part, upstreamPort: number, trust: Trust) {
    this.weather = weather;
    this.upstream = upstream;
    this.#upstreamPort = upstreamPort;
    this.#trust = trust;
    this.load = new Load(weather.origin, this.judge);
  }

  static async start(): Promise<World> {
    const port = await findFreePort();
    const upstream = await Part.start('./upstream.ts', { PORT: String(port) });
    const weather = await Part.start('./weather.ts', { FAKE: upstream.origin });
    const { root, pcrs } = await weather.ask<{ root: string; pcrs: string }>({ trust: true });
    const trust = { roots: certificatesFromPem(root), images: [parsePcrs(pcrs)] };
    const world = new World(weather, upstream, port, trust);
    world.judge.trust(await world.attest(new Uint8Array(32)));
    return world;
  }

  /** Starts the fake of the weather service again, at the same port. */
  async restartUpstream(): Promise<void> {
    this.upstream = await Part.start('./upstream.ts', { PORT: String(this.#upstreamPort) });
  }

  tell(command: Command): void {
    this.weather.tell(command);
  }

  /**
   * Requests an attestation document for the nonce, verifies it as a caller does, and returns its key.
   *
   * @throws AttestationError; RefusedError
   */
  async attest(nonce: Uint8Array): Promise<Uint8Array> {
    const hex = Buffer.from(nonce).toString('hex');
    const { status, text, headers } = await ask(`${this.weather.origin}/get_attestation?nonce=${hex}`);
    if (status !== 200) throw new RefusedError(text, Number(headers['retry-after'] ?? 0));
    const bytes = Buffer.from(JSON.parse(text).attestation, 'hex');
    const { roots, images } = this.#trust;
    const { document } = await verifyAttestation(bytes, {
      now: Date.now(),
      roots,
      policy: { images, nonce },
    });
    return document.publicKey ?? new Uint8Array();
  }

  close(): void {
    for (const part of [this.weather, this.upstream]) part.signal('SIGKILL');
  }
}

/** Reports that the server answered with an error. */
export class RefusedError extends Error {
  readonly text: string;
  readonly retryAfterSeconds: number;

  constructor(text: string, retryAfterSeconds: number) {
    super('the server refused');
    this.text = text;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}
