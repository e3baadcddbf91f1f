/** Builds Sui's own verifier with Cargo, from the published crate. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Case, fromHex } from '../../src/library/attestation/cases/case.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const BUILD = fileURLToPath(new URL('../../../build/registration', import.meta.url));
const SOURCE = 'nitro_attestation.rs';
const ROOT = 'nitro_root_certificate.pem';

function cargo(...args: string[]): string {
  const options = { cwd: FOLDER, encoding: 'utf8', maxBuffer: 1 << 26 } as const;
  return execFileSync('cargo', args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
}

/** Makes `Cargo.lock` from `crates.lock`, with the registry's name as Cargo itself writes it. */
function writeLock(): void {
  const [lock, locked] = [join(FOLDER, 'Cargo.lock'), readFileSync(join(FOLDER, 'crates.lock'), 'utf8')];
  rmSync(lock, { force: true });
  cargo('generate-lockfile');
  const [source] = /^source = .*$/m.exec(readFileSync(lock, 'utf8')) ?? [];
  if (source === undefined) throw new Error('Cargo.lock has no source of crates');
  writeFileSync(lock, locked.replace(/^checksum = /gm, `${source}\n$&`));
}

/** Returns the folder of the crate's source, whose digest is in `crates.lock`. */
function crateSource(): string {
  writeLock();
  const metadata = cargo('metadata', '--locked', '--format-version', '1', '--features', 'fastcrypto');
  const { packages } = JSON.parse(metadata) as { packages: { name: string; manifest_path: string }[] };
  const crate = packages.find(({ name }) => name === 'fastcrypto');
  return join(dirname(crate?.manifest_path ?? ''), 'src');
}

/** Builds the crate's verifier twice: with AWS's root certificate, and with another. @param root its DER */
export function buildVerifier(root: Uint8Array): void {
  const source = crateSource();
  for (const name of ['aws', 'made']) {
    const folder = join(BUILD, name);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    copyFileSync(join(source, SOURCE), join(folder, SOURCE));
    copyFileSync(join(source, ROOT), join(folder, ROOT));
  }
  const base64 = Buffer.from(root).toString('base64').replace(/.{64}/g, '$&\n');
  writeFileSync(
    join(BUILD, 'made', ROOT),
    `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`,
  );
  cargo('build', '--locked', '--quiet', '--target-dir', join(BUILD, 'target'));
}

/** Returns the code with which the verifier aborts for each document, or null if it accepts the document. */
export function verdicts(cases: readonly Case[]): (number | null)[] {
  const lines = cases.map(
    ({ roots = [], at, document }) => `${roots.length > 0 ? 'made' : 'aws'} ${at} ${document}\n`,
  );
  const program = join(BUILD, 'target/debug/registration');
  const output = execFileSync(program, { input: lines.join(''), encoding: 'utf8' });
  return output
    .trimEnd()
    .split('\n')
    .map((line) => (line === '-' ? null : Number(line)));
}

/** Returns whether a verifier was built for the root that the case pins. */
export function isJudged({ roots = [] }: Case, root: Uint8Array): boolean {
  return roots[0] === undefined || Buffer.from(fromHex(roots[0])).equals(root);
}
