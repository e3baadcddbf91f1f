/**
 * `npm run verify -- <url> --pcrs out/nitro.pcrs`: whether an enclave can be trusted, for people and monitors.
 *
 * Exit codes: 0 trusted; 1 any other verdict, be it a malformed document, a debug enclave or an all-zero
 * policy; 2 no verdict (network, unreadable file, usage).
 */
import { readFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { hexToBytes } from '@noble/curves/utils.js';
import {
  AttestationError,
  awsNitroRoot,
  certificatesFromPem,
  type Image,
  parsePcrs,
} from '../../src/attestation/index.ts';
import { readAttestation } from '../../src/client/answer.ts';
import { fetchAttestation } from '../../src/client/attestation.ts';
import { ClientError } from '../../src/client/errors.ts';
import { baseUrl, malformedAnswer } from '../../src/client/http.ts';
import { EnclaveError } from '../../src/errors.ts';
import { formatReport, makeReport } from './report.ts';

const TRUSTED = 0;
const REFUSED = 1;
const NO_VERDICT = 2;

const TIMEOUT_MS = 10_000;

const USAGE = `usage: npm run verify -- <url> --pcrs out/nitro.pcrs [options]
       npm run verify -- --file <document> --pcrs out/nitro.pcrs [options]

  --pcrs <file>   the expected registers, one "<hex> PCRn" line each for PCR0 to PCR2
  --file <file>   a saved document in place of a URL: binary, hexadecimal or the endpoint's JSON
  --at <time>     judge by this time in place of now: ISO 8601 or milliseconds since 1970
  --pk <hex>      the public key that the document must bind
  --root <file>   trust the certificates of this PEM file in place of AWS's root (development)
  --json          print the report as JSON (after npm run --silent, to keep npm's own lines out of it)
  --print-root    print the pinned AWS root as PEM, and do nothing else
  --help          print this

exit codes: 0 trusted; 1 any other verdict; 2 no verdict (network, unreadable file, usage)`;

/** Ends without a verdict. */
class NoVerdict extends EnclaveError {
  readonly code: string;

  constructor(code: 'USAGE' | 'UNREADABLE_FILE' | 'INTERNAL', message: string) {
    super(message);
    this.code = code;
  }
}

function usage(message: string): NoVerdict {
  return new NoVerdict('USAGE', `${message}\n\n${USAGE}`);
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        pcrs: { type: 'string' },
        file: { type: 'string' },
        at: { type: 'string' },
        pk: { type: 'string' },
        root: { type: 'string' },
        json: { type: 'boolean', default: false },
        'print-root': { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    throw usage((error as Error).message);
  }
}

type Options = ReturnType<typeof readArguments>['values'];

async function main(): Promise<number> {
  const asJson = process.argv.includes('--json');
  try {
    const { values, positionals } = readArguments();
    if (values.help) {
      console.log(USAGE);
      return TRUSTED;
    }
    if (values['print-root']) {
      console.log(toPem(awsNitroRoot()));
      return TRUSTED;
    }
    return await verify(values, positionals);
  } catch (error) {
    // Even a fault of this program must not end with the code of a verdict.
    const known = error instanceof EnclaveError ? error : new NoVerdict('INTERNAL', String(error));
    const refused = isVerdict(known);
    const { code, message } = known;
    if (asJson)
      console.log(JSON.stringify({ verdict: refused ? 'refused' : 'none', code, reason: message }, null, 2));
    else console.error(`${refused ? `REFUSED (${code})` : 'NO VERDICT'}: ${message}`);
    return refused ? REFUSED : NO_VERDICT;
  }
}

/** A mistake in the options is none; an answer that holds no document, or a policy of zeros, is one. */
function isVerdict(error: EnclaveError): boolean {
  if (error.code === 'POLICY_INVALID') return false;
  return error instanceof AttestationError || error.code === 'CLIENT_MALFORMED_ANSWER';
}

async function verify(options: Options, positionals: readonly string[]): Promise<number> {
  const [url, ...others] = positionals;
  if (others.length > 0) throw usage('there is more than one URL');
  if ((url === undefined) === (options.file === undefined)) throw usage('give either a URL or --file');
  if (options.pcrs === undefined)
    throw usage('--pcrs is needed: without expected registers there is no verdict');
  const image = await readImage(options.pcrs);
  const publicKey = options.pk === undefined ? null : keyOf(options.pk);
  const roots = options.root === undefined ? null : await readRoots(options.root);
  const at = options.at === undefined ? null : timeOf(options.at);
  const { document, nonce } =
    url === undefined
      ? { document: await readDocument(options.file ?? ''), nonce: null }
      : await fetchAttestation({ base: baseUrl(url), timeoutMs: TIMEOUT_MS });
  const report = await makeReport({ document, image, at: at ?? Date.now(), nonce, publicKey, roots });
  console.log(options.json ? JSON.stringify(report, null, 2) : formatReport(report));
  return report.verdict === 'trusted' ? TRUSTED : REFUSED;
}

/** A saved document in any of its three forms: binary ones start with a byte that no text starts with. */
async function readDocument(file: string): Promise<Uint8Array> {
  const bytes = await read(file);
  const text = bytes.toString('latin1').trim();
  if (text.startsWith('{')) {
    try {
      return readAttestation(JSON.parse(text));
    } catch (cause) {
      if (cause instanceof ClientError) throw cause;
      throw malformedAnswer(file, 'it is not JSON', { cause });
    }
  }
  return /^([0-9a-f]{2})+$/i.test(text) ? hexToBytes(text) : new Uint8Array(bytes);
}

async function readImage(file: string): Promise<Image> {
  return parsePcrs((await read(file)).toString());
}

async function readRoots(file: string): Promise<Uint8Array[]> {
  return certificatesFromPem((await read(file)).toString());
}

async function read(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    throw new NoVerdict('UNREADABLE_FILE', `${file} can't be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

function keyOf(hex: string): Uint8Array {
  if (!/^([0-9a-f]{2})+$/i.test(hex)) throw usage('--pk must be hexadecimal');
  return hexToBytes(hex);
}

function timeOf(text: string): number {
  // Only full ISO 8601: what Date makes of other texts depends on where it runs.
  const iso = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/;
  const value = /^\d+$/.test(text) ? Number(text) : iso.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(new Date(value).getTime())) {
    throw usage('--at must be a time such as 2025-04-15T02:25:23Z, or milliseconds since 1970');
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

process.exitCode = await main();
