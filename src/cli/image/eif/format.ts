/**
 * The Enclave Image Format, version 4, as Nitro's loader reads it; all numbers are big-endian.
 *
 *     0  ".eif" | 4 u16 version | 6 u16 flags (bit 0: arm64) | 8 u64 default memory | 16 u64 default CPUs
 *    24  u16 reserved | 26 u16 number of sections | 28 u64[32] offsets of section headers
 *   284  u64[32] sizes of section data | 540 u32 unused | 544 u32 CRC-32 of all bytes but itself
 *   548  sections: u16 type | u16 flags | u64 size | data
 */
import { ImageError } from '../errors.ts';

export const MAGIC = Buffer.from('.eif');
export const VERSION = 4;
export const MAX_SECTIONS = 32;
export const HEADER_BYTES = 548;
export const SECTION_HEADER_BYTES = 12;
export const CRC_OFFSET = 544;

export const SECTION = { kernel: 1, cmdline: 2, ramdisk: 3, signature: 4, metadata: 5 } as const;
export type SectionName = keyof typeof SECTION;

/** Maximum unpacked size of a ramdisk in bytes, far above the size of any application or of Node. */
export const MAX_RAMDISK_BYTES = 256 * 1024 ** 2;

/**
 * Memory in bytes, and CPUs, that nitro-cli uses by default. Both are in the header, and neither is measured.
 */
export const DEFAULT_MEMORY = 1n << 30n;
export const DEFAULT_CPUS = 2n;

/** Data about the image, which no register covers. */
export interface Metadata {
  readonly ImageName: string;
  readonly ImageVersion: string;
  readonly BuildMetadata: {
    readonly BuildTime: string;
    readonly BuildTool: string;
    readonly BuildToolVersion: string;
    readonly OperatingSystem: string;
    readonly KernelVersion: string;
  };
  /**
   * Any JSON, here null. `nitro-cli build-enclave` writes Docker's description of the image that it converts.
   */
  readonly DockerInfo: unknown;
  /** Any JSON, here null. `nitro-cli build-enclave` copies a file that its user names. */
  readonly CustomMetadata: unknown;
}

/** The parts of an image that are measured. */
export interface ImageParts {
  readonly kernel: Uint8Array;
  /** Command line of the kernel, in printable ASCII. */
  readonly cmdline: string;
  /** Ramdisks, at least two: the first is the boot system, the others are the application. */
  readonly ramdisks: readonly Uint8Array[];
}

/** Checks the parts of an image. @throws ImageError: EIF_INVALID, for parts that no image can have */
export function checkParts({ kernel, cmdline, ramdisks }: ImageParts): void {
  if (kernel.length === 0) throw new ImageError('EIF_INVALID', 'the kernel is empty');
  if (!/^[\x20-\x7e]{1,2048}$/.test(cmdline)) {
    throw new ImageError(
      'EIF_INVALID',
      'the command line must be 1 to 2048 printable ASCII characters on one line',
    );
  }
  // With only one ramdisk, PCR1 would repeat PCR0, and PCR2 would be the hash of nothing.
  if (ramdisks.length < 2) throw new ImageError('EIF_INVALID', 'an image needs two ramdisks or more');
  if (ramdisks.length > MAX_SECTIONS - 3)
    throw new ImageError('EIF_INVALID', 'an image has too many ramdisks');
  if (ramdisks.some(({ length }) => length === 0)) throw new ImageError('EIF_INVALID', 'a ramdisk is empty');
}
