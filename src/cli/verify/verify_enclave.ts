/** `sui-enclave verify`: tells people and monitors whether an enclave can be trusted. */
import {
  AttestationError,
  awsNitroRoot,
  certificatesFromPem,
  type Image,
  parsePcrs,
} from 'sui-enclave/attestation';
import { parseCertificate } from 'sui-enclave/attestation/certificate';
import { certificateFingerprint } from 'sui-enclave/attestation/chain';
import { readAttestation } from 'sui-enclave/client/answer';
import { fetchAttestation } from 'sui-enclave/client/attestation';
import { ClientError } from 'sui-enclave/client/errors';
import { baseUrl, malformedAnswer } from 'sui-enclave/client/http';
import type { VerifiedRelease } from 'sui-enclave/release';
import * as v from 'valibot';
import {
  command,
  type Failure,
  type Result,
  readFileArgument,
  runAsProcess,
  UsageError,
} from '../command.ts';
import type { OptionValues } from '../command_line.ts';
import { PCRS_HINT } from '../places.ts';
import { isRefused, RELEASE_OPTIONS, readRelease } from '../releases/read_release.ts';
import { enclaveUrl, path, time } from '../values.ts';
import { formatReport, makeReport } from './report.ts';

const TRUSTED = 0;
const REFUSED = 1;
const NO_VERDICT = 2;

const TIMEOUT_MS = 10_000;

/** Hexadecimal digits, read as bytes. */
const hexadecimal = v.pipe(
  v.string(),
  v.regex(/^([0-9a-f]{2})+$/i, 'must be hexadecimal'),
  v.transform((hex) => Uint8Array.from(Buffer.from(hex, 'hex'))),
);

interface Options extends OptionValues<typeof RELEASE_OPTIONS> {
  readonly pcrs: string | undefined;
  readonly file: string | undefined;
  /** Time of the verification, in milliseconds since 1970. */
  readonly at: number | undefined;
  readonly pk: Uint8Array | undefined;
  readonly root: string | undefined;
  readonly 'require-hardware': boolean | undefined;
}

export const main = command({
  name: 'verify',
  purpose:
    'Verifies the attestation document of an enclave against the registers of an image, and prints what the document says.',
  example: 'https://weather.example --pcrs out/nitro.pcrs',
  arguments: { url: { schema: enclaveUrl, optional: true } },
  forms: [
    '<url> --pcrs out/nitro.pcrs [options]',
    '<url> --release release.json --log releases.json --signer release-signer.json [options]',
    '--file <document> --pcrs out/nitro.pcrs [options]',
    '--print-root [--compare <file>]',
  ],
  options: {
    pcrs: {
      value: '<file>',
      help: 'the expected registers: a line "<hex> PCRn" for each of PCR0 to PCR2 (required to verify)',
      schema: path,
    },
    ...RELEASE_OPTIONS,
    file: {
      value: '<file>',
      help: "a saved document in place of a URL: binary, hexadecimal or the endpoint's JSON",
      schema: path,
    },
    at: {
      value: '<time>',
      help: 'verify as of this time, not now: ISO 8601 or milliseconds since 1970',
      schema: time,
    },
    pk: { value: '<hex>', help: 'the public key that the document must contain', schema: hexadecimal },
    root: {
      value: '<file>',
      help: "trust the certificates of this PEM file in place of AWS's root (development)",
      schema: path,
    },
    'require-hardware': {
      help: "refuse a document that is trusted only under --root: a chain that doesn't end at AWS's root proves nothing",
    },
    'print-root': { help: 'only print the pinned AWS root certificate as PEM' },
    compare: {
      value: '<file>',
      help: 'with --print-root: compare the root with the certificate in this file, PEM or DER; see below',
      schema: path,
    },
  },
  notes: `--compare takes, for example, nitro_root_certificate.pem from the sources of Sui's verifier, or AWS's root.pem.

exit codes: 0 trusted, or the same root; 1 refused (the enclave or the release), or another root; 2 no verdict (no
answer, unreadable file, invalid command line)`,
  report,
  async run({ args: { url }, options }) {
    if (options.compare !== undefined && !options['print-root']) {
      throw new UsageError('--compare is for --print-root only');
    }
    if (!options['print-root']) return await verify(options, url);
    if (options.compare !== undefined) return await compareRoot(options.compare, awsNitroRoot());
    const root = toPem(awsNitroRoot());
    return { json: { root }, text: root };
  },
});

