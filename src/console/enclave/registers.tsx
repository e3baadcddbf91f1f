import type { AttestationDocument, Image } from 'sui-enclave/attestation';
import { toHex } from '../lib/bytes.ts';
import { Bytes } from '../parts/bytes.tsx';
import { Panel } from '../parts/panel.tsx';
import { Tag } from '../parts/tag.tsx';
import type { Examination } from './examine.ts';
import { isGenuine } from './judge.ts';

const REGISTERS = [
  ['pcr0', 'PCR0', 'the whole image'],
  ['pcr1', 'PCR1', 'kernel and boot system'],
  ['pcr2', 'PCR2', 'the application'],
] as const;

interface Props {
  readonly examination: Examination;
  readonly document: AttestationDocument;
}

/** Shows the registers of the enclave beside the expected ones. */
export function Registers({ examination, document }: Props) {
  const registerHex = (index: number) => toHex(document.pcrs.get(index) ?? new Uint8Array());
  const expected = findNearestImage(examination.expectation.images, [
    registerHex(0),
    registerHex(1),
    registerHex(2),
  ]);
  const isDebug = [0, 1, 2].every((index) => /^0*$/.test(registerHex(index)));
  return (
    <Panel title="Registers" aside={<span className="subtle">SHA-384 of the started image</span>}>
      <ul className="registers">
        {REGISTERS.map(([key, name, meaning], index) => {
          const value = registerHex(index);
          const expectedHex = expected?.[key];
          const differs = expectedHex !== undefined && expectedHex !== value;
          return (
            <li key={name}>
              <div className="register">
                <strong>{name}</strong>
                <span className="subtle">{meaning}</span>
                <Comparison
                  isDebug={isDebug}
                  isGenuine={isGenuine(examination)}
                  isEqual={expectedHex === undefined ? undefined : expectedHex === value}
                />
              </div>
              {value === '' ? (
                <p className="subtle">Not in the document</p>
              ) : (
                <Bytes hex={value} name={`${name} found`} isWhole={differs} />
              )}
              {differs && (
                <div className="expected">
                  <span className="subtle">expected</span>
                  <Bytes hex={expectedHex} name={`${name} expected`} isWhole />
                </div>
              )}
            </li>
          );
        })}
      </ul>
    </Panel>
  );
}

interface ComparisonProps {
  readonly isDebug: boolean;
  readonly isGenuine: boolean;
  /** Whether the register has the expected value; undefined if there is no expected value. */
  readonly isEqual: boolean | undefined;
}

/**
 * Shows the comparison of a register. Green requires a genuine document, since anybody can claim registers.
 */
function Comparison({ isDebug, isGenuine: isDocumentGenuine, isEqual }: ComparisonProps) {
  if (isDebug) return <Tag tone="danger">debug</Tag>;
  if (isEqual === undefined) return <Tag tone="neutral">not compared</Tag>;
  if (!isEqual) return <Tag tone="danger">mismatch</Tag>;
  return isDocumentGenuine ? <Tag tone="success">match</Tag> : <Tag tone="neutral">only claimed: match</Tag>;
}

/**
 * Returns the image that has the most registers in common with the enclave. An overlap has several images.
 */
function findNearestImage(
  images: readonly Image[],
  registers: readonly [string, string, string],
): Image | undefined {
  const countEqual = ({ pcr0, pcr1, pcr2 }: Image) =>
    [pcr0, pcr1, pcr2].filter((value, index) => value === registers[index]).length;
  return images.toSorted((a, b) => countEqual(b) - countEqual(a))[0];
}
