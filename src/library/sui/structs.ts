/**
 * The structs of `move/enclave` in BCS. Since BCS has no names, the order and the types of the fields are the
 * format. Browser-safe.
 */
import { type BcsType, bcs } from '@mysten/sui/bcs';
import { fromHex, toHex } from '@mysten/sui/utils';
import type { Image } from '../attestation/image.ts';
import { u64 } from '../wire/bcs.ts';

/** `Pcrs`: PCR0, PCR1 and PCR2. */
export const Pcrs = bcs
  .struct('Pcrs', { pcr0: bcs.byteVector(), pcr1: bcs.byteVector(), pcr2: bcs.byteVector() })
  .transform({
    input: ({ pcr0, pcr1, pcr2 }: Image) => ({
      pcr0: fromHex(pcr0),
      pcr1: fromHex(pcr1),
      pcr2: fromHex(pcr2),
    }),
    output: ({ pcr0, pcr1, pcr2 }): Image => ({ pcr0: toHex(pcr0), pcr1: toHex(pcr1), pcr2: toHex(pcr2) }),
  });

/** Source of an image, as the admin names it: nothing on chain checks it. */
export interface Source {
  /** The URL of a public repository: 1 to 200 printable ASCII characters. */
  readonly url: string;
  /** The hash of a commit, in 40 or 64 lowercase hexadecimal digits. */
  readonly commit: string;
  /** The application's folder in the repository: up to 100 printable ASCII characters; empty for the root. */
  readonly folder: string;
  /** The version of the framework that the image was built with: 1 to 50 printable ASCII characters. */
  readonly frameworkVersion: string;
  /** The SHA-256 of the `measurements.json` of the image's build, in 64 lowercase hexadecimal digits. */
  readonly measurementsSha256: string;
}

/** BCS of the Move struct `Source`. */
export const SourceContent = bcs
  .struct('Source', {
    url: bcs.string(),
    commit: bcs.byteVector(),
    folder: bcs.string(),
    frameworkVersion: bcs.string(),
    measurementsSha256: bcs.byteVector(),
  })
  .transform({
    input: (source: Source) => ({
      ...source,
      commit: fromHex(source.commit),
      measurementsSha256: fromHex(source.measurementsSha256),
    }),
    output: (source): Source => ({
      ...source,
      commit: toHex(source.commit),
      measurementsSha256: toHex(source.measurementsSha256),
    }),
  });

/**
 * The latest time that a Date can represent, in milliseconds since 1970 (ECMA-262, "Time Values and Time
 * Range").
 */
export const MAX_TIME_MS = 8_640_000_000_000_000n;

/**
 * BCS of a time of the chain's clock, in milliseconds since the Unix epoch. Parsing throws a RangeError for a
 * time that a Date can't represent.
 */
export const timeMs = u64.transform({
  output: (ms: bigint): bigint => {
    if (ms > MAX_TIME_MS) throw new RangeError('a time must be one that a Date can represent');
    return ms;
  },
});

/** `Overlap`: the registers of the version before, and when contracts stop accepting its enclaves. */
const Overlap = bcs.struct('Overlap', { image: Pcrs, untilMs: timeMs });

export const ConfigContent = bcs.struct('EnclaveConfig', {
  id: bcs.Address,
  name: bcs.string(),
  image: Pcrs,
  source: bcs.option(SourceContent),
  capabilityId: bcs.Address,
  configVersion: u64,
  overlap: bcs.option(Overlap),
  maxKeyAgeMs: bcs.option(u64),
  registrars: bcs.vector(bcs.Address),
  isRetired: bcs.bool(),
  packageVersion: u64,
  isOpen: bcs.bool(),
});

export const EnclaveContent = bcs.struct('Enclave', {
  id: bcs.Address,
  publicKey: bcs.byteVector(),
  configId: bcs.Address,
  configVersion: u64,
  registeredAtMs: timeMs,
});

export const RegistrarContent = bcs.struct('RegistrarCap', { id: bcs.Address, configId: bcs.Address });

/** Key from which `sui::derived_object` derives an enclave's address. */
export const EnclaveKey = bcs.struct('EnclaveKey', { configVersion: u64, publicKey: bcs.byteVector() });

/** Parses a value. Returns null unless the bytes are the encoding of exactly one value of the type. */
export function parseExactly<Value extends Input, Input>(
  type: BcsType<Value, Input>,
  bytes: Uint8Array,
): Value | null {
  try {
    const value = type.parse(bytes);
    // The parser ignores trailing bytes, which would mean that this is another struct of the same name.
    return type.serialize(value).toBytes().length === bytes.length ? value : null;
  } catch {
    return null;
  }
}
