/**
 * The emulated NSM of `make dev ATTEST=emulated` and its root, which stays the same from start to start: to
 * test a client, a developer gives it `dev-root.pem` once.
 */
import { createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { replaceFile } from 'sui-enclave-service/replace_file';
import { createRoot, type Identity, ROOT_NAME, toPem } from './attestation_ca.ts';
import { developmentRegisters, EmulatedNsm } from './emulated_nsm.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const OWNER_ONLY = 0o600;

export class DevelopmentTrust {
  readonly nsm: EmulatedNsm;
  /** The name of the registers' file in the folder: each image of each application has its own. */
  readonly pcrsName: string;
  readonly #folder: URL;
  readonly #root: Identity;
  /** Whether `save` writes a new root. */
  readonly isNew: boolean;

  /**
   * @param folder ends in a slash; it need not exist. A root in it that can't be used is replaced at `save`.
   * @param application that the NSM attests, a folder of src/apps
   * @param options `image`: as for `developmentRegisters`; `now`: in milliseconds since 1970
   */
  static load(
    folder: URL,
    application: string,
    { image = 1, now = Date.now() }: { readonly image?: number; readonly now?: number } = {},
  ): DevelopmentTrust {
    const registers = developmentRegisters(application, image);
    const name = application === 'weather' ? 'dev' : `dev-${application}`;
    // No application has a dot in its name.
    const pcrsName = image === 1 ? `${name}.pcrs` : `${name}.${image}.pcrs`;
    return new DevelopmentTrust(folder, registers, pcrsName, readRoot(folder, now), now);
  }

  private constructor(
    folder: URL,
    registers: readonly Uint8Array[],
    pcrsName: string,
    kept: Identity | undefined,
    now: number,
  ) {
    this.#folder = folder;
    this.isNew = kept === undefined;
    this.#root = kept ?? createRoot(new Date(now));
    this.nsm = new EmulatedNsm(Date.now, this.#root, registers);
    this.pcrsName = pcrsName;
  }

  /** Writes registers, root and its key. @returns a line for people */
  save(): string {
    mkdirSync(this.#folder, { recursive: true });
    replaceFile(fileURLToPath(new URL(this.pcrsName, this.#folder)), this.nsm.pcrsFile());
    if (this.isNew) {
      const key = this.#root.privateKey.export({ type: 'pkcs8', format: 'pem' });
      replaceFile(fileURLToPath(new URL('dev-root.key', this.#folder)), key.toString(), OWNER_ONLY);
      replaceFile(fileURLToPath(new URL('dev-root.pem', this.#folder)), toPem(this.#root.certificate), 0o644);
    }
    const root = this.isNew ? 'a new root, out/dev-root.pem' : 'the root in out/dev-root.pem';
    return `Attestation is emulated under ${root}: its documents prove nothing. Registers: out/${this.pcrsName}.`;
  }
}

/**
 * Reads the root; returns undefined if it is missing, damaged, about to expire, of another key, or readable
 * by others.
 */
function readRoot(folder: URL, now: number): Identity | undefined {
  const [pemFile, keyFile] = [new URL('dev-root.pem', folder), new URL('dev-root.key', folder)];
  if (!existsSync(pemFile) || !existsSync(keyFile)) return undefined;
  try {
    if ((statSync(keyFile).mode & 0o077) !== 0) return undefined;
    const certificate = new X509Certificate(readFileSync(pemFile));
    const privateKey = createPrivateKey(readFileSync(keyFile));
    const isUsable =
      certificate.toLegacyObject().subject.CN === ROOT_NAME &&
      certificate.checkPrivateKey(privateKey) &&
      certificate.verify(certificate.publicKey) &&
      certificate.validFromDate.getTime() <= now &&
      certificate.validToDate.getTime() > now + DAY_MS;
    if (!isUsable) return undefined;
    const publicKey = createPublicKey(privateKey);
    return { certificate: new Uint8Array(certificate.raw), name: ROOT_NAME, publicKey, privateKey };
  } catch {
    return undefined;
  }
}
