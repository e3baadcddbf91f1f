/** The measurements of an enclave image, as the image build prints them. */
import { AttestationError } from './errors.ts';

/** Registers 0 to 2 of one image: SHA-384 values, 96 hexadecimal digits each. */
export interface Image {
  /** Kernel, command line and all ramdisks. */
  readonly pcr0: string;
  /** Kernel, command line and the first ramdisk. */
  readonly pcr1: string;
  /** Register 2, which measures the application: the remaining ramdisks. */
  readonly pcr2: string;
}

const VALUE = /^[0-9a-f]{96}$/;

/**
 * Reads `out/nitro.pcrs`: one line for each register, `<hex> PCR0` to `<hex> PCR2`, each once.
 *
 * @throws AttestationError: POLICY_INVALID when it is not such a file, POLICY_ZERO_IMAGE when a register is
 *   zero
 */
export function parsePcrs(text: string): Image {
  const values = new Map<string, string>();
  for (const line of text.split('\n').map((raw) => raw.trim())) {
    if (line === '') continue;
    const [, value, register] = /^([0-9a-fA-F]{96})\s+PCR([0-2])$/.exec(line) ?? [];
    if (value === undefined || register === undefined) {
      throw new AttestationError(
        'POLICY_INVALID',
        `a line of the PCR file is not "<96 hexadecimal digits> PCR0", PCR1 or PCR2: ${JSON.stringify(line.slice(0, 120))}`,
      );
    }
    if (values.has(register))
      throw new AttestationError('POLICY_INVALID', `the PCR file names PCR${register} twice`);
    values.set(register, value);
  }
  const [pcr0, pcr1, pcr2] = ['0', '1', '2'].map((register) => values.get(register));
  if (pcr0 === undefined || pcr1 === undefined || pcr2 === undefined) {
    throw new AttestationError('POLICY_INVALID', 'the PCR file must name PCR0, PCR1 and PCR2');
  }
  return checkImage({ pcr0, pcr1, pcr2 });
}

/** Returns the lines of `out/nitro.pcrs`. */
export function formatPcrs({ pcr0, pcr1, pcr2 }: Image): string {
  return [pcr0, pcr1, pcr2].map((value, index) => `${value} PCR${index}\n`).join('');
}

/**
 * Returns the image in lower case.
 *
 * @throws AttestationError: POLICY_INVALID when a register is not a SHA-384 value, POLICY_ZERO_IMAGE when one
 *   is zero
 */
export function checkImage(image: Image): Image {
  if (typeof image !== 'object' || image === null) {
    throw new AttestationError(
      'POLICY_INVALID',
      'an accepted image must be an object with pcr0, pcr1 and pcr2',
    );
  }
  const checkRegister = (name: keyof Image) => {
    const digits: unknown = image[name];
    const value = typeof digits === 'string' ? digits.toLowerCase() : '';
    if (!VALUE.test(value)) {
      throw new AttestationError(
        'POLICY_INVALID',
        `${name} of an accepted image must be a string of 96 hexadecimal digits`,
      );
    }
    if (/^0+$/.test(value)) {
      throw new AttestationError(
        'POLICY_ZERO_IMAGE',
        `${name} of an accepted image is zero, as in debug enclaves, whatever they run`,
      );
    }
    return value;
  };
  return { pcr0: checkRegister('pcr0'), pcr1: checkRegister('pcr1'), pcr2: checkRegister('pcr2') };
}
