/**
 * `npm run bench:attestation`: compares the verification of a real document with its unavoidable part, five
 * P-384 verifications one after another. Fails if the verification takes longer than `LIMIT_MS` with Web
 * Crypto.
 */
import { readFileSync } from 'node:fs';
import { command, EXIT, runAsProcess } from '../../../src/cli/command.ts';
import { parseCertificate } from '../../../src/library/attestation/certificate.ts';
import { PROTECTED_HEADER, signedBytes } from '../../../src/library/attestation/cose.ts';
import {
  type EcdsaSignature,
  signatureFromDer,
  verifyEcdsa,
} from '../../../src/library/attestation/ecdsa.ts';
import {
  decodeAttestation,
  predictRegistration,
  verifyAttestation,
} from '../../../src/library/attestation/index.ts';
import { median } from './measure.ts';

const LIMIT_MS = 10;
const ROUNDS = 200;
const NOBLE_ROUNDS = 20;

const VECTOR = new URL('../../../test/vectors/nautilus-weather.hex', import.meta.url);
const bytes = new Uint8Array(Buffer.from(readFileSync(VECTOR, 'utf8').trim(), 'hex'));
const now = Date.parse('2025-04-15T03:00:00Z');
const [pcr0, pcr1, pcr2] = [0, 1, 2].map((index) =>
  Buffer.from(decodeAttestation(bytes).pcrs.get(index) ?? []).toString('hex'),
) as [string, string, string];
const policy = { images: [{ pcr0, pcr1, pcr2 }] };

/** Returns the inputs of the P-384 verifications: four links of the certificate chain, and the document. */
function listVerifications(): EcdsaSignature[] {
  const { cabundle, certificate, payload, signature } = decodeAttestation(bytes);
  const chain = [...cabundle, certificate].map(parseCertificate);
  const p384 = { curve: 'P-384', hash: 'SHA-384' } as const;
  const links = chain.slice(1).map((child, index) => ({
    ...p384,
    publicKey: chain[index]?.publicKey ?? new Uint8Array(),
    signature: signatureFromDer('P-384', child.signature) ?? new Uint8Array(),
    message: child.tbs,
  }));
  const publicKey = chain.at(-1)?.publicKey ?? new Uint8Array();
  return [...links, { ...p384, publicKey, signature, message: signedBytes(PROTECTED_HEADER, payload) }];
}

/**
 * Returns the median time of one call, in milliseconds. The first calls, of the same number, only warm up.
 */
async function measureTime(rounds: number, call: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < 2 * rounds; round++) {
    const start = performance.now();
    await call();
    if (round >= rounds) times.push(performance.now() - start);
  }
  return median(times);
}

/** Returns the median times in milliseconds. `floor` is the time of the five verifications. */
export async function measureVerification(rounds: number) {
  const signatures = listVerifications();
  const floor = await measureTime(rounds, async () => {
    for (const signature of signatures)
      if (!(await verifyEcdsa(signature))) throw new Error('a signature is not valid');
  });
  const verify = await measureTime(rounds, () => verifyAttestation(bytes, { now, policy }));
  const predict = await measureTime(rounds, () => predictRegistration(bytes, now));
  const decode = await measureTime(rounds, async () => decodeAttestation(bytes));
  return { floor, verify, predict, decode };
}

function format(
  path: string,
  { floor, verify, predict, decode }: Awaited<ReturnType<typeof measureVerification>>,
): string {
  const ms = (value: number) => `${value.toFixed(2).padStart(7)} ms`;
  const ratio = (value: number) => `${(value / floor).toFixed(2)} of the five verifications`;
  return [
    `${path}, median`,
    `  five P-384 verifications ${ms(floor)}`,
    `  verifyAttestation        ${ms(verify)}  ${ratio(verify)}`,
    `  predictRegistration      ${ms(predict)}  ${ratio(predict)}`,
    `  decodeAttestation        ${ms(decode)}`,
  ].join('\n');
}

export const main = command({
  name: 'bench_attestation',
  program: 'npm run bench:attestation --',
  purpose: 'Measures the verification of an attestation document, with Web Crypto and with @noble/curves.',
  arguments: {},
  options: {},
  notes: `exit codes: 0 done; 1 verifyAttestation took over ${LIMIT_MS} ms with Web Crypto; 2 invalid command line`,
  async run(_arguments, { io }) {
    const webCrypto = await measureVerification(ROUNDS);
    io.log(format('Web Crypto', webCrypto));
    // This imitates a page that was loaded over plain http, which has no `crypto.subtle` either.
    Object.defineProperty(globalThis, 'crypto', { value: { subtle: undefined } });
    const noble = await measureVerification(NOBLE_ROUNDS);
    io.log(format('@noble/curves', noble));
    const isTooSlow = webCrypto.verify > LIMIT_MS;
    if (isTooSlow) io.error(`verifyAttestation took ${webCrypto.verify.toFixed(2)} ms, over ${LIMIT_MS} ms`);
    return {
      exit: isTooSlow ? EXIT.failed : EXIT.done,
      json: { unit: 'ms', limit: LIMIT_MS, webCrypto, noble },
    };
  },
});

if (import.meta.main) await runAsProcess(main);
