/**
 * A Nitro Security Module in software. It answers the NSM's CBOR requests with complete, correctly signed
 * attestation documents. Their certificate authority is passed to it, or is created at its start.
 *
 * It is for `make dev ATTEST=emulated` and for tests. Nothing that it attests is true: a client that trusts
 * its root trusts this process, not an enclave.
 */

import { createHash, randomBytes } from 'node:crypto';
import { decode, encode } from 'cborg';
import type { NsmTransport } from 'sui-enclave-server/nsm/transport';
import {
  type CertificateChain,
  caBundle,
  createRoot,
  encodePayload,
  type Identity,
  issueChain,
  measure,
  signDocument,
  toPem,
} from './attestation_ca.ts';

const MODULE_ID = 'i-0development0only0-enc0not0aws000000000';
const REGISTER_COUNT = 32;
const REGISTER_SIZE = 48;
/** Number of registers that a real NSM locks at boot. */
const LOCKED_AT_BOOT = 16;
/** Limits of a document's fields in bytes. QEMU's emulator accepts more, but Sui's verifier does not. */
const FIELD_LIMITS = { user_data: 512, nonce: 512, public_key: 1024 } as const;
const RANDOM_SIZE = 256;
const MAX_REQUEST_SIZE = 0x1000;
/** Time in milliseconds after which a chain is replaced, long before its leaf expires after 3 hours. */
const CHAIN_LIFETIME_MS = 60 * 60 * 1000;

type ErrorName = 'InvalidIndex' | 'ReadOnlyIndex' | 'InvalidOperation' | 'InputTooLarge';

/** Error that ends a request with `{"Error": name}`. */
class Refusal extends Error {
  readonly answer: { Error: ErrorName };

  constructor(error: ErrorName) {
    super(error);
    this.answer = { Error: error };
  }
}

interface Register {
  value: Uint8Array;
  locked: boolean;
}

type Arguments = Record<string, unknown>;

/**
 * Returns PCR0 to PCR2 of an emulated enclave for an application in src/apps. PCR2 differs between
 * applications, and between the images of an application.
 *
 * @param image number of the emulated version of the application, from 1
 */
export function developmentRegisters(application: string, image = 1): Uint8Array[] {
  const content = image === 1 ? application : `${application} ${image}`;
  return ['PCR0', 'PCR1', `PCR2 ${content}`].map((name) => measure(`sui-enclave development ${name}`));
}

export class EmulatedNsm implements NsmTransport {
  readonly #root: Identity;
  readonly #registers: Register[];
  readonly #now: () => number;
  #chain: { certificates: CertificateChain; issuedAt: number } | undefined;

