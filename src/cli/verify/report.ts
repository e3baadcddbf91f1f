/** Makes the report of `verify_enclave` on a document, as data and as lines for people. */
import { bytesToHex } from '@noble/curves/utils.js';
import {
  type AttestationDocument,
  AttestationError,
  AWS_NITRO_ROOT_SHA256,
  decodeAttestation,
  type Image,
  predictRegistration,
  readUserData,
  verifyAttestation,
} from 'sui-enclave/attestation';
import { parseCertificate } from 'sui-enclave/attestation/certificate';
import { certificateFingerprint } from 'sui-enclave/attestation/chain';

export interface ReportRequest {
  readonly document: Uint8Array;
  readonly image: Image;
  /** Time of the verification, in milliseconds since 1970. */
  readonly at: number;
  readonly nonce: Uint8Array | null;
  readonly publicKey: Uint8Array | null;
  /** DER of the roots that replace AWS's. */
  readonly roots: readonly Uint8Array[] | null;
  /** Whether to refuse documents that are trusted only under a root other than AWS's. */
  readonly requireHardware: boolean;
}

export interface RegisterReport {
  readonly index: number;
  /** The expected value in hexadecimal; null if none is expected. */
  readonly expected: string | null;
  /** The document's value in hexadecimal; null if the document omits it. */
  readonly found: string | null;
}

export interface CertificateReport {
  readonly subject: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly sha256: string;
}

/**
 * The report on a document. Except for the verdict, it contains the document's own claims, which are true
 * only if the document is trusted.
 */
export interface Report {
  readonly verdict: 'trusted' | 'refused';
  /** Stable code of the refusal; null if the document is trusted. */
  readonly code: string | null;
  /** Message of the refusal; null if the document is trusted. */
  readonly reason: string | null;
  readonly at: Date;
  /** SHA-256 of the roots that were accepted. */
  readonly pinnedRoots: readonly string[];
  /** The last second at which the document verifies, if it is trusted. */
  readonly validUntil: Date | null;
  /**
   * Whether the chain of a trusted document ends at AWS's root. Only this proves that the enclave runs on
   * Nitro hardware. Null if the document was refused.
   */
  readonly awsRoot: boolean | null;
  /** Content of the document; null if it can't be read. */
  readonly document: {
    readonly moduleId: string;
    readonly timestamp: Date;
    readonly publicKey: string | null;
    readonly userData: string | null;
    /** The content of the user data; null if it does not have the form of this project's enclaves. */
    readonly enclave: {
      readonly application: string;
      readonly version: string;
      readonly sealingKey: string;
    } | null;
    readonly nonce: string | null;
    /** Root first; null for a certificate that can't be read. */
    readonly chain: readonly (CertificateReport | null)[];
    /** Registers 0 to 2, and all other registers that are not zero. */
    readonly registers: readonly RegisterReport[];
  } | null;
  /** Predicted outcome of `load_nitro_attestation` on Sui, which pins AWS's root. */
  readonly registration: {
    readonly accepted: boolean;
    readonly abort: number | null;
    readonly reason: string | null;
    readonly until: Date | null;
  };
}

export async function makeReport({
  document,
  image,
  at,
  nonce,
  publicKey,
  roots,
  requireHardware,
}: ReportRequest): Promise<Report> {
  const common = {
    at: new Date(at),
    pinnedRoots: roots?.map(certificateFingerprint) ?? [AWS_NITRO_ROOT_SHA256],
    document: describeDocument(document, image),
    registration: await predictRegistration(document, at),
  };
  try {
    const { validUntil, rootSha256 } = await verifyAttestation(document, {
      now: at,
      policy: { images: [image], ...(nonce && { nonce }), ...(publicKey && { publicKey }) },
      ...(roots && { roots }),
    });
    const awsRoot = rootSha256 === AWS_NITRO_ROOT_SHA256;
    if (requireHardware && !awsRoot) {
      const reason = `the chain ends at ${rootSha256}, a development root, which proves nothing: --require-hardware accepts AWS's root only`;
      return { ...refuse('DEVELOPMENT_ROOT', reason), ...common };
    }
    return { verdict: 'trusted', code: null, reason: null, validUntil, awsRoot, ...common };
  } catch (error) {
    if (!(error instanceof AttestationError)) throw error;
    return { ...refuse(error.code, error.message), ...common };
  }
}

function refuse(code: string, reason: string) {
  return { verdict: 'refused', code, reason, validUntil: null, awsRoot: null } as const;
}

