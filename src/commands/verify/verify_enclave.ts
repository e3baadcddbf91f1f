/**
 * `npm run verify -- <url> --pcrs out/nitro.pcrs`: whether an enclave can be trusted, for people and monitors.
 *
 * Exit codes: 0 trusted; 1 any other verdict, such as for a malformed document, a debug enclave or an all-zero
 * policy; 2 no verdict (network, unreadable file, usage).
 */
import type { Image } from 'sui-enclave/attestation';
import { EnclaveError } from 'sui-enclave/errors';
import {
  command,
  type Failure,
  PCRS_HINT,
  type Result,
  readFileArgument,
  runAsProcess,
  UsageError,
} from '../command.ts';

const TRUSTED = 0;
const REFUSED = 1;
const NO_VERDICT = 2;

const TIMEOUT_MS = 10_000;

const USAGE = `usage: npm run verify -- <url> --pcrs out/nitro.pcrs [options]
       npm run verify -- --file <document> --pcrs out/nitro.pcrs [options]

  --pcrs <file>   the expected registers, one "<hex> PCRn" line each for PCR0 to PCR2
  --file <file>   a saved document in place of a URL: binary, hexadecimal or the endpoint's JSON
  --at <time>     verify as of this time, not now: ISO 8601 or milliseconds since 1970
  --pk <hex>      the public key that the document must bind
  --root <file>   trust the certificates of this PEM file in place of AWS's root (development)
  --json          print the report as JSON (after npm run --silent, to keep npm's own lines out of it)
  --print-root    print the pinned AWS root as PEM, and do nothing else
  --compare <file>  with --print-root: compare it with the certificate of this file, PEM or DER, such as
                  nitro_root_certificate.pem in the sources of Sui's verifier, or AWS's root.pem
  --help          print this

exit codes: 0 trusted, or the same root; 1 any other verdict, or another root; 2 no verdict (network, unreadable file,
usage)`;

const OPTIONS = {
  pcrs: { type: 'string' },
  file: { type: 'string' },
  at: { type: 'string' },
  pk: { type: 'string' },
  root: { type: 'string' },
  'print-root': { type: 'boolean', default: false },
  compare: { type: 'string' },
} as const;

type Options = { readonly [Name in 'pcrs' | 'file' | 'at' | 'pk' | 'root']?: string | undefined };

export const main = command({
  usage: USAGE,
  options: OPTIONS,
  positionals: ['url'],
  optional: 1,
  async run({ values, positionals: [url] }) {
    if (values.compare !== undefined && !values['print-root']) {
      throw new UsageError('--compare goes with --print-root', USAGE);
    }
    if (!values['print-root']) return await verify(values, url);
    const { awsNitroRoot } = await import('sui-enclave/attestation');
    if (values.compare !== undefined) return await compareRoot(values.compare, awsNitroRoot());
    const root = toPem(awsNitroRoot());
    return { json: { root }, text: root };
  },
  report,
});

/** Whether the only certificate of a file is the pinned root, byte for byte. */
async function compareRoot(file: string, root: Uint8Array): Promise<Result> {
  const { certificatesFromPem } = await import('sui-enclave/attestation');
  const { certificateFingerprint } = await import('sui-enclave/attestation/chain');
  const bytes = await readFileArgument(file);
  const isPem = bytes.includes('-----BEGIN');
  const [other = new Uint8Array(), ...more] = isPem ? certificatesFromPem(bytes.toString()) : [bytes];
  if (!(await isCertificate(other))) throw new UsageError(`${file} holds no certificate`, USAGE);
  if (more.length > 0) throw new UsageError(`${file} must hold one certificate, and holds several`, USAGE);
  const same = Buffer.from(root).equals(other);
  const [pinned, found] = [certificateFingerprint(root), certificateFingerprint(other)];
  const text = `pinned here  ${pinned}\nin the file  ${found}\n${same ? 'The same certificate.' : 'ANOTHER certificate.'}`;
  return { exit: same ? TRUSTED : REFUSED, json: { same, pinned, found }, text };
}

async function isCertificate(der: Uint8Array): Promise<boolean> {
  const { AttestationError } = await import('sui-enclave/attestation');
  const { parseCertificate } = await import('sui-enclave/attestation/certificate');
  try {
    parseCertificate(der, 0);
    return true;
  } catch (error) {
    if (error instanceof AttestationError) return false;
    throw error;
  }
}