  /**
   * @param now clock that dates documents and certificates, in milliseconds since 1970
   * @param root authority of the NSM. Default: a new one
   * @param registers PCR0 to PCR2, 48 bytes each. Default: those of the weather application
   */
  constructor(
    now: () => number = Date.now,
    root: Identity = createRoot(new Date(now())),
    registers: readonly Uint8Array[] = developmentRegisters('weather'),
  ) {
    this.#now = now;
    this.#root = root;
    this.#registers = Array.from({ length: REGISTER_COUNT }, (_, index) => ({
      value: registers[index] ?? new Uint8Array(REGISTER_SIZE),
      locked: index < LOCKED_AT_BOOT,
    }));
  }

  /** Returns the authority's root in PEM. This NSM's documents verify only under this root. */
  rootPem(): string {
    return toPem(this.#root.certificate);
  }

  /**
   * Returns registers 0 to 2 in the format of `out/nitro.pcrs`, with a line `<hex> PCRn` for each. They are
   * the same at each start.
   */
  pcrsFile(): string {
    return [0, 1, 2].map((index) => `${hex(this.#findRegister(index).value)} PCR${index}\n`).join('');
  }

  /** Answers a request of the NSM protocol. The answer to a refused request is `{"Error": name}`. */
  async transact(request: Uint8Array): Promise<Uint8Array> {
    try {
      return encode(this.#answer(request));
    } catch (error) {
      if (error instanceof Refusal) return encode(error.answer);
      throw error;
    }
  }

  close(): void {}

  #answer(bytes: Uint8Array): unknown {
    if (bytes.length > MAX_REQUEST_SIZE) throw new Refusal('InputTooLarge');
    const [operation, args] = parseRequest(bytes);
    switch (operation) {
      case 'DescribeNSM':
        return { DescribeNSM: this.#describe() };
      case 'GetRandom':
        return { GetRandom: { random: randomBytes(RANDOM_SIZE) } };
      case 'DescribePCR': {
        const { value, locked } = this.#findRegister(args['index']);
        return { DescribePCR: { lock: locked, data: value } };
      }
      case 'ExtendPCR':
        return { ExtendPCR: { data: this.#extend(args['index'], args['data']) } };
      case 'LockPCR':
        this.#requireWritable(args['index']).locked = true;
        return 'LockPCR';
      case 'LockPCRs':
        this.#lockBelow(args['range']);
        return 'LockPCRs';
      case 'Attestation':
        return { Attestation: { document: this.#attest(args) } };
      default:
        throw new Refusal('InvalidOperation');
    }
  }

  #describe() {
    return {
      version_major: 1,
      version_minor: 0,
      version_patch: 0,
      module_id: MODULE_ID,
      max_pcrs: REGISTER_COUNT,
      locked_pcrs: this.#registers.flatMap(({ locked }, index) => (locked ? [index] : [])),
      digest: 'SHA384',
    };
  }

  #findRegister(index: unknown): Register {
    if (typeof index !== 'number') throw new Refusal('InvalidOperation');
    const register = this.#registers[index];
    if (register === undefined) throw new Refusal('InvalidIndex');
    return register;
  }

  #requireWritable(index: unknown): Register {
    const register = this.#findRegister(index);
    if (register.locked) throw new Refusal('ReadOnlyIndex');
    return register;
  }

  #extend(index: unknown, data: unknown): Uint8Array {
    if (!(data instanceof Uint8Array)) throw new Refusal('InvalidOperation');
    const register = this.#requireWritable(index);
    register.value = new Uint8Array(createHash('sha384').update(register.value).update(data).digest());
    return register.value;
  }

  #lockBelow(range: unknown): void {
    if (typeof range !== 'number') throw new Refusal('InvalidOperation');
    if (range < 0 || range > REGISTER_COUNT) throw new Refusal('InvalidIndex');
    for (const register of this.#registers.slice(0, range)) register.locked = true;
  }

  #attest(args: Arguments): Uint8Array {
    const chain = this.#freshChain();
    const payload = encodePayload(
      {
        module_id: MODULE_ID,
        digest: 'SHA384',
        timestamp: this.#now(),
        pcrs: new Map(
          this.#registers.flatMap(({ value, locked }, index) => (locked ? [[index, value]] : [])),
        ),
        certificate: chain.leaf.certificate,
        cabundle: caBundle(chain),
        public_key: optionalField(args, 'public_key'),
        user_data: optionalField(args, 'user_data'),
        nonce: optionalField(args, 'nonce'),
      },
      'indefinite',
    );
    return signDocument(payload, chain.leaf);
  }

  #freshChain(): CertificateChain {
    const now = this.#now();
    if (this.#chain === undefined || Math.abs(now - this.#chain.issuedAt) >= CHAIN_LIFETIME_MS) {
      this.#chain = { certificates: issueChain(this.#root, new Date(now)), issuedAt: now };
    }
    return this.#chain.certificates;
  }
}

/**
 * Parses a request. An operation without arguments is a string, and one with arguments is a map with a single
 * key.
 */
function parseRequest(bytes: Uint8Array): [operation: string, args: Arguments] {
  let request: unknown;
  try {
    request = decode(bytes);
  } catch {
    throw new Refusal('InvalidOperation');
  }
  if (request === 'DescribeNSM' || request === 'GetRandom') return [request, {}];
  if (!isObject(request)) throw new Refusal('InvalidOperation');
  const [entry, ...moreEntries] = Object.entries(request);
  if (entry === undefined || moreEntries.length > 0) throw new Refusal('InvalidOperation');
  const [operation, args] = entry;
  if (operation === 'DescribeNSM' || operation === 'GetRandom' || !isObject(args)) {
    throw new Refusal('InvalidOperation');
  }
  return [operation, args];
}

function isObject(value: unknown): value is Arguments {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function optionalField(args: Arguments, name: keyof typeof FIELD_LIMITS): Uint8Array | null {
  const value = args[name] ?? null;
  if (value !== null && !(value instanceof Uint8Array)) throw new Refusal('InvalidOperation');
  if (value !== null && value.length > FIELD_LIMITS[name]) throw new Refusal('InputTooLarge');
  return value;
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