function describeDocument(bytes: Uint8Array, image: Image): Report['document'] {
  let document: AttestationDocument;
  try {
    document = decodeAttestation(bytes);
  } catch (error) {
    if (error instanceof AttestationError) return null;
    throw error;
  }
  const hex = (value: Uint8Array | null) => value && bytesToHex(value);
  return {
    moduleId: document.moduleId,
    timestamp: new Date(document.timestamp),
    publicKey: hex(document.publicKey),
    userData: hex(document.userData),
    enclave: describeEnclave(document),
    nonce: hex(document.nonce),
    chain: [...document.cabundle, document.certificate].map(describeCertificate),
    registers: describeRegisters(document, image),
  };
}

function describeEnclave(document: AttestationDocument): NonNullable<Report['document']>['enclave'] {
  try {
    const { application, version, sealingKey } = readUserData(document);
    return { application, version, sealingKey: bytesToHex(sealingKey) };
  } catch (error) {
    if (error instanceof AttestationError) return null;
    throw error;
  }
}

function describeCertificate(der: Uint8Array, position: number): CertificateReport | null {
  try {
    const { subjectText: subject, notBefore, notAfter } = parseCertificate(der, position);
    return { subject, notBefore, notAfter, sha256: certificateFingerprint(der) };
  } catch (error) {
    if (error instanceof AttestationError) return null;
    throw error;
  }
}

function describeRegisters({ pcrs }: AttestationDocument, image: Image): RegisterReport[] {
  const readRegister = (index: number) => {
    const value = pcrs.get(index);
    return value === undefined ? null : bytesToHex(value);
  };
  const expected = [image.pcr0, image.pcr1, image.pcr2].map((value, index) => ({
    index,
    expected: value,
    found: readRegister(index),
  }));
  const furtherRegisters = [...pcrs]
    .filter(([index, value]) => index > 2 && value.some((byte) => byte !== 0))
    .sort(([a], [b]) => a - b)
    .map(([index]) => ({ index, expected: null, found: readRegister(index) }));
  return [...expected, ...furtherRegisters];
}

/** Anything but printable ASCII: control characters could change the terminal, and others look like ASCII. */
const UNPRINTABLE = /[^\x20-\x7e]/g;

function escapeUnprintable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** Returns the report as lines for people. */
export function formatReport(report: Report): string {
  const { document, registration, at, verdict, code, reason, validUntil, awsRoot } = report;
  const trusted = awsRoot ? 'TRUSTED' : 'TRUSTED under a development root, which proves nothing';
  const lines: string[] = [];
  const section = (title: string, ...rows: string[]) =>
    lines.push(title, ...rows.map((row) => `  ${row}`), '');
  if (document !== null) {
    section(
      'Document',
      `module    ${escapeUnprintable(document.moduleId)}`,
      `made      ${formatTime(document.timestamp)} (${formatSeconds(at.getTime() - document.timestamp.getTime())} before the time of this report)`,
      `key       ${document.publicKey ?? '(none)'}`,
      `nonce     ${document.nonce ?? '(none)'}`,
      `user data ${document.userData ?? '(none)'}`,
      ...enclaveRows(document.enclave),
    );
    section('Chain, root first', ...document.chain.flatMap(certificateRows));
    section('Registers', ...document.registers.flatMap(registerRows));
  }
  section('Pinned root (SHA-256)', ...report.pinnedRoots);
  section(
    'Registration on Sui',
    registration.accepted
      ? `load_nitro_attestation accepts the document until ${registration.until === null ? '' : formatTime(registration.until)}`
      : `load_nitro_attestation aborts with ${registration.abort}: ${escapeUnprintable(registration.reason ?? '')}`,
  );
  section(
    `Verdict at ${formatTime(at)}`,
    ...(verdict === 'trusted'
      ? [`${trusted}, until ${validUntil === null ? '' : formatTime(validUntil)}`]
      : [`REFUSED (${code})`, ...(reason ?? '').split('\n').map(escapeUnprintable)]),
  );
  return lines.join('\n').trimEnd();
}

function enclaveRows(enclave: NonNullable<Report['document']>['enclave']): string[] {
  if (enclave === null) return [];
  const { application, version, sealingKey } = enclave;
  return [`  application ${application}, version ${version}`, `  sealing key ${sealingKey}`];
}

function certificateRows(certificate: CertificateReport | null): string[] {
  if (certificate === null) return ["(a certificate that can't be read)"];
  const { subject, notBefore, notAfter, sha256 } = certificate;
  return [
    escapeUnprintable(subject),
    `  valid ${formatTime(notBefore)} to ${formatTime(notAfter)}`,
    `  SHA-256 ${sha256}`,
  ];
}

function registerRows({ index, expected, found: value }: RegisterReport): string[] {
  const name = `PCR${index}`.padEnd(6);
  if (expected === null) return [`${name} ${value}`];
  if (expected === value) return [`${name} ${value}  matches`];
  return [`${name} ${value ?? '(not in the document)'}  DIFFERS, expected`, `       ${expected}`];
}

function formatTime(date: Date): string {
  return date.toISOString();
}

function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