/** Reports every error: even a fault of this program must not end with the exit code of a verdict. */
async function report(error: unknown): Promise<Failure> {
  const [code, message] =
    error instanceof EnclaveError ? [error.code, error.message] : ['INTERNAL', String(error)];
  const refused = await isVerdict(error);
  return {
    exit: refused ? REFUSED : NO_VERDICT,
    text: `${refused ? `REFUSED (${code})` : 'NO VERDICT'}: ${message}`,
    json: { verdict: refused ? 'refused' : 'none', code, reason: message, error: message },
  };
}

/** A mistake in the options is not a verdict; an answer that holds no document, or a policy of zeros, is one. */
async function isVerdict(error: unknown): Promise<boolean> {
  if (!(error instanceof EnclaveError) || error instanceof UsageError) return false;
  if (error.code === 'POLICY_INVALID') return false;
  if (error.code === 'CLIENT_MALFORMED_ANSWER') return true;
  const { AttestationError } = await import('sui-enclave/attestation');
  return error instanceof AttestationError;
}

async function verify(options: Options, url: string | undefined): Promise<Result> {
  if ((url === undefined) === (options.file === undefined))
    throw new UsageError('give either a URL or --file', USAGE);
  if (options.pcrs === undefined) {
    throw new UsageError('--pcrs is needed: without expected registers there is no verdict', USAGE);
  }
  const image = await readImage(options.pcrs);
  const publicKey = options.pk === undefined ? null : keyOf(options.pk);
  const roots = options.root === undefined ? null : await readRoots(options.root);
  const at = options.at === undefined ? null : timeOf(options.at);
  const { document, nonce } =
    url === undefined ? { document: await readDocument(options.file ?? ''), nonce: null } : await ask(url);
  const { formatReport, makeReport } = await import('./report.ts');
  const report = await makeReport({ document, image, at: at ?? Date.now(), nonce, publicKey, roots });
  return {
    exit: report.verdict === 'trusted' ? TRUSTED : REFUSED,
    json: report,
    text: formatReport(report),
  };
}

/** The document of a running enclave, made for a fresh nonce. */
async function ask(url: string) {
  const { fetchAttestation } = await import('sui-enclave/client/attestation');
  const { baseUrl } = await import('sui-enclave/client/http');
  return await fetchAttestation({ base: baseUrl(url), timeoutMs: TIMEOUT_MS });
}

/** A saved document in any of its three forms. A binary one starts with a byte that the others can't start with. */
async function readDocument(file: string): Promise<Uint8Array> {
  const { readAttestation } = await import('sui-enclave/client/answer');
  const { ClientError } = await import('sui-enclave/client/errors');
  const { malformedAnswer } = await import('sui-enclave/client/http');
  const bytes = await readFileArgument(file);
  const text = bytes.toString('latin1').trim();
  if (text.startsWith('{')) {
    try {
      return readAttestation(JSON.parse(text));
    } catch (cause) {
      if (cause instanceof ClientError) throw cause;
      throw malformedAnswer(file, 'it is not JSON', { cause });
    }
  }
  return /^([0-9a-f]{2})+$/i.test(text) ? Uint8Array.from(Buffer.from(text, 'hex')) : new Uint8Array(bytes);
}

async function readImage(file: string): Promise<Image> {
  const { parsePcrs } = await import('sui-enclave/attestation');
  return parsePcrs((await readFileArgument(file, PCRS_HINT)).toString());
}

async function readRoots(file: string): Promise<Uint8Array[]> {
  const { certificatesFromPem } = await import('sui-enclave/attestation');
  return certificatesFromPem((await readFileArgument(file)).toString());
}

function keyOf(hex: string): Uint8Array {
  if (!/^([0-9a-f]{2})+$/i.test(hex)) throw new UsageError('--pk must be hexadecimal', USAGE);
  return Uint8Array.from(Buffer.from(hex, 'hex'));
}

function timeOf(text: string): number {
  // Only full ISO 8601: how Date parses other strings depends on the platform.
  const iso = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/;
  const value = /^\d+$/.test(text) ? Number(text) : iso.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(new Date(value).getTime())) {
    throw new UsageError(
      '--at must be a time such as 2025-04-15T02:25:23Z, or milliseconds since 1970',
      USAGE,
    );
  }
  return value;
}

function toPem(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----'].join('\n');
}

if (import.meta.main) await runAsProcess(main);