/** Compares the only certificate of a file with the pinned root, byte for byte. */
async function compareRoot(file: string, root: Uint8Array): Promise<Result> {
  const bytes = await readFileArgument(file);
  const isPem = bytes.includes('-----BEGIN');
  const [certificate = new Uint8Array(), ...moreCertificates] = isPem
    ? certificatesFromPem(bytes.toString())
    : [bytes];
  if (!isCertificate(certificate)) throw new UsageError(`${file} contains no certificate`);
  if (moreCertificates.length > 0)
    throw new UsageError(`${file} contains several certificates: give a file with one`);
  const same = Buffer.from(root).equals(certificate);
  const [pinned, fileFingerprint] = [certificateFingerprint(root), certificateFingerprint(certificate)];
  const text = `pinned here  ${pinned}\nin the file  ${fileFingerprint}\n${same ? 'The same certificate.' : 'ANOTHER certificate.'}`;
  return { exit: same ? TRUSTED : REFUSED, json: { same, pinned, found: fileFingerprint }, text };
}

function isCertificate(der: Uint8Array): boolean {
  try {
    parseCertificate(der, 0);
    return true;
  } catch (error) {
    if (error instanceof AttestationError) return false;
    throw error;
  }
}

/** Reports every error: even a fault of this program must not end with the exit code of a verdict. */
function report(error: unknown, failure: Failure | undefined): Failure {
  const { code, error: message } = failure?.json ?? { code: 'INTERNAL', error: String(error) };
  const refused = isVerdict(error);
  return {
    exit: refused ? REFUSED : NO_VERDICT,
    text: `${refused ? `REFUSED (${code})` : 'NO VERDICT'}: ${message}`,
    json: { verdict: refused ? 'refused' : 'none', code, reason: message, error: message },
  };
}

/**
 * Returns whether an error is a verdict: a refusal of the document or the release, a policy of zeros, or an
 * answer without a document. A mistake in the options is not a verdict.
 */
function isVerdict(error: unknown): boolean {
  if (isRefused(error)) return true;
  if (error instanceof AttestationError) return error.code !== 'POLICY_INVALID';
  return error instanceof ClientError && error.code === 'CLIENT_MALFORMED_ANSWER';
}

async function verify(options: Options, url: string | undefined): Promise<Result> {
  if ((url === undefined) === (options.file === undefined))
    throw new UsageError('give either a URL or --file');
  if (options.pcrs !== undefined && options.release !== undefined) {
    throw new UsageError('give either --pcrs or --release');
  }
  const vouchedRelease = await readRelease(options);
  if (options.pcrs === undefined && vouchedRelease === undefined) {
    throw new UsageError('--pcrs or --release is required: a verdict needs expected registers');
  }
  const image = vouchedRelease?.release.image ?? (await readImage(options.pcrs ?? ''));
  const roots = options.root === undefined ? null : await readRoots(options.root);
  const { document, nonce } =
    url === undefined
      ? { document: await readDocument(options.file ?? ''), nonce: null }
      : await fetchDocument(url);
  const report = await makeReport({
    document,
    image,
    nonce,
    roots,
    at: options.at ?? Date.now(),
    publicKey: options.pk ?? null,
    requireHardware: options['require-hardware'] ?? false,
  });
  return {
    exit: report.verdict === 'trusted' ? TRUSTED : REFUSED,
    json: vouchedRelease ? { ...report, release: describeRelease(vouchedRelease.release) } : report,
    text: vouchedRelease
      ? `${formatReport(report)}\n${formatVoucher(vouchedRelease.release)}`
      : formatReport(report),
  };
}

function describeRelease({ version, source }: VerifiedRelease) {
  return { version, source };
}

/**
 * Formats the statement of the release's signer. The statement proves nothing, since the image was not built
 * again.
 */
function formatVoucher({ version, source: { url, commit } }: VerifiedRelease): string {
  return `The signer of the release ${version} states that these registers come from commit ${commit} of ${url}. Only an audit proves it.`;
}

/** Returns the document of a running enclave for a fresh nonce. */
async function fetchDocument(url: string) {
  return await fetchAttestation({ base: baseUrl(url), timeoutMs: TIMEOUT_MS });
}

/**
 * Reads a saved document in any of its three forms. The binary form starts with a byte that the others can't
 * start with.
 */
async function readDocument(file: string): Promise<Uint8Array> {
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
  return parsePcrs((await readFileArgument(file, PCRS_HINT)).toString());
}

async function readRoots(file: string): Promise<Uint8Array[]> {
  return certificatesFromPem((await readFileArgument(file)).toString());
}

function toPem(der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----'].join('\n');
}

if (import.meta.main) await runAsProcess(main);
